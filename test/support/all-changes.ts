import type { Change, FeedPlace, Store } from '../../src/base/contracts/records/store.ts'

/** The changes behind a place (undefined: all of them) that are still in force, over all pages. */
export async function allChanges(
  store: Pick<Store, 'changes'>,
  after?: FeedPlace,
  limit = 1000,
): Promise<readonly Change[]> {
  const page = await store.changes(after, limit)
  return page.more ? [...page.changes, ...(await allChanges(store, page.last, limit))] : page.changes
}
