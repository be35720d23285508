import { didYouMeanOfFew } from '../../../base/config/problem-text.ts'
import { isIdentityScope } from '../../../base/config/scopes/catalogue.ts'
import { isTargetValue, parseTarget } from '../../../base/config/scopes/scope-token.ts'
import type { Client, ClientAuthMethod } from '../../../base/contracts/people/people.ts'
import { jwkWeakness } from '../../../base/kernel/jwk.ts'
import { LONGEST_ACCESS_TOKEN } from '../../../base/kernel/lifetimes.ts'
import { checkAddress, schemeTrouble } from './addresses.ts'
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

type Rule = (client: ClientRecord, known: ReferableNames, problems: RecordProblems) => void

const hasKeys = ({ jwks, jwksUri }: ClientRecord): boolean => jwks !== undefined || jwksUri !== undefined

/** The methods with a secret. */
export const BY_SECRET: readonly ClientAuthMethod[] = ['client_secret_basic', 'client_secret_post']

/** How the client authenticates (C6.1.2): as its record says, otherwise in each way that it can. */
export function methodsOf(record: ClientRecord): readonly ClientAuthMethod[] {
  const { authentication, kind, profile, secretPost, secrets } = record
  if (kind === 'public') return ['none']
  if (profile === 'fapi2') return ['private_key_jwt']
  if (authentication !== undefined) return authentication
  if (secrets.length === 0 && hasKeys(record)) return ['private_key_jwt']
  return secretPost === false ? ['client_secret_basic'] : BY_SECRET
}

const checkSecrets: Rule = (client, _, problems) => {
  const { kind, secrets } = client
  if (kind === 'public' && secrets.length > 0) problems.error(['secrets'], 'a public client has no secret')
  if (kind !== 'public' && secrets.length === 0 && !hasKeys(client) && client.profile === undefined)
    problems.error(
      ['secrets'],
      `a ${kind} client needs a secret, or keys (\`jwks\`, \`jwksUri\`)`,
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

const MOST_KEYS = 10

const isTree = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const checkKeys: Rule = (client, _, problems) => {
  const { jwks = [], jwksUri, kind } = client
  if (kind === 'public' && hasKeys(client))
    problems.error(
      [jwksUri === undefined ? 'jwks' : 'jwksUri'],
      'a public client has no key that it could keep',
    )
  if (jwks.length > 0 && jwksUri !== undefined)
    problems.error(['jwksUri'], 'stands beside `jwks`: write one of the two')
  if (jwks.length > MOST_KEYS) problems.error(['jwks'], `expected at most ${MOST_KEYS} keys`)
  for (const [index, key] of jwks.slice(0, MOST_KEYS).entries()) {
    const trouble = isTree(key) ? jwkWeakness(key) : 'expected a JSON Web Key: an object with `kty`'
    if (trouble !== undefined) problems.error(['jwks', index], trouble)
  }
  checkAddress('jwksUri', jwksUri, 'its keys', problems)
}

const checkAuthentication: Rule = (client, _, problems) => {
  const { authentication, kind, secretPost, secrets } = client
  const at = ['authentication']
  if (secretPost !== undefined) checkSecretPost(client, problems)
  if (kind === 'public') {
    if (authentication !== undefined) problems.error(at, 'a public client has nothing to authenticate with')
    return
  }
  const methods = methodsOf(client)
  for (const [index, method] of (authentication ?? []).entries()) {
    const needs = method === 'private_key_jwt' ? hasKeys(client) : secrets.length > 0
    if (!needs)
      problems.error(
        [...at, index],
        `\`${method}\` needs ${method === 'private_key_jwt' ? '`jwks` or `jwksUri`' : 'a secret'}`,
      )
  }
  if (hasKeys(client) && !methods.includes('private_key_jwt'))
    problems.warn(at, 'does not have `private_key_jwt`: the client’s keys are not used')
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
  for (const key of ['requirePar', 'requirePkce'] as const)
    if (client[key]) problems.error([key], 'means nothing for a machine: it sends no authorization request')
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

interface Contradiction {
  readonly at: keyof ClientRecord
  readonly says: string
  readonly found: (client: ClientRecord) => boolean
}

/** What a client that is held to FAPI 2.0 may not have (Security Profile §5.3.2, §5.3.3, §5.4.1). */
const AGAINST_FAPI2: readonly Contradiction[] = [
  { at: 'kind', says: 'a public client cannot prove who it is', found: ({ kind }) => kind === 'public' },
  {
    at: 'grants',
    says: 'the password grant is not allowed',
    found: ({ grants }) => grants.includes('password'),
  },
  {
    at: 'authentication',
    says: 'the only method is `private_key_jwt`',
    found: ({ authentication = [] }) => authentication.some((method) => method !== 'private_key_jwt'),
  },
  {
    at: 'secrets',
    says: 'a secret is no way to authenticate: remove it',
    found: ({ kind, secrets }) => kind !== 'public' && secrets.length > 0,
  },
  { at: 'dpop', says: 'tokens must be bound by DPoP', found: ({ dpop }) => dpop === 'off' },
  {
    at: 'requireBinding',
    says: 'PKCE is required',
    found: ({ requireBinding }) => !requireBinding,
  },
  {
    at: 'idTokenAlgorithm',
    says: 'the algorithm is ES256',
    found: ({ idTokenAlgorithm = 'ES256' }) => idTokenAlgorithm !== 'ES256',
  },
  {
    at: 'strictRfc6749',
    says: 'answers are as RFC 6749 says',
    found: ({ strictRfc6749 }) => strictRfc6749 === false,
  },
]

const checkProfile: Rule = (client, _, problems) => {
  if (client.profile === undefined) return
  for (const { at, found, says } of AGAINST_FAPI2)
    if (found(client)) problems.error([at], `contradicts \`profile: fapi2\`: ${says}`)
  if (!hasKeys(client) && client.kind !== 'public')
    problems.error(['profile'], 'needs the client’s keys: `jwks` or `jwksUri`')
}

/** The members that the profile decides. `AGAINST_FAPI2` has refused all other values. */
const FAPI2 = {
  dpop: 'required',
  requirePar: true,
  requirePkce: true,
  idTokenAlgorithm: 'ES256',
  strictRfc6749: true,
} as const satisfies Partial<Client>

const RULES: readonly Rule[] = [
  checkSecrets,
  checkKeys,
  checkAuthentication,
  checkGrants,
  checkMachine,
  checkBusinesses,
  (client, known, problems) => checkScopes(client.scopes, known.catalogue, ['scopes'], problems),
  checkDefaultScope,
  checkRedirects,
  checkBinding,
  checkProfile,
  checkSettings,
]

interface KnownToClients extends ReferableNames {
  readonly clientForm: ClientForm
}

export function compileClient(record: ClientRecord, known: KnownToClients, problems: RecordProblems): Client {
  for (const rule of RULES) rule(record, known, problems)
  for (const check of known.clientForm.checks) check(record, problems)
  return toClient(record)
}

/** The retired key says how a client authenticates, as `methodsOf` has read it. */
export const withoutSecretPost = (record: ClientRecord): ClientRecord =>
  Object.fromEntries(Object.entries(record).filter(([key]) => key !== 'secretPost')) as ClientRecord

export function toClient(record: ClientRecord): Client {
  const { secrets, accessTokenLifetime, ...same } = withoutSecretPost(record)
  return {
    ...same,
    secretHashes: secrets,
    authentication: methodsOf(record),
    ...(record.profile === 'fapi2' && FAPI2),
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: Math.floor(accessTokenLifetime / 1000) }),
  }
}

export function toClientRecord(client: Client): ClientRecord {
  const { secretHashes, accessTokenLifetime, authentication, ...same } = client
  const named = authentication.filter((method) => method !== 'none')
  return {
    ...same,
    secrets: secretHashes,
    ...(named.length > 0 && { authentication: named }),
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: accessTokenLifetime * 1000 }),
  }
}
