/** Records people and their rights in the store, so that a start notices changes made while the service was down. */
import { isDeepStrictEqual } from 'node:util'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import {
  type ClientHoldings,
  type Holdings,
  holdingsOf,
  NO_HOLDINGS,
  type UserHoldings,
} from '../directory/holdings.ts'
import { isSidecar } from '../settings/configuration.ts'
import type { Parts } from './parts.ts'
import {
  listedHoldings,
  lossesServed,
  readHoldingsRecord,
  type RecordedHoldings,
} from './compared-holdings.ts'
import { adoptHoldings, recordShared } from './shared-holdings.ts'
import { Fault } from '../kernel/faults.ts'

type Records = Pick<Store, 'find' | 'create' | 'replace' | 'hold' | 'release' | 'shared'>

/** The kind and key of the one record: the holdings of the configuration served last. */
const HOLDINGS = 'holdings'
const KEY = 'compared'
/** Of a version that knew fewer rights. It stays as it is, for a return to that version. */
const EARLIER_KEY = 'served'

/** As an earlier version recorded them: without scope values, roles and funds. */
interface EarlierRecord {
  readonly businesses: readonly string[]
  readonly clients: readonly (readonly [string, Omit<ClientHoldings, 'scopes'>])[]
  readonly users: readonly (readonly [
    string,
    Omit<UserHoldings, 'access'> & { readonly businesses: readonly string[] },
  ])[]
}

/** What was not recorded counts as nothing, and so is not lost. No role has an empty name. */
const readEarlier = ({ businesses, clients, users }: EarlierRecord): Holdings => ({
  ...NO_HOLDINGS,
  businesses: new Map(businesses.map((code) => [code, { mayHold: true, funds: 'any' }])),
  clients: new Map(clients.map(([id, client]) => [id, { ...client, scopes: [] }])),
  users: new Map(
    users.map(([subject, { businesses: at, ...user }]) => [
      subject,
      { ...user, access: Object.fromEntries(at.map((code) => [code, ''])) },
    ]),
  ),
})

/** What was served last; undefined in a new store. */
async function findHoldings(store: Pick<Store, 'find'>): Promise<Holdings | undefined> {
  const entry = await store.find(HOLDINGS, KEY)
  if (entry !== undefined) return readHoldingsRecord(entry.value as RecordedHoldings)
  const earlier = await store.find(HOLDINGS, EARLIER_KEY)
  return earlier && readEarlier(earlier.value as unknown as EarlierRecord)
}

/** Of a configuration that is compiled. A sidecar gives nobody anything, whatever scope values it knows. */
export const servedHoldings = ({
  configuration,
  directory,
  catalogue,
}: Pick<Parts, 'configuration' | 'directory' | 'catalogue'>): Holdings =>
  isSidecar(configuration) ? NO_HOLDINGS : holdingsOf(directory, catalogue)

/** Records the holdings of the configuration in force. Rejects with Fault `identity_unavailable`. */
export async function recordHoldings(holdings: Holdings, store: Records): Promise<void> {
  if (store.shared !== undefined) return recordShared(holdings, store)
  const value = listedHoldings(holdings)
  for (;;) {
    const entry = await store.find(HOLDINGS, KEY)
    // The usual case: nothing is written, so a start succeeds even if the store is full.
    if (entry !== undefined && isDeepStrictEqual(entry.value, value)) return
    const done =
      entry === undefined
        ? await store.create(HOLDINGS, KEY, { value })
        : await store.replace(HOLDINGS, KEY, entry.version, value)
    if (done) return
  }
}

export interface StartParts {
  readonly store: Records
  readonly tokenRevoker: Pick<TokenRevoker, 'end'>
  readonly recorder: Pick<Recorder, 'note'>
}

/**
 * Called at the start. Revokes what people lost since the service ran last, as a reload would, and records what is served
 * now. If the store fails (it is full, say), that is logged, the service starts, and the next start tries again.
 */
export async function endLostMeanwhile(holdings: Holdings, parts: StartParts): Promise<void> {
  const { recorder } = parts
  try {
    const rules = await endLosses(holdings, parts)
    if (rules > 0) recorder.note('info', 'revoked_at_start', { rules })
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause
    recorder.note('error', 'revocation_at_start_failed', { cause })
  }
}

async function endLosses(holdings: Holdings, { store, tokenRevoker }: StartParts): Promise<number> {
  if (store.shared !== undefined) return adoptHoldings(holdings, { store, tokenRevoker })
  const before = await findHoldings(store)
  const losses = before === undefined ? [] : await lossesServed(before, holdings, store)
  for (const { tokens, consents } of losses)
    await tokenRevoker.end(tokens, { consents, order: { via: 'change of the configuration' } })
  await recordHoldings(holdings, store)
  return losses.length
}
