/** Businesses and funds as the store has them now. */
import { readCode } from '../config/scopes/scope-token.ts'
import type { Business } from '../contracts/places.ts'
import type { Entry, Store } from '../contracts/store.ts'
import { BUSINESS, type BusinessRecord, FUND, fundKey, readBusiness, readFund } from './schema.ts'

/** A business as a decision needs it. */
export interface OpenBusiness extends Business {
  readonly anyFund: boolean
}

export type Finding = Pick<Store, 'find'>

/** Undefined: there is none, or it is disabled. */
export async function findBusiness(store: Finding, code: string): Promise<OpenBusiness | undefined> {
  const entry = await store.find(BUSINESS, code)
  return entry && openBusiness(readBusiness(entry.value))
}

function openBusiness({
  name,
  address,
  phoneNumber,
  funds,
  disabled,
  ...written
}: BusinessRecord): OpenBusiness | undefined {
  const code = readCode(written.code)
  if (disabled || code === undefined) return undefined
  return {
    ...{ code, name, anyFund: funds === 'any' },
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
  }
}

const isOpenFund = (entry: Entry | undefined): boolean =>
  entry !== undefined && !readFund(entry.value).disabled

/** Whether a business that lists its funds has this one, and it is not disabled. */
export const findFund = async (store: Finding, code: string, fund: string): Promise<boolean> =>
  isOpenFund(await store.find(FUND, fundKey(code, fund)))

// Reads all businesses and funds of the store, page by page.

interface FoundBusiness {
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
