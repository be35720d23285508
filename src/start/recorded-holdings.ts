/** Records people and their rights in the store, so that a start notices changes made while the service was down. */
import { isDeepStrictEqual } from 'node:util'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import { type Holdings, lossesBetween } from '../directory/holdings.ts'
import { Fault } from '../kernel/faults.ts'
import { createHash } from 'node:crypto'

type Records = Pick<Store, 'find' | 'create' | 'replace'>

/** The kind and key of the one record: the holdings of the configuration served last, with maps and sets as lists. */
const HOLDINGS = 'holdings'
const KEY = 'served'

type Listed<T> =
  T extends ReadonlyMap<infer K, infer V>
    ? readonly (readonly [K, V])[]
    : T extends ReadonlySet<infer V>
      ? readonly V[]
      : never
/** A type alias, since an interface has no index signature and so is no StoredValue. */
type Recorded = { readonly [K in keyof Holdings]: Listed<Holdings[K]> }

const listed = ({ businesses, clients, users }: Holdings): Recorded => ({
  businesses: [...businesses],
  clients: [...clients],
  users: [...users],
})

const read = ({ businesses, clients, users }: Recorded): Holdings => ({
  businesses: new Set(businesses),
  clients: new Map(clients),
  users: new Map(users),
})

/** Records the holdings of the configuration in force. Rejects with Fault `identity_unavailable`. */
export async function recordHoldings(holdings: Holdings, store: Records): Promise<void> {
  const value = listed(holdings)
  for (;;) {
    const entry = await store.find(HOLDINGS, KEY)
    // The usual case: nothing is written, so a start succeeds even if the store is full.
    if (entry !== undefined && isDeepStrictEqual(entry.value, JSON.parse(JSON.stringify(value)))) return
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
  const entry = await store.find(HOLDINGS, KEY)
  const losses = entry === undefined ? [] : lossesBetween(read(entry.value as Recorded), holdings)
  for (const { tokens, consents } of losses)
    await tokenRevoker.end(tokens, { consents, order: { via: 'change of the configuration' } })
  await recordHoldings(holdings, store)
  return losses.length
}

/** Maps and sets as lists: JSON knows neither. */
const plain = (_key: string, value: unknown): unknown =>
  value instanceof Map || value instanceof Set ? [...(value as Iterable<unknown>)] : value

/**
 * A digest of the people and their rights in a directory (SHA-256, base64url). Several processes read its files, which
 * may change meanwhile. Equal digests show that they read the same.
 */
export const digestOfHoldings = (holdings: Holdings): string =>
  createHash('sha256').update(JSON.stringify(holdings, plain)).digest('base64url')
