/** Reads all businesses and funds of the store, page by page. */
import type { Store } from '../contracts/store.ts'
import { openBusiness, type OpenBusiness } from './find-places.ts'
import { BUSINESS, FUND, readBusiness, readFund } from './place-records.ts'

export interface FoundBusiness {
  readonly code: string
  /** Undefined: it is disabled. */
  readonly business: OpenBusiness | undefined
}

export interface FoundFund {
  readonly business: string
  readonly code: string
  readonly disabled: boolean
}

/** Records in one request: some milliseconds. */
const PAGE = 1000

async function* pages<T>(
  store: Pick<Store, 'list'>,
  kind: string,
  read: (value: Readonly<Record<string, unknown>>) => T,
): AsyncGenerator<readonly T[]> {
  let after: string | undefined
  do {
    const entries = await store.list(kind, { after, limit: PAGE })
    yield entries.map(({ value }) => read(value))
    after = entries.length < PAGE ? undefined : entries.at(-1)?.key
  } while (after !== undefined)
}

/** Rejects with Fault `identity_unavailable`. */
export const allBusinesses = (store: Pick<Store, 'list'>): AsyncGenerator<readonly FoundBusiness[]> =>
  pages(store, BUSINESS, (value) => {
    const record = readBusiness(value)
    return { code: record.code, business: openBusiness(record) }
  })

/** Rejects with Fault `identity_unavailable`. */
export const allFunds = (store: Pick<Store, 'list'>): AsyncGenerator<readonly FoundFund[]> =>
  pages(store, FUND, readFund)
