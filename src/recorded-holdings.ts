/** Who may have what, as the store records it: so that a change made while the service was down is seen at its start. */
import type { Store } from './contracts/store.ts'
import type { Ender } from './contracts/tokens.ts'
import { lossesBetween, type Holdings } from './directory/holdings.ts'

type Records = Pick<Store, 'find' | 'create' | 'replace'>

/** One record: the holdings of the configuration that was served last, maps and sets as lists. */
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

/** To be called when a configuration is in force. Rejects with Fault `identity_unavailable`. */
export async function recordHoldings(holdings: Holdings, store: Records): Promise<void> {
  const value = listed(holdings)
  for (;;) {
    const entry = await store.find(HOLDINGS, KEY)
    const done =
      entry === undefined
        ? await store.create(HOLDINGS, KEY, { value })
        : await store.replace(HOLDINGS, KEY, entry.version, value)
    if (done) return
  }
}

/**
 * At the start: ends what was lost since the service was served last, and records what is served now. Answers how many
 * rules that took. Rejects with Fault `identity_unavailable`.
 */
export async function endLostMeanwhile(
  holdings: Holdings,
  store: Records,
  ender: Pick<Ender, 'end'>,
): Promise<number> {
  const entry = await store.find(HOLDINGS, KEY)
  const losses = entry === undefined ? [] : lossesBetween(read(entry.value as Recorded), holdings)
  for (const { tokens, consents } of losses) await ender.end(tokens, { consents })
  await recordHoldings(holdings, store)
  return losses.length
}
