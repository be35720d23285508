import type { Problems } from '../../base/config/problems.ts'
import {
  choice,
  duration,
  flag,
  list,
  literalText,
  opaque,
  optional,
  section,
  type Static,
} from '../../base/config/schema.ts'
import { type Client, SECRET_AUTH_METHODS } from '../../base/contracts/people/people.ts'
import { type Jwk, jwkWeakness } from '../../base/kernel/jwk.ts'
import { checkAddress, HTTPS_ADDRESS } from '../../identity/directory/records/addresses.ts'
import type { ClientCheck, ClientRecord, ClientRules } from '../../identity/directory/records/schema.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { AddedCounter } from '../../operate/watch/metrics/families.ts'

/** The method of authentication by a signed JWT (RFC 7523, OIDC Core §9). */
export const BY_KEY = 'private_key_jwt'

/** The signature algorithms of proofs; `Ed25519` is also called `EdDSA` (RFC 9864). */
export const PROOF_ALGORITHMS = ['ES256', 'PS256', 'Ed25519', 'EdDSA'] as const

/** Whether proofs must have a nonce of this service (RFC 9449 §8): `optional` asks for one where the clock does not fit. */
const NONCE_MODES = ['optional', 'required', 'off'] as const
export type NonceMode = (typeof NONCE_MODES)[number]

const clientKeys = {
  jwks: optional(
    list(opaque<Jwk>({ expected: 'JSON Web Key', description: 'A public key (RFC 7517).' }), {
      after: 'authentication',
      minItems: 1,
      within: 'keys',
      value: 'FILE',
      takesAway: 'less',
      description: 'Its public keys, at most 10, for `private_key_jwt`: a list, or a key set (`keys: […]`).',
    }),
  ),
  jwksUri: optional(
    literalText({
      ...HTTPS_ADDRESS,
      after: 'jwks',
      description: 'Where its public keys are read (`{"keys":[…]}`), instead of `jwks`.',
    }),
  ),
  dpop: choice(['optional', 'required', 'off'], {
    after: 'secretPost',
    default: 'optional',
    description:
      'Whether its tokens are bound to a key by DPoP (RFC 9449): if it sends a proof, always, or never (proofs are refused).',
  }),
  requirePar: flag({
    after: 'dpop',
    default: false,
    takesAway: { to: true },
    description: 'Take authorization requests only if they were pushed (RFC 9126).',
  }),
  profile: optional(
    choice(['fapi2'], {
      after: 'strictRfc6749',
      description:
        'Hold it to the FAPI 2.0 Security Profile: `private_key_jwt`, pushed requests, PKCE and DPoP are required, tokens are signed with ES256, and refresh tokens stay the same.',
    }),
  ),
}

const identityKeys = {
  par: section(
    {
      lifetime: duration({
        default: '60s',
        description: 'Time in which a browser has to open a pushed request, `5s` to `599s`.',
      }),
    },
    { after: 'code', default: {}, description: 'Pushed authorization requests (RFC 9126).' },
  ),
  dpop: section(
    {
      nonce: choice(NONCE_MODES, {
        default: 'optional',
        description:
          'Whether a proof has to have a nonce of this service: where the clock of its client is wrong, always, or never.',
      }),
    },
    {
      after: 'par',
      default: {},
      description: 'Proofs that a client has a key, to which its tokens are bound (DPoP, RFC 9449).',
    },
  ),
}

export const FAPI_KEYS = { 'directory.clients.*': clientKeys, identity: identityKeys }

export const FAPI_FORMS = {
  'directory.clients.*': {
    authentication: optional(
      list(choice([...SECRET_AUTH_METHODS, BY_KEY], { description: 'A method of RFC 7591 §2.' }), {
        minItems: 1,
        unique: true,
        takesAway: 'less',
        description:
          'How it may authenticate. Default: `client_secret_basic` and `client_secret_post` where it has secrets, else `private_key_jwt`.',
      }),
    ),
  },
  'issuers.*': {
    confirmation: choice(['refuse', 'dpop', 'ignore'], {
      default: 'refuse',
      description:
        'What is done with a token bound to a key (`cnf`). With `dpop`, each call proves that key (RFC 9449). With `ignore`, it works without that key.',
    }),
  },
}

/** The members of a client that this folder adds. An older version of a stored record may lack those with a default. */
export interface SecuredClient {
  readonly jwks?: readonly Jwk[]
  readonly jwksUri?: string
  readonly dpop?: 'optional' | 'required' | 'off'
  readonly requirePar?: boolean
  readonly profile?: 'fapi2'
}

/** The values of a client's members that this folder adds. Only this folder reads them. */
export const securityOf = (client: object): SecuredClient => client

interface SecuredIdentity {
  readonly par: Static<(typeof identityKeys)['par']>
  readonly dpop: Static<(typeof identityKeys)['dpop']>
}

/** The same of the section `identity`. */
export const identitySections = (config: object): SecuredIdentity => config as SecuredIdentity

export function checkIdentity({ identity }: Pick<Configuration, 'identity'>, problems: Problems): void {
  const { lifetime } = identitySections(identity).par
  if (lifetime < 5000 || lifetime > 599_000)
    problems.error(['identity', 'par', 'lifetime'], 'must be from 5s to 599s')
}

const hasKeys = ({ jwks, jwksUri }: SecuredClient): boolean => jwks !== undefined || jwksUri !== undefined

const MOST_KEYS = 10

const isTree = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const checkKeys: ClientCheck = (client, problems) => {
  const { kind } = client
  const { jwks = [], jwksUri } = securityOf(client)
  if (kind === 'public' && hasKeys(securityOf(client)))
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

/** The methods that a record names. The core knows those with a secret only. */
const namedMethods = ({ authentication }: ClientRecord): readonly string[] | undefined => authentication

const checkMethods: ClientCheck = (client, problems) => {
  if (client.kind === 'public') return
  const keys = hasKeys(securityOf(client))
  for (const [index, method] of (namedMethods(client) ?? []).entries())
    if (method === BY_KEY && !keys)
      problems.error(['authentication', index], `\`${BY_KEY}\` needs \`jwks\` or \`jwksUri\``)
  const isUnused = !authenticatesByKey(client) && namedMethods(client)?.includes(BY_KEY) !== true
  if (keys && isUnused)
    problems.warn(['authentication'], `does not have \`${BY_KEY}\`: the client’s keys are not used`)
}

const checkMachine: ClientCheck = (client, problems) => {
  if (client.kind === 'machine' && securityOf(client).requirePar === true)
    problems.error(['requirePar'], 'means nothing for a machine: it sends no authorization request')
}

interface Contradiction {
  readonly at: keyof ClientRecord | keyof SecuredClient
  readonly says: string
  readonly found: (client: ClientRecord) => boolean
}

/** A client that is held to FAPI 2.0 may not have any of these (Security Profile §5.3.2, §5.3.3, §5.4.1). */
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
    found: (client) => (namedMethods(client) ?? []).some((method) => method !== BY_KEY),
  },
  {
    at: 'secrets',
    says: 'a secret is no way to authenticate: remove it',
    found: ({ kind, secrets }) => kind !== 'public' && secrets.length > 0,
  },
  { at: 'dpop', says: 'tokens must be bound by DPoP', found: (client) => securityOf(client).dpop === 'off' },
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

const checkProfile: ClientCheck = (client, problems) => {
  const own = securityOf(client)
  if (own.profile === undefined) return
  for (const { at, found, says } of AGAINST_FAPI2)
    if (found(client)) problems.error([at], `contradicts \`profile: fapi2\`: ${says}`)
  if (!hasKeys(own) && client.kind !== 'public')
    problems.error(['profile'], 'needs the client’s keys: `jwks` or `jwksUri`')
}

export const CLIENT_CHECKS: readonly ClientCheck[] = [checkKeys, checkMethods, checkMachine, checkProfile]

/** The members that the profile decides. `AGAINST_FAPI2` has refused all other values. */
const FAPI2 = {
  dpop: 'required',
  requirePar: true,
  requirePkce: true,
  idTokenAlgorithm: 'ES256',
  strictRfc6749: true,
  limits: {
    // Security Profile §5.4.1 leaves RS256 out.
    accessTokenAlgorithm: 'ES256',
    // §5.3.2.1
    codeLifetime: 60_000,
    keepsRefreshTokens: true,
    // §5.3.2.2 asks for as many, no more are needed.
    nonceLength: 64,
  },
} as const satisfies Partial<Client> & SecuredClient

/** Whether `private_key_jwt` is the only method, though no list names it. */
function authenticatesByKey(record: ClientRecord): boolean {
  const own = securityOf(record)
  if (record.kind === 'public') return false
  if (own.profile !== undefined) return true
  return record.authentication === undefined && record.secrets.length === 0 && hasKeys(own)
}

export const CLIENT_RULES: ClientRules = {
  complete: (record) => ({
    ...(authenticatesByKey(record) && { authentication: [BY_KEY] }),
    ...(securityOf(record).profile === 'fapi2' && FAPI2),
  }),
  credentials: {
    words: 'keys (`jwks`, `jwksUri`)',
    areIn: (record) => hasKeys(securityOf(record)) || securityOf(record).profile !== undefined,
  },
}

/** The results of checking a proof: its fault. */
const PROOF_RESULTS = [
  ...['accepted', 'invalid_dpop_proof', 'proof_replayed', 'use_dpop_nonce'],
  ...['bound_token', 'unbound_token', 'other_key'],
  // It was dropped from memory while it could still have been used again.
  'forgotten',
]

export const COUNTERS: readonly AddedCounter[] = [
  {
    of: 'clientKeyFetches',
    name: 'postern_client_key_fetches_total',
    help: 'Readings of the keys of clients at their addresses.',
    labels: { result: ['ok', 'refused', 'failed'] },
    after: 'postern_client_authentications_total',
  },
  {
    of: 'pushedRequests',
    name: 'postern_pushed_requests_total',
    help: 'Pushed authorization requests: those that were taken or not, those decided, and attempts to open an invalid one.',
    labels: { result: ['pushed', 'refused', 'too_many', 'failed', 'decided', 'invalid'] },
    after: 'postern_logout_notices_total',
  },
  {
    of: 'dpopProofs',
    name: 'postern_dpop_proofs_total',
    help: 'Proofs that a client has the key of its tokens, by where they came.',
    labels: { endpoint: ['token', 'par', 'api', 'userinfo'], result: PROOF_RESULTS },
    after: 'postern_pushed_requests_total',
  },
]
