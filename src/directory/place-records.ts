/** The records of businesses, funds and roles in the store: their schema, and how they are read and written. */
import { choice, flag, optional, section, text, type Static, type TSchema } from '../config/schema.ts'
import type { StoredValue } from '../contracts/store.ts'
import { address, role } from './schema.ts'
import { code, nameForPeople, ROLE_EXPECTED, ROLE_PATTERN } from './names.ts'
import { defaultsOf } from './read-records.ts'

export const BUSINESS = 'directory_business'
export const FUND = 'directory_fund'
export const ROLE = 'directory_role'

export const businessSchema = section({
  code: code('The business code.'),
  name: nameForPeople('Name for people, and the claim `service_profile.business_name`.'),
  funds: choice(['listed', 'any'], {
    default: 'listed',
    description: '`listed`: those that are added. `any`: only the backend knows which funds there are.',
  }),
  address: optional(address),
  phoneNumber: optional(text({ description: 'The claim `service_profile.business_phone_number`.' })),
  disabled: flag({ default: false, description: 'Refuse all calls and tokens for the business.' }),
})

/** A fund has a record of its own, so that a business may have thousands of them. */
export const fundSchema = section({
  business: code('The code of its business.'),
  code: code('The fund code.'),
  name: optional(nameForPeople('Name for people.')),
  disabled: flag({ default: false, description: 'Refuse all calls and tokens for the fund.' }),
})

export const roleSchema = section({
  name: text({
    pattern: ROLE_PATTERN,
    expected: ROLE_EXPECTED,
    description: 'The name of the role, and the claim `service_profile.service_role`.',
  }),
  ...role,
  disabled: flag({ default: false, description: 'Users with this role may do nothing at the business.' }),
})

export type BusinessRecord = Static<typeof businessSchema>
export type FundRecord = Static<typeof fundSchema>
export type RoleRecord = Static<typeof roleSchema>

/** The key of a fund: no code has a slash. */
export const fundKey = (business: string, fund: string): string => `${business}/${fund}`

/** A type alias, because an interface is not assignable to StoredValue. */
type Stored<R> = { readonly record: R }

export const stored = <R extends object>(record: R): Stored<R> => ({ record })

/** The record of a stored value, with defaults for what an older version did not write. */
const readerOf = <T extends TSchema>(schema: T): ((value: StoredValue) => Static<T>) => {
  const defaults = defaultsOf(schema)
  return (value) => ({ ...defaults, ...(value as Stored<object>).record }) as Static<T>
}

export const readBusiness = readerOf(businessSchema)
export const readFund = readerOf(fundSchema)
export const readRole = readerOf(roleSchema)
