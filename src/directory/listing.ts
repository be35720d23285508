/** Lists of what stands in the configuration and in the store, in pages, in one order. */
import type { Entry, Page, Store } from '../contracts/store.ts'
import { byKey } from '../kernel/key-order.ts'

export type Source = 'configuration' | 'store'

/** What both layers have of one kind. */
export interface Layers<C> {
  /** Those of the configuration, by key. They count where both have one of the same key. */
  readonly configured: ReadonlyMap<string, C>
  readonly store: Pick<Store, 'list'>
  readonly kind: string
}

export type ListedEntry<C> =
  | { readonly source: 'configuration'; readonly key: string; readonly record: C }
  | { readonly source: 'store'; readonly key: string; readonly entry: Entry }

export interface ListedPage<T> {
  readonly items: readonly T[]
  /** The key to go on after; undefined if nothing follows. */
  readonly next: string | undefined
}

/**
 * One page of both layers, in the order of keys: one look into the store, and one at the keys of the configuration.
 * Rejects with Fault `identity_unavailable`.
 */
export async function pageOf<C>(layers: Layers<C>, page: Page): Promise<ListedPage<ListedEntry<C>>> {
  const { configured, store, kind } = layers
  // One more than the page has: it tells whether another page follows.
  const wanted: Page = { ...page, limit: page.limit + 1 }
  const stored = await store.list(kind, wanted)
  const entries = [
    ...keysOn(configured, wanted).flatMap((key): ListedEntry<C>[] => {
      const record = configured.get(key)
      return record === undefined ? [] : [{ source: 'configuration', key, record }]
    }),
    ...stored
      .filter(({ key }) => !configured.has(key))
      .map((entry): ListedEntry<C> => ({ source: 'store', key: entry.key, entry })),
  ]
  const items = entries.sort((one, other) => byKey(one.key, other.key)).slice(0, page.limit)
  return { items, next: entries.length > items.length ? items.at(-1)?.key : undefined }
}

/** The keys of each map in order. A map of a configuration never changes. */
const sorted = new WeakMap<ReadonlyMap<string, unknown>, readonly string[]>()

function inOrder(configured: ReadonlyMap<string, unknown>): readonly string[] {
  const known = sorted.get(configured)
  if (known !== undefined) return known
  const keys = [...configured.keys()].sort(byKey)
  sorted.set(configured, keys)
  return keys
}

/** The keys of the configuration on a page, in order. */
function keysOn(
  configured: ReadonlyMap<string, unknown>,
  { prefix = '', after, limit }: Page,
): readonly string[] {
  const keys: string[] = []
  for (const key of inOrder(configured)) {
    if (keys.length === limit) break
    if (key.startsWith(prefix) && (after === undefined || byKey(key, after) > 0)) keys.push(key)
  }
  return keys
}
