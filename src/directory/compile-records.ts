import { didYouMeanOfFew, reportUnknownName } from '../config/problem-text.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import { SCOPE } from '../config/scopes/schema.ts'
import { type Code, isTargetValue, parseTarget, readCode } from '../config/scopes/scope-token.ts'
import type { Access, Client, User } from '../contracts/people.ts'
import type { ConfiguredBusiness } from '../contracts/places.ts'
import { LONGEST_ACCESS_TOKEN } from '../kernel/lifetimes.ts'
import { isArgon2, isSecretHash } from './hasher.ts'
import type { RecordProblems } from './read-records.ts'
import {
  type ClientRecord,
  CODE_PATTERN,
  type ConfiguredBusinessRecord,
  type PersonRecord,
  type UserRecord,
} from './schema.ts'
import { compileValues } from './values.ts'

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])
/** RFC 8252 §7.1: an app's own scheme is a reversed domain name, so it has a dot. */
const OWN_SCHEME = /^[a-z][a-z0-9+-]*\.[a-z0-9.+-]+:$/
// Parsers treat these characters differently, so such an address can't be compared safely (T6).
const AMBIGUOUS = /[\\\s#*\p{Cc}]/u

function schemeTrouble(url: URL, isPublic: boolean): string | undefined {
  if (url.protocol === 'https:') return undefined
  if (url.protocol === 'http:')
    return LOOPBACK.has(url.hostname)
      ? undefined
      : 'is http to another machine: a code would cross the network unencrypted'
  return isPublic && OWN_SCHEME.test(url.protocol) ? undefined : 'expected https, or http on loopback'
}

/**
 * Why an address can't be a redirect URI (RFC 6749 §3.1.2, RFC 9700 §2.1); undefined if it can. It must be absolute
 * and have no fragment. It must use https, or http on loopback, or, for a public client, an app's own scheme.
 */
function redirectTrouble(uri: string, isPublic: boolean): string | undefined {
  if (AMBIGUOUS.test(uri)) return 'contains a fragment, a wildcard, white space or a backslash'
  const url = URL.parse(uri)
  if (url === null) return 'expected an absolute URI, such as "https://app.example.com/callback"'
  if (url.username !== '' || url.password !== '') return 'contains credentials'
  return schemeTrouble(url, isPublic)
}

/** The names that records may refer to. They are compiled in this order, so each can refer to those before it. */
export interface ReferableNames {
  readonly catalogue: Catalogue
  readonly businesses: ReadonlyMap<string, unknown>
  readonly roles: ReadonlyMap<string, unknown>
  readonly clients: ReadonlyMap<string, Client>
}

function checkReferences(
  what: string,
  name: string,
  among: ReadonlyMap<string, unknown>,
  at: readonly (string | number)[],
  problems: RecordProblems,
): boolean {
  if (among.has(name)) return true
  reportUnknownName(problems, at, `${what} of the directory`, name, among.keys())
  return false
}

/** Reports scope values that nobody can be given: targets, and those that the catalogue does not have. */
export function checkScopes(
  scopes: readonly string[],
  catalogue: Catalogue,
  at: readonly (string | number)[],
  problems: RecordProblems,
): void {
  for (const [index, value] of scopes.entries()) {
    if (isTargetValue(value)) problems.error([...at, index], 'is a target: those follow from `businesses`')
    else if (!catalogue.has(value))
      reportUnknownName(problems, [...at, index], SCOPE, value, catalogue.values)
  }
}

const CODE = new RegExp(CODE_PATTERN)

function checkFund(fund: unknown, index: number, all: readonly unknown[], problems: RecordProblems): void {
  if (typeof fund !== 'string' || !CODE.test(fund))
    problems.error(
      ['funds', index],
      'expected a code that can stand in a path, such as "SUPER1", in quotes if it is a number',
    )
  else if (all.indexOf(fund) !== index) problems.error(['funds', index], `is listed twice: "${fund}"`)
}

function compileFunds(funds: unknown, problems: RecordProblems): ConfiguredBusiness['funds'] {
  if (funds === 'any') return 'any'
  if (Array.isArray(funds)) {
    // Checked as a set first: checking each index of a long list would take quadratic time.
    const given = new Set<string>(funds)
    const good =
      given.size === funds.length && funds.every((fund) => typeof fund === 'string' && CODE.test(fund))
    if (!good) funds.slice(0, 1000).forEach((fund, index) => checkFund(fund, index, funds, problems))
    return new Set([...given].flatMap((fund) => codesOf(fund)))
  }
  problems.error(['funds'], 'expected a list of fund codes, or `any`')
  return new Set()
}

/** Empty for a code that was reported. */
const codesOf = (given: unknown): Code[] => {
  const code = typeof given === 'string' ? readCode(given) : undefined
  return code === undefined ? [] : [code]
}

/** Reports repeated fund codes and those that can't be in a path. Undefined if the business code itself is bad. */
export function compileBusiness(
  record: ConfiguredBusinessRecord,
  problems: RecordProblems,
): ConfiguredBusiness | undefined {
  const { name, address, phoneNumber, values } = record
  const code = readCode(record.code)
  if (code === undefined) return undefined
  return {
    code,
    name,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
    ...(values !== undefined && { values: compileValues(values, problems) }),
    funds: compileFunds(record.funds, problems),
  }
}

type Rule = (client: ClientRecord, known: ReferableNames, problems: RecordProblems) => void

const checkSecrets: Rule = ({ kind, secrets }, _, problems) => {
  if (kind === 'public' && secrets.length > 0) problems.error(['secrets'], 'a public client has no secret')
  if (kind !== 'public' && secrets.length === 0)
    problems.error(['secrets'], `a ${kind} client needs a secret`, '`postern hash-password` makes a hash')
  if (secrets.length > 2) problems.error(['secrets'], 'expected at most two: the old and the new one')
  for (const [index, hash] of secrets.entries())
    if (!isSecretHash(hash) && !isArgon2(hash))
      problems.error(
        ['secrets', index],
        'expected a hash, `sha256:…` (for generated secrets) or `$argon2id$…`',
        '`postern hash-password` makes one',
      )
}

const checkGrants: Rule = (client, _, problems) => {
  const { kind, grants, agreement, redirectUris } = client
  if (grants.includes('password') && kind !== 'customer')
    problems.error(['grants'], `a ${kind} client may not use the password grant; only customers may`)
  if (grants.includes('password') && kind === 'customer' && agreement === undefined)
    problems.warn(['agreement'], 'is missing: the password grant is refused until the agreement is signed')
  if (grants.includes('authorization_code') && redirectUris.length === 0)
    problems.error(['redirectUris'], 'expected at least one, since the client may use the code flow')
  if (agreement !== undefined && Number.isNaN(Date.parse(agreement)))
    problems.error(['agreement'], 'is not a valid date')
}

const checkBusinesses: Rule = ({ businesses }, known, problems) => {
  for (const [index, code] of businesses.entries())
    checkReferences('business', code, known.businesses, ['businesses', index], problems)
}

/** Reports what would make every request that relies on the default scope fail (C5.4). */
const checkDefaultScope: Rule = ({ defaultScope, businesses, scopes }, { catalogue }, problems) => {
  const values = defaultScope?.split(' ').filter((value) => value !== '') ?? []
  const allowed = catalogue.close(scopes)
  const targets = values.filter(isTargetValue)
  const strange = values.find((value) => !isTargetValue(value) && !allowed.has(value))
  if (strange !== undefined)
    problems.error(
      ['defaultScope'],
      `holds "${strange}", which the client’s \`scopes\` do not allow`,
      didYouMeanOfFew(strange, allowed),
    )
  if (targets.length > 1) problems.error(['defaultScope'], 'holds more than one target')
  for (const value of targets)
    if (!businesses.includes(parseTarget(value)?.business ?? ''))
      problems.error(
        ['defaultScope'],
        `holds "${value}", which is no target at one of the client’s businesses`,
      )
}

const checkRedirects: Rule = ({ kind, redirectUris, postLogoutRedirectUris }, _, problems) => {
  for (const [key, uris] of Object.entries({ redirectUris, postLogoutRedirectUris }))
    for (const [index, uri] of uris.entries()) {
      const trouble = redirectTrouble(uri, kind === 'public')
      if (trouble !== undefined) problems.error([key, index], trouble)
    }
}

const checkSettings: Rule = ({ kind, resource, secretPost, accessTokenLifetime }, _, problems) => {
  if (kind === 'public' && resource)
    problems.error(['resource'], 'a public client cannot prove who it is, so it may not introspect')
  if (kind === 'public' && secretPost) problems.error(['secretPost'], 'a public client has no secret to post')
  if (
    accessTokenLifetime !== undefined &&
    (accessTokenLifetime < 1000 || accessTokenLifetime > LONGEST_ACCESS_TOKEN)
  )
    problems.error(['accessTokenLifetime'], 'expected `1s` to `24h`')
}

const RULES: readonly Rule[] = [
  checkSecrets,
  checkGrants,
  checkBusinesses,
  (client, known, problems) => checkScopes(client.scopes, known.catalogue, ['scopes'], problems),
  checkDefaultScope,
  checkRedirects,
  checkSettings,
]

export function compileClient(record: ClientRecord, known: ReferableNames, problems: RecordProblems): Client {
  for (const rule of RULES) rule(record, known, problems)
  return toClient(record)
}

export function toClient({ secrets, accessTokenLifetime, ...same }: ClientRecord): Client {
  return {
    ...same,
    secretHashes: secrets,
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: Math.floor(accessTokenLifetime / 1000) }),
  }
}

export function toClientRecord({ secretHashes, accessTokenLifetime, ...same }: Client): ClientRecord {
  return {
    ...same,
    secrets: secretHashes,
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: accessTokenLifetime * 1000 }),
  }
}

function checkCustomers({ customers }: UserRecord, known: ReferableNames, problems: RecordProblems): void {
  for (const [index, id] of customers.entries()) {
    const at = ['customers', index]
    if (
      checkReferences('client', id, known.clients, at, problems) &&
      known.clients.get(id)?.kind !== 'customer'
    )
      problems.error(at, `refers to a client that is not a customer: "${id}"`)
  }
}

export function checkAccess(
  { access }: PersonRecord,
  known: Pick<ReferableNames, 'businesses' | 'roles'>,
  problems: RecordProblems,
): void {
  for (const [code, role] of Object.entries(access)) {
    checkReferences('business', code, known.businesses, ['access', code], problems)
    checkReferences('role', role, known.roles, ['access', code], problems)
  }
}

/** Reports what is wrong with a user. Users stay records (people.ts says why), so nothing is returned. */
export function checkUser(record: UserRecord, known: ReferableNames, problems: RecordProblems): void {
  if (!isArgon2(record.password))
    problems.error(['password'], 'expected a hash, `$argon2id$…`', '`postern hash-password` makes one')
  checkCustomers(record, known, problems)
  checkAccess(record, known, problems)
}

/** Roles that do not exist any more are left out. */
export const compileUser = (
  { password, ...person }: UserRecord,
  roles: ReadonlyMap<string, Access>,
): User => ({ ...compilePerson(person, roles), passwordHash: password })

/** The same of a user whose password is not Postern's to verify. */
export function compilePerson({ access, ...same }: PersonRecord, roles: ReadonlyMap<string, Access>): User {
  const entries = Object.entries(access).flatMap(([code, name]) => {
    const role = roles.get(name)
    return role === undefined ? [] : [[code, role] as const]
  })
  return { ...same, passwordHash: undefined, access: new Map(entries) }
}
