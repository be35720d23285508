/** Businesses and funds as the store has them now. */
import type { Business } from '../contracts/places.ts'
import type { Entry, Store } from '../contracts/store.ts'
import { readCode } from '../config/scopes/scope-token.ts'
import { BUSINESS, type BusinessRecord, FUND, fundKey, readBusiness, readFund } from './place-records.ts'

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

export function openBusiness({
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
