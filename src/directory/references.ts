/** The names of the store that a record refers to. */
import type { Entry, Store } from '../contracts/store.ts'
import type { Directory } from './compile.ts'
import type { ReferableNames } from './compile-records.ts'
import { BUSINESS, ROLE } from './schema.ts'

/** Looks into the store at once: enough to keep its thread busy, and far from what may wait for it. */
const AT_ONCE = 64

/** The records with these keys, as far as there are any. Rejects with Fault `identity_unavailable`. */
export async function findAll(
  store: Pick<Store, 'find'>,
  kind: string,
  keys: Iterable<string>,
): Promise<readonly Entry[]> {
  const found: Entry[] = []
  const rest = [...new Set(keys)]
  while (rest.length > 0) {
    const entries = await Promise.all(rest.splice(0, AT_ONCE).map((key) => store.find(kind, key)))
    found.push(...entries.filter((entry) => entry !== undefined))
  }
  return found
}

interface References {
  readonly businesses: readonly string[]
  readonly roles: readonly string[]
}

/** What a record may name: all of the configuration, and of the store what it does name. */
export async function referable(
  { store, configured }: { readonly store: Pick<Store, 'find'>; readonly configured: Directory },
  { businesses, roles }: References,
): Promise<Pick<ReferableNames, 'businesses' | 'roles'>> {
  const withStored = async (
    kind: string,
    known: ReadonlyMap<string, unknown>,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, unknown>> => {
    const unknown = names.filter((name) => !known.has(name))
    if (unknown.length === 0) return known
    const stored = await findAll(store, kind, unknown)
    return new Map([...known, ...stored.map(({ key }) => [key, true] as const)])
  }
  return {
    businesses: await withStored(BUSINESS, configured.businesses, businesses),
    roles: await withStored(ROLE, configured.roles, roles),
  }
}
