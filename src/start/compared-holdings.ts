/** What people and clients hold, as records keep it and as two configurations are compared. */
import { createHash } from 'node:crypto'
import type { Store } from '../contracts/store.ts'
import { type Holdings, type Loss, lossesBetween, withStored } from '../directory/holdings.ts'

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

/** A type alias, since an interface has no index signature and so is no StoredValue. */
export type RecordedHoldings = { readonly [K in keyof Holdings]: Listed<Holdings[K]> }

/** As a record keeps them. */
export const listedHoldings = (holdings: Holdings): RecordedHoldings =>
  JSON.parse(JSON.stringify(holdings, plain)) as RecordedHoldings

export const readHoldingsRecord = ({
  scopes,
  businesses,
  roles,
  clients,
  users,
}: RecordedHoldings): Holdings => ({
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
 * What must be ended because one configuration replaces another. Rejects with Fault `identity_unavailable` if the store
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
