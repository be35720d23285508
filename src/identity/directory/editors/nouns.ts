/** The records that operators manage. Commands, routes and checks are all made from these rows (C11.5.1). */
import { createHash, randomUUID } from 'node:crypto'
import { type SchemaView, type TSchema, viewOf } from '../../../base/config/schema.ts'
import type { JsonObject } from '../../../base/http/body/json.ts'
import type { FoundRecord, PlannedChange } from './editing.ts'
import { writtenForm } from '../records/read-records.ts'
import {
  businessSchema,
  clientRecordSchema,
  fundSchema,
  roleSchema,
  userRecordSchema,
} from '../records/schema.ts'

export type NounName = 'client' | 'user' | 'business' | 'fund' | 'role'

export type Written = Readonly<Record<string, unknown>>

export interface Noun {
  readonly plural: string
  /** The schema of a record, with what is known of each member (MemberFacts). Its descriptions are those of the configuration. */
  readonly schema: TSchema
  /** The members that name a record, in the order of its address: of a fund its business and its code. */
  readonly names: readonly string[]
  /** The hidden members that a new record gives in clear text, to be hashed. */
  readonly hashed?: readonly string[]
  /** The values of a new record where nothing is written, besides the defaults of the schema. */
  readonly defaults?: (written: Written) => Written
}

/** The grants of each kind of client (C6.1.5, C6.2). */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  customer: ['password', 'refresh_token'],
  partner: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
  machine: ['client_credentials'],
}

/** The grants of a kind. An unknown kind, which the schema refuses, gets those of a customer. */
const grantsOf = (kind: string): readonly string[] | undefined =>
  Object.hasOwn(GRANTS, kind) ? GRANTS[kind] : GRANTS['customer']

export const NOUNS: Readonly<Record<NounName, Noun>> = {
  client: {
    plural: 'clients',
    schema: clientRecordSchema,
    names: ['id'],
    defaults: ({ kind, requireBinding }) => ({
      grants: grantsOf(String(kind)),
      requirePkce: (kind === 'partner' || kind === 'public') && requireBinding !== false,
    }),
  },
  user: {
    plural: 'users',
    schema: userRecordSchema,
    names: ['username'],
    hashed: ['password'],
    // Drawn here, so that the audit trail has the subject before the user is made.
    defaults: () => ({ subject: randomUUID() }),
  },
  business: { plural: 'businesses', schema: businessSchema, names: ['code'] },
  fund: { plural: 'funds', schema: fundSchema, names: ['business', 'code'] },
  role: { plural: 'roles', schema: roleSchema, names: ['name'] },
}

export const memberFactsOf = ({ schema }: Noun): Readonly<Record<string, SchemaView>> =>
  viewOf(schema).properties ?? {}

/** Whether no edit takes a member, nor shows an answer it: it is a hash. */
const isHidden = (noun: Noun, member: string): boolean => memberFactsOf(noun)[member]?.hidden !== undefined

/** Whether no change may name another value: it is a name of the record, or fixed by the schema. */
export const isFixed = (noun: Noun, member: string): boolean =>
  noun.names.includes(member) || memberFactsOf(noun)[member]?.fixed === true

export const NOUN_NAMES = Object.keys(NOUNS) as readonly NounName[]

/** The key of the record that is named so. No name of a record with several names has a slash. */
export const keyOfNames = (names: readonly string[]): string => names.join('/')

export interface ShownRecord {
  /** Its members, `source`, and of a client `validSecrets` and `oldSecretEndsAt`. */
  readonly record: Written
  /** Changes with each change of the record; never the same for another record of the same key. */
  readonly tag: string
}

/** The length of the digest in a tag, in characters of base64url. */
const DIGEST = 12

const withoutHidden = (noun: Noun, written: Written): Written =>
  Object.fromEntries(Object.entries(written).filter(([member]) => !isHidden(noun, member)))

/** Members in the order of the schema, so that the text is the same however the record was made. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([member, inner]) => [member, inOrder(inner)]))
}

/**
 * The tag of a version. Versions are counted from 1 for each record, so a digest distinguishes a record from a removed
 * one of the same name.
 *
 * @param version undefined: of the configuration
 */
export function tagOf(what: NounName, version: number | undefined, written: Written): string {
  const plain = JSON.stringify(inOrder(withoutHidden(NOUNS[what], written)))
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, DIGEST)
  return `${version ?? 0}-${digest}`
}

const secretsOf = ({ validSecrets, oldSecretEndsAt }: FoundRecord<object>): Written => ({
  ...(validSecrets !== undefined && { validSecrets }),
  ...(oldSecretEndsAt !== undefined && { oldSecretEndsAt: new Date(oldSecretEndsAt).toISOString() }),
})

/** The record as operators see it: in the form in which it is written, without hashes. */
export const shownForm = (what: NounName, found: FoundRecord<object>): Written => ({
  ...withoutHidden(NOUNS[what], writtenForm(NOUNS[what].schema, found.record)),
  ...secretsOf(found),
  ...(found.disabledByCommand && { disabled: true, disabledByCommand: true }),
  source: found.source,
})

export const showRecord = (what: NounName, found: FoundRecord<object>): ShownRecord => ({
  record: shownForm(what, found),
  tag: tagOf(what, found.version, writtenForm(NOUNS[what].schema, found.record)),
})

/** The longest facts as JSON, in characters: less than the admin API accepts from commands. */
const MOST_FACTS = 8000

const plain = (members: object): JsonObject => JSON.parse(JSON.stringify(members)) as JsonObject

/** For the audit trail: before and after; of personal data only the member, of long lists the difference. */
export function changeFacts(
  noun: Noun,
  { keys, written }: Pick<PlannedChange, 'keys' | 'written'>,
): JsonObject {
  const facts = (describe: (before: unknown, after: unknown) => object): JsonObject =>
    plain(
      Object.fromEntries(
        keys.map((key) => {
          const [before, after] = [written.before[key], written.after[key]]
          return [key, isPersonal(noun, key) ? namesOf(before, after) : describe(before, after)]
        }),
      ),
    )
  const forms = [(before: unknown, after: unknown) => ({ before, after }), difference]
  const fitting = forms.map(facts).find((form) => JSON.stringify(form).length <= MOST_FACTS)
  return fitting ?? { keys: [...keys] }
}

function difference(before: unknown, after: unknown): object {
  if (!Array.isArray(before) || !Array.isArray(after)) return { before, after }
  return {
    added: after.filter((item) => !before.includes(item)),
    removed: before.filter((item) => !after.includes(item)),
  }
}

const isTreeOrNone = (value: unknown): boolean => value === undefined || isTree(value)

const isTree = (value: unknown): value is Written => typeof value === 'object' && value !== null

/** The names of the members that differ: `email`, `address.locality`. */
function namesOf(before: unknown = {}, after: unknown = {}): readonly string[] {
  if (!isTree(before) || !isTree(after)) return []
  return Object.keys({ ...before, ...after }).flatMap((name) => {
    const [one, other] = [before[name], after[name]]
    if (isTreeOrNone(one) && isTreeOrNone(other))
      return namesOf(one, other).map((inner) => `${name}.${inner}`)
    return one === other ? [] : [name]
  })
}

const isPersonal = (noun: Noun, member: string): boolean => memberFactsOf(noun)[member]?.personal === true

const factOf = (noun: Noun, member: string, value: unknown): unknown =>
  isPersonal(noun, member) ? namesOf({}, value) : value

/** The members that such a record can have, sections within it too. The values of maps are left as they are. */
function knownPart({ properties }: SchemaView, value: unknown): unknown {
  if (properties === undefined || !isTree(value) || Array.isArray(value)) return value
  const known = Object.entries(value).flatMap(([member, inner]) => {
    const view = Object.hasOwn(properties, member) ? properties[member] : undefined
    return view === undefined ? [] : [[member, knownPart(view, inner)] as const]
  })
  return Object.fromEntries(known)
}

/** Recorded before the check. Members that it cannot have are left out: a misspelled one may be a password. */
export function addedFacts(what: NounName, written: Written): JsonObject {
  const noun = NOUNS[what]
  const members = Object.entries(knownPart(viewOf(noun.schema), written) as Written).filter(
    ([member]) => !isFixed(noun, member) && !isHidden(noun, member),
  )
  const facts = plain(
    Object.fromEntries(members.map(([member, value]) => [member, factOf(noun, member, value)])),
  )
  return JSON.stringify(facts).length <= MOST_FACTS ? facts : { keys: members.map(([member]) => member) }
}
