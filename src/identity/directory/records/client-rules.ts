import { didYouMeanOfFew } from '../../../base/config/problem-text.ts'
import { viewOf } from '../../../base/config/schema.ts'
import { isIdentityScope } from '../../../base/config/scopes/catalogue.ts'
import { isTargetValue, parseTarget } from '../../../base/config/scopes/scope-token.ts'
import {
  type Client,
  type ClientAuthMethod,
  SECRET_AUTH_METHODS,
} from '../../../base/contracts/people/people.ts'
import { LONGEST_ACCESS_TOKEN } from '../../../base/kernel/lifetimes.ts'
import { schemeTrouble } from './addresses.ts'
import { isArgon2, isSecretHash } from '../hashing/hasher.ts'
import type { RecordProblems } from './read-records.ts'
import { checkReferences, checkScopes, type ReferableNames } from './references.ts'
import type { ClientForm, ClientRecord } from './schema.ts'

// Parsers treat these characters differently, so such an address can't be compared safely (T6).
const AMBIGUOUS = /[\\\s#*\p{Cc}]/u

/**
 * Why an address can't be a redirect URI (RFC 6749 §3.1.2, RFC 9700 §2.1); undefined if it can. It must be absolute
 * and have no fragment. It must use https, or http on loopback, or, for a public client, an app's own scheme.
 */
function redirectTrouble(uri: string, isPublic: boolean): string | undefined {
  if (AMBIGUOUS.test(uri)) return 'contains a fragment, a wildcard, white space or a backslash'
  const url = URL.parse(uri)
  if (url === null) return 'expected an absolute URI, such as "https://app.example.com/callback"'
  if (url.username !== '' || url.password !== '') return 'contains credentials'
  return schemeTrouble(url, isPublic, 'a code')
}

interface KnownToClients extends ReferableNames {
  readonly clientForm: ClientForm
}

type Rule = (client: ClientRecord, known: KnownToClients, problems: RecordProblems) => void

/** The methods of a client by what the core knows (C6.1.2): as its record says, otherwise each that it can use. */
function methodsOf({ authentication, kind, secretPost }: ClientRecord): readonly ClientAuthMethod[] {
  if (kind === 'public') return ['none']
  if (authentication !== undefined) return authentication
  return secretPost === false ? ['client_secret_basic'] : SECRET_AUTH_METHODS
}

/** Whether the client authenticates by a secret, and so needs one. */
export const usesSecret = (record: ClientRecord, form: ClientForm): boolean =>
  toClient(record, form).authentication.some(isOfSecret)

const isOfSecret = (method: string): boolean => SECRET_AUTH_METHODS.some((each) => each === method)

const checkSecrets: Rule = (client, { clientForm }, problems) => {
  const { kind, secrets } = client
  const others = clientForm.rules.map(({ credentials }) => credentials)
  if (kind === 'public' && secrets.length > 0) problems.error(['secrets'], 'a public client has no secret')
  if (kind !== 'public' && secrets.length === 0 && !others.some(({ areIn }) => areIn(client)))
    problems.error(
      ['secrets'],
      `a ${kind} client needs ${['a secret', ...others.map(({ words }) => words)].join(', or ')}`,
      '`postern hash-password` makes a hash',
    )
  if (secrets.length > 2) problems.error(['secrets'], 'expected at most two: the old and the new one')
  for (const [index, hash] of secrets.entries())
    if (!isSecretHash(hash) && !isArgon2(hash))
      problems.error(
        ['secrets', index],
        'expected a hash, `sha256:…` (for generated secrets) or `$argon2id$…`',
        '`postern hash-password` makes one',
      )
}

const checkAuthentication: Rule = (client, _, problems) => {
  const { authentication, kind, secretPost, secrets } = client
  const at = ['authentication']
  if (secretPost !== undefined) checkSecretPost(client, problems)
  if (kind === 'public') {
    if (authentication !== undefined) problems.error(at, 'a public client has nothing to authenticate with')
    return
  }
  for (const [index, method] of (authentication ?? []).entries())
    if (isOfSecret(method) && secrets.length === 0)
      problems.error([...at, index], `\`${method}\` needs a secret`)
}

function checkSecretPost({ authentication, kind, secretPost }: ClientRecord, problems: RecordProblems): void {
  if (kind === 'public' && secretPost === true)
    problems.error(['secretPost'], 'a public client has no secret to post')
  else if (authentication !== undefined)
    problems.error(['secretPost'], 'stands beside `authentication`: remove it')
  else
    problems.warn(
      ['secretPost'],
      secretPost === true
        ? 'is retired and not needed: both methods are the default of `authentication`'
        : 'is retired: write `authentication: [client_secret_basic]`',
    )
}

const checkGrants: Rule = (client, _, problems) => {
  const { kind, grants, agreement, redirectUris } = client
  if (grants.includes('password') && kind !== 'customer')
    problems.error(['grants'], `a ${kind} client may not use the password grant; only customers may`)
  if (grants.includes('password') && kind === 'customer' && agreement === undefined)
    problems.warn(['agreement'], 'is missing: the password grant is refused until the agreement is signed')
  if (grants.includes('authorization_code') && kind !== 'machine' && redirectUris.length === 0)
    problems.error(['redirectUris'], 'expected at least one, since the client may use the code flow')
  if (agreement !== undefined && Number.isNaN(Date.parse(agreement)))
    problems.error(['agreement'], 'is not a valid date')
  if (kind !== 'machine' && grants.includes('client_credentials'))
    problems.error(['grants'], `a ${kind} client may not use \`client_credentials\`; only machines may`)
}

/** Keys that say something about people or their browsers, and so mean nothing for a machine. */
const FOR_PEOPLE = [
  'agreement',
  'policyUri',
  'tosUri',
  'idTokenAlgorithm',
] as const satisfies readonly (keyof ClientRecord)[]

/** A machine acts for itself and never for a person (RFC 6749 §4.4). */
const checkMachine: Rule = (client, _, problems) => {
  const { businesses, grants, kind, postLogoutRedirectUris, redirectUris, scopes } = client
  if (kind !== 'machine') return
  for (const [index, grant] of grants.entries())
    if (grant !== 'client_credentials')
      problems.error(['grants', index], 'a machine has the grant `client_credentials` alone')
  for (const [index, scope] of scopes.entries())
    if (isIdentityScope(scope))
      problems.error(['scopes', index], `is about a person, and a machine is none: "${scope}"`)
  for (const [key, uris] of Object.entries({ redirectUris, postLogoutRedirectUris }))
    if (uris.length > 0) problems.error([key], 'a machine has no browser that could be sent anywhere')
  for (const key of FOR_PEOPLE)
    if (client[key] !== undefined) problems.error([key], 'means nothing for a machine: no person uses it')
  if (client.requirePkce)
    problems.error(['requirePkce'], 'means nothing for a machine: it sends no authorization request')
  if (businesses.length === 0)
    problems.warn(['businesses'], 'is empty: the machine can get no token, since each is for a business')
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

const checkRedirects: Rule = (client, _, problems) => {
  const { kind, redirectUris, postLogoutRedirectUris } = client
  for (const [key, uris] of Object.entries({ redirectUris, postLogoutRedirectUris }))
    for (const [index, uri] of uris.entries()) {
      const trouble = redirectTrouble(uri, kind === 'public')
      if (trouble !== undefined) problems.error([key, index], trouble)
    }
}

const checkBinding: Rule = ({ kind, requireBinding, requirePkce }, _, problems) => {
  const at = ['requireBinding']
  if (requireBinding) return
  if (kind === 'public')
    problems.error(at, 'is `false`, and a public client always needs PKCE: nothing else protects its codes')
  else if (kind === 'machine') problems.error(at, 'means nothing for a machine: it gets no codes')
  else if (requirePkce) problems.error(at, 'is `false` beside `requirePkce: true`: write one of the two')
  else
    problems.warn(
      at,
      'is `false`: nobody notices if a stolen code is slipped into a login of this client (RFC 9700 §4.5)',
      'leave it out once the client sends PKCE, or `openid` with a `nonce`',
    )
}

const checkSettings: Rule = ({ kind, resource, accessTokenLifetime }, _, problems) => {
  if (kind === 'public' && resource)
    problems.error(['resource'], 'a public client cannot prove who it is, so it may not introspect')
  if (
    accessTokenLifetime !== undefined &&
    (accessTokenLifetime < 1000 || accessTokenLifetime > LONGEST_ACCESS_TOKEN)
  )
    problems.error(['accessTokenLifetime'], 'expected `1s` to `24h`')
}

const RULES: readonly Rule[] = [
  checkSecrets,
  checkAuthentication,
  checkGrants,
  checkMachine,
  checkBusinesses,
  (client, known, problems) => checkScopes(client.scopes, known.catalogue, ['scopes'], problems),
  checkDefaultScope,
  checkRedirects,
  checkBinding,
  checkSettings,
]

export function compileClient(record: ClientRecord, known: KnownToClients, problems: RecordProblems): Client {
  for (const rule of RULES) rule(record, known, problems)
  for (const check of known.clientForm.checks) check(record, problems)
  return toClient(record, known.clientForm)
}

const without = <T extends object>(member: keyof T, of: T): T =>
  Object.fromEntries(Object.entries(of).filter(([key]) => key !== member)) as T

/** The retired key says how a client authenticates, as `methodsOf` has read it. */
export const withoutSecretPost = (record: ClientRecord): ClientRecord => without('secretPost', record)

type Demands = (value: unknown, record: ClientRecord) => boolean

/** Its keys are then the only way in which it authenticates. */
const hasNoSecret: Demands = (_, { secrets }) => secrets.length === 0

/** Members of extensions that hold a client to more than others, and when they do. */
const DEMANDS: Readonly<Record<string, Demands>> = {
  dpop: (value) => value !== 'optional' && value !== 'off',
  requirePar: (value) => value !== false,
  profile: () => true,
  jwks: hasNoSecret,
  jwksUri: hasNoSecret,
}

/**
 * The members of a record whose demands nobody here meets, because their extension is missing. Such a client may hold nothing: it
 * would be held to less than its record says.
 */
export function unmetDemands(record: ClientRecord, { schema }: ClientForm): readonly string[] {
  const known = viewOf(schema).properties ?? {}
  const methods = known['authentication']?.items?.enum ?? []
  return [
    ...Object.entries(record).flatMap(([member, value]) =>
      !(member in known) && DEMANDS[member]?.(value, record) === true ? [member] : [],
    ),
    ...((record.authentication ?? []).every((method) => methods.includes(method)) ? [] : ['authentication']),
  ]
}

export function toClient(record: ClientRecord, form: ClientForm): Client {
  const { secrets, accessTokenLifetime, ...same } = withoutSecretPost(record)
  return {
    ...same,
    ...(unmetDemands(record, form).length > 0 && { disabled: true }),
    secretHashes: secrets,
    authentication: methodsOf(record),
    ...form.rules.reduce<Partial<Client>>((of, { complete }) => ({ ...of, ...complete(record) }), {}),
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: Math.floor(accessTokenLifetime / 1000) }),
  }
}

export function toClientRecord(client: Client): ClientRecord {
  const { secretHashes, accessTokenLifetime, authentication, ...same } = without('limits', client)
  const named = authentication.filter((method) => method !== 'none')
  return {
    ...same,
    secrets: secretHashes,
    ...(named.length > 0 && { authentication: named as NonNullable<ClientRecord['authentication']> }),
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: accessTokenLifetime * 1000 }),
  }
}
