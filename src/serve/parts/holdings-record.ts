/** Records people and their rights in the store, so that a start notices changes made while the service was down. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { changeRecord, type Store } from '../../base/contracts/records/store.ts'
import type { TokenRevoker } from '../../base/contracts/records/tokens.ts'
import {
  type ClientHoldings,
  type Holdings,
  holdingsOf,
  type Loss,
  lossesBetween,
  NO_HOLDINGS,
  type UserHoldings,
  withStored,
} from '../../identity/directory/records/holdings.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { Parts } from './parts.ts'

/** Maps and sets as lists: JSON knows neither. */
const plain = (_key: string, value: unknown): unknown =>
  value instanceof Map || value instanceof Set ? [...(value as Iterable<unknown>)] : value

type Listed<T> =
  T extends ReadonlyMap<string, infer V>
    ? readonly (readonly [string, Listed<V>])[]
    : T extends ReadonlySet<infer V>
      ? readonly V[]
      : T extends readonly unknown[] | string
        ? T
        : T extends object
          ? { readonly [K in keyof T]: Listed<T[K]> }
          : T

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type RecordedHoldings = { readonly [K in keyof Holdings]: Listed<Holdings[K]> }

/** As a record keeps them. */
const listedHoldings = (holdings: Holdings): RecordedHoldings =>
  JSON.parse(JSON.stringify(holdings, plain)) as RecordedHoldings

const readHoldingsRecord = ({ scopes, businesses, roles, clients, users }: RecordedHoldings): Holdings => ({
  scopes: new Map(scopes.map(([value, implied]) => [value, new Set(implied)])),
  businesses: new Map(
    businesses.map(([code, { mayHold, funds }]) => [
      code,
      { mayHold, funds: typeof funds === 'string' ? funds : new Set(funds) },
    ]),
  ),
  roles: new Map(roles),
  clients: new Map(clients),
  users: new Map(users),
})

/**
 * The rights to be ended because one configuration replaces another. Rejects with Fault `identity_unavailable` if the store
 * cannot be read.
 */
export async function lossesServed(
  before: Holdings,
  after: Holdings,
  store: Pick<Store, 'find'>,
): Promise<readonly Loss[]> {
  const { had, has } = await withStored(before, after, store)
  return lossesBetween(had, has)
}

/**
 * A digest of the people and their rights in a directory (SHA-256, base64url). Several processes read its files, which
 * may change meanwhile. Equal digests show that they read the same.
 */
export const digestOfHoldings = (holdings: Holdings): string =>
  createHash('sha256').update(JSON.stringify(holdings, plain)).digest('base64url')

type Records = Pick<Store, 'find' | 'create' | 'replace' | 'hold' | 'release' | 'shared'>

/** The kind and key of the one record: the holdings of the configuration served last. */
const HOLDINGS = 'holdings'

const KEY = 'compared'

/** The key that a version which knew fewer rights used. Its record stays as it is, for a return to that version. */
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

/** Rights that were not recorded count as none, and so are not lost. No role has an empty name. */
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

/** The holdings that were served last; undefined in a new store. */
async function findHoldings(store: Pick<Store, 'find'>): Promise<Holdings | undefined> {
  const entry = await store.find(HOLDINGS, KEY)
  if (entry !== undefined) return readHoldingsRecord(entry.value as RecordedHoldings)
  const earlier = await store.find(HOLDINGS, EARLIER_KEY)
  return earlier && readEarlier(earlier.value as unknown as EarlierRecord)
}

/** The holdings of a compiled configuration. A sidecar gives nobody anything, whatever scope values it knows. */
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
  // Mostly they are the same: nothing is written, so a start succeeds even if the store is full.
  await changeRecord(store, HOLDINGS, KEY, (before) => (isDeepStrictEqual(before, value) ? undefined : value))
}

interface StartParts {
  readonly store: Records
  readonly tokenRevoker: TokenRevoker
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
  for (const { tokens, consents } of losses) await tokenRevoker.end(tokens, { consents, cause: CAUSE })
  await recordHoldings(holdings, store)
  return losses.length
}

/**
 * The key of the record of nodes that share a store, while their configuration is replaced node by node. The first node with
 * the new one ends what is lost. Until the last node has it, others still issue what was lost: so it is ended once more when
 * all nodes agree.
 */
const SHARED_KEY = 'shared'

const LEASE = 'holdings'

/** How long the lease lasts, in milliseconds: longer than ending takes. */
const LEASE_MS = 60_000

/** How many digests are kept of earlier configurations, which nodes may still have. */
const EARLIER = 20

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type SharedRecord = {
  /** The digest of the newest configuration. */
  readonly digest: string
  readonly holdings: RecordedHoldings
  /** The holdings of the configuration before, as long as nodes may still serve it. */
  readonly previous?: RecordedHoldings
  /** Digests of the configurations that nodes may still serve. */
  readonly earlier: readonly string[]
}

interface SharedHoldingsParts {
  readonly store: Pick<Store, 'find' | 'create' | 'replace' | 'hold' | 'release'>
  readonly tokenRevoker: TokenRevoker
}

const CAUSE = { via: 'change of the configuration' } as const

/**
 * Called when a node starts. Ends what its configuration takes away, if it is a new one. A node that has an earlier one
 * ends nothing: it is about to be replaced. Resolves with the number of losses.
 */
export async function adoptHoldings(holdings: Holdings, parts: SharedHoldingsParts): Promise<number> {
  const entry = await parts.store.find(HOLDINGS, SHARED_KEY)
  const record = entry?.value as SharedRecord | undefined
  const digest = digestOfHoldings(holdings)
  if (record !== undefined && (record.digest === digest || record.earlier.includes(digest))) return 0
  const ended = record === undefined ? 0 : await endLossesSince(record.holdings, holdings, parts)
  await recordShared(holdings, parts.store)
  return ended
}

/** Records that a node serves these now, and that others may still serve the ones before. */
export async function recordShared(holdings: Holdings, store: SharedHoldingsParts['store']): Promise<void> {
  const digest = digestOfHoldings(holdings)
  const own = { digest, holdings: listedHoldings(holdings) }
  await changeRecord(store, HOLDINGS, SHARED_KEY, (value): SharedRecord | undefined => {
    const record = value as SharedRecord | undefined
    if (record === undefined) return { ...own, earlier: [] }
    if (record.digest === digest) return undefined
    const earlier = [...record.earlier.filter((each) => each !== digest), record.digest].slice(-EARLIER)
    return { ...own, previous: record.holdings, earlier }
  })
}

/**
 * Called when all nodes have the same configuration. Of all of them, one ends once more what it takes away. Also after a
 * return to an earlier configuration. Resolves with the number of losses; undefined if another node is about it, which may
 * die before it is done.
 */
export async function settleHoldings(
  holdings: Holdings,
  parts: SharedHoldingsParts,
): Promise<number | undefined> {
  const { store } = parts
  if (!(await store.hold(LEASE, LEASE_MS))) return undefined
  try {
    const entry = await store.find(HOLDINGS, SHARED_KEY)
    const record = entry?.value as SharedRecord | undefined
    const digest = digestOfHoldings(holdings)
    if (entry === undefined || record === undefined) return 0
    const before = record.digest === digest ? record.previous : record.holdings
    if (before === undefined && record.earlier.length === 0) return 0
    const ended = before === undefined ? 0 : await endLossesSince(before, holdings, parts)
    const value: SharedRecord = { digest, holdings: listedHoldings(holdings), earlier: [] }
    await store.replace(HOLDINGS, SHARED_KEY, entry.version, value)
    return ended
  } finally {
    await store.release(LEASE)
  }
}

async function endLossesSince(
  before: RecordedHoldings,
  after: Holdings,
  { store, tokenRevoker }: SharedHoldingsParts,
): Promise<number> {
  const losses = await lossesServed(readHoldingsRecord(before), after, store)
  for (const { tokens, consents } of losses) await tokenRevoker.end(tokens, { consents, cause: CAUSE })
  return losses.length
}
