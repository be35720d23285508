/**
 * The holdings of nodes that share a store, while their configuration is replaced node by node. The first node with the
 * new one ends what is lost. Until the last node has it, others still issue what was lost: so it is ended once more when
 * all nodes agree.
 */
import type { Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import type { Holdings } from '../directory/holdings.ts'
import {
  digestOfHoldings,
  listedHoldings,
  lossesServed,
  readHoldingsRecord,
  type RecordedHoldings,
} from './compared-holdings.ts'

const HOLDINGS = 'holdings'
const KEY = 'shared'
const LEASE = 'holdings'
/** Milliseconds: longer than ending takes. */
const LEASE_MS = 60_000
/** Digests of earlier configurations that nodes may still have. */
const EARLIER = 20

/** A type alias, since an interface has no index signature and so is no StoredValue. */
type SharedRecord = {
  /** Of the newest configuration. */
  readonly digest: string
  readonly holdings: RecordedHoldings
  /** Of the one before, as long as nodes may still serve it. */
  readonly previous?: RecordedHoldings
  /** Digests of those that nodes may still serve. */
  readonly earlier: readonly string[]
}

export interface SharedHoldingsParts {
  readonly store: Pick<Store, 'find' | 'create' | 'replace' | 'hold' | 'release'>
  readonly tokenRevoker: Pick<TokenRevoker, 'end'>
}

const ORDER = { via: 'change of the configuration' } as const

/**
 * Called when a node starts. Ends what its configuration takes away, if it is a new one. A node that has an earlier one
 * ends nothing: it is about to be replaced. Resolves with the number of losses.
 */
export async function adoptHoldings(holdings: Holdings, parts: SharedHoldingsParts): Promise<number> {
  const entry = await parts.store.find(HOLDINGS, KEY)
  const record = entry?.value as SharedRecord | undefined
  const digest = digestOfHoldings(holdings)
  if (record !== undefined && (record.digest === digest || record.earlier.includes(digest))) return 0
  const ended = record === undefined ? 0 : await endLosses(record.holdings, holdings, parts)
  await recordShared(holdings, parts.store)
  return ended
}

/** Records that a node serves these now, and that others may still serve the ones before. */
export async function recordShared(holdings: Holdings, store: SharedHoldingsParts['store']): Promise<void> {
  const digest = digestOfHoldings(holdings)
  const own = { digest, holdings: listedHoldings(holdings) }
  for (;;) {
    const entry = await store.find(HOLDINGS, KEY)
    const record = entry?.value as SharedRecord | undefined
    if (record?.digest === digest) return
    const value: SharedRecord =
      record === undefined
        ? { ...own, earlier: [] }
        : {
            ...own,
            previous: record.holdings,
            earlier: [...record.earlier.filter((each) => each !== digest), record.digest].slice(-EARLIER),
          }
    const done =
      entry === undefined
        ? await store.create(HOLDINGS, KEY, { value })
        : await store.replace(HOLDINGS, KEY, entry.version, value)
    if (done) return
  }
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
    const entry = await store.find(HOLDINGS, KEY)
    const record = entry?.value as SharedRecord | undefined
    const digest = digestOfHoldings(holdings)
    if (entry === undefined || record === undefined) return 0
    const before = record.digest === digest ? record.previous : record.holdings
    if (before === undefined && record.earlier.length === 0) return 0
    const ended = before === undefined ? 0 : await endLosses(before, holdings, parts)
    const value: SharedRecord = { digest, holdings: listedHoldings(holdings), earlier: [] }
    await store.replace(HOLDINGS, KEY, entry.version, value)
    return ended
  } finally {
    await store.release(LEASE)
  }
}

async function endLosses(
  before: RecordedHoldings,
  after: Holdings,
  { store, tokenRevoker }: SharedHoldingsParts,
): Promise<number> {
  const losses = await lossesServed(readHoldingsRecord(before), after, store)
  for (const { tokens, consents } of losses) await tokenRevoker.end(tokens, { consents, order: ORDER })
  return losses.length
}
