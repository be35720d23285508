/**
 * What operators manage in the directory, by command and by admin API alike: one row for each kind of record. Routes,
 * commands, options, descriptions and checks are made from it, so that they cannot differ (C11.5.1).
 */
import { randomUUID } from 'node:crypto'
import type { TSchema } from '../config/schema.ts'
import { clientRecordSchema } from './client-schema.ts'
import { userRecordSchema } from './schema.ts'
import { businessSchema, fundSchema, roleSchema } from './place-records.ts'

export type NounName = 'client' | 'user' | 'business' | 'fund' | 'role'

/** A record as an operator writes it, by member. */
export type Written = Readonly<Record<string, unknown>>

export interface Noun {
  readonly plural: string
  /** Of a record. Its descriptions are those of the configuration. */
  readonly schema: TSchema
  /** The members that name a record, in the order of its address: of a fund its business and its code. */
  readonly names: readonly string[]
  /** Members that never change. */
  readonly fixed: readonly string[]
  /** Members with hashes, and how they are changed: no answer shows them, and no edit takes them. */
  readonly hidden: Readonly<Record<string, string>>
  /** Those of them that a new record is given as they are, to be hashed. */
  readonly hashed: readonly string[]
  /** Members with personal data: the audit trail names which of them changed, not how. */
  readonly personal: readonly string[]
  /** What a new record has where nothing else is written, beside the defaults of the schema. */
  readonly defaults?: (written: Written) => Written
}

/** The grants of each kind of client (C6.1.5, C6.2). */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  customer: ['password', 'refresh_token'],
  partner: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
}

/** Of a kind that there is not, which the schema refuses: as of a customer. */
const grantsOf = (kind: string): readonly string[] | undefined =>
  Object.hasOwn(GRANTS, kind) ? GRANTS[kind] : GRANTS['customer']

/** No member that is hidden. */
const NOTHING_HIDDEN = { hidden: {}, hashed: [], personal: [] } as const

export const NOUNS: Readonly<Record<NounName, Noun>> = {
  client: {
    ...{ plural: 'clients', schema: clientRecordSchema, names: ['id'], fixed: ['id'], personal: [] },
    hidden: { secrets: 'a secret is generated, and replaced by another one' },
    hashed: [],
    defaults: ({ kind }) => ({
      grants: grantsOf(String(kind)),
      requirePkce: kind !== 'customer',
    }),
  },
  user: {
    ...{ plural: 'users', schema: userRecordSchema, names: ['username'], fixed: ['username', 'subject'] },
    hidden: { password: 'a password is set by an act of its own' },
    hashed: ['password'],
    personal: ['claims'],
    // Here, so that the audit trail knows it before the user is made.
    defaults: () => ({ subject: randomUUID() }),
  },
  business: {
    ...{ plural: 'businesses', schema: businessSchema, names: ['code'], fixed: ['code'] },
    ...NOTHING_HIDDEN,
  },
  fund: {
    ...{ plural: 'funds', schema: fundSchema, names: ['business', 'code'], fixed: ['business', 'code'] },
    ...NOTHING_HIDDEN,
  },
  role: { ...{ plural: 'roles', schema: roleSchema, names: ['name'], fixed: ['name'] }, ...NOTHING_HIDDEN },
}

export const NOUN_NAMES = Object.keys(NOUNS) as readonly NounName[]

/** The key of the record that is named so. No name of a record with several names has a slash. */
export const keyOfNames = (names: readonly string[]): string => names.join('/')
