import { readCode } from '../../base/config/scopes/scope-token.ts'
import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { type ClientAuthMethod, SECRET_AUTH_METHODS } from '../../base/contracts/people/people.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { publicDocument } from '../steps/answers.ts'
import { PERSON_CLAIMS } from '../tokens/claims.ts'
import type { AddedMethod } from '../dependencies/client-security.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import type { Arrived, Endpoint, Step, StepDependencies } from '../steps/endpoint.ts'
import { GRANTS } from '../grants/grants.ts'
import type { Asset } from '../pages/theme.ts'

const SIGNING = ['RS256', 'ES256'] as const
const TOKEN_CLAIMS = ['sub', 'iss', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash'] as const

/**
 * The discovery document (C6.3.2; OIDC Discovery §3, RFC 8414 §2, RFC 9207 §3): what the endpoint table, the
 * table of grants and the catalogue hold. Parameters of `announcedAs` endpoints only are announced.
 */
export function discoveryDocument(
  { urls, catalogue, config, security }: Pick<IdentityDeps, 'urls' | 'catalogue' | 'config' | 'security'>,
  endpoints: readonly Endpoint[],
): Readonly<Record<string, unknown>> {
  const { algorithm } = config.idToken
  return {
    issuer: urls.issuer,
    ...announcements(urls.issuer, endpoints, security.methods),
    userinfo_endpoint: `${urls.api}/api/1.0/u/connect/userinfo`,
    scopes_supported: catalogue.values,
    claims_supported: [...TOKEN_CLAIMS, ...PERSON_CLAIMS],
    claim_types_supported: ['normal'],
    grant_types_supported: [...GRANTS.keys()],
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'form_post'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [algorithm, ...SIGNING.filter((other) => other !== algorithm)],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
  }
}

function announcements(
  issuer: string,
  endpoints: readonly Endpoint[],
  added: readonly AddedMethod[],
): Readonly<Record<string, unknown>> {
  const { origin, pathname } = new URL(issuer)
  const issuerPath = pathname.replace(/\/$/, '')
  const methods = [...SECRET_AUTH_METHODS, ...added.map(({ name }) => name)]
  const algorithms = added.flatMap((each) => each.algorithms)
  const members = endpoints.flatMap(({ announcedAs, authenticates, path }): [string, unknown][] => {
    if (announcedAs === undefined) return []
    const address: [string, unknown] = [announcedAs, origin + path(issuerPath)]
    if (authenticates === undefined) return [address]
    return [
      address,
      [`${announcedAs}_auth_methods_supported`, authenticates === 'all' ? [...methods, 'none'] : methods],
      [`${announcedAs}_auth_signing_alg_values_supported`, algorithms],
    ]
  })
  return Object.fromEntries(members)
}

// Short, because both may change by a reload; a new key is published well before it signs (C6.3.4).
const MAX_AGE_SECONDS = 300

const METHODS_MEMBER = /_auth_methods_supported$/
const ALGORITHMS_MEMBER = /_auth_signing_alg_values_supported$/
/** The method that RFC 8414 §2 takes if nothing is announced. */
const USUAL: ClientAuthMethod = 'client_secret_basic'

/** The document with that only which some client uses: libraries choose from the lists. */
function withUses({ logouts, metadata, security }: StepDependencies, had: ReadonlySet<string>): string {
  const signs = security.methods.some(({ name }) => had.has(name))
  const narrow = (name: string, value: unknown): unknown => {
    if (ALGORITHMS_MEMBER.test(name)) return signs ? value : undefined
    if (name === 'grant_types_supported' && Array.isArray(value))
      return value.filter((grant) => grant !== 'client_credentials' || had.has('client_credentials'))
    if (!METHODS_MEMBER.test(name) || !Array.isArray(value)) return value
    const kept = value.filter((method) => had.has(String(method)))
    return kept.length > 0 ? kept : [USUAL]
  }
  const document = JSON.parse(metadata, narrow) as Readonly<Record<string, unknown>>
  return JSON.stringify({
    ...document,
    ...security.proofMetadata(had),
    ...(had.has('logout_notices') && {
      ...logouts.metadata,
      claims_supported: [...TOKEN_CLAIMS, 'sid', ...PERSON_CLAIMS],
    }),
    ...security.metadata(had),
  })
}

/** The discovery document (C6.3.2). One document serves both addresses. */
export const answerMetadata: Step<Arrived, Answer> = async (_, dependencies) =>
  publicDocument(withUses(dependencies, await dependencies.clientMethods.current()), MAX_AGE_SECONDS)

export const RESOURCE_PATH = '/.well-known/oauth-protected-resource'

const OF_BUSINESS = /^\/api\/1\.0\/b\/(?<code>[^/]+)$/

/**
 * The path of the resource that a path asks about: empty for the API as a whole. By the form alone, so that nobody learns
 * which businesses exist (C4.12). Undefined for any other path.
 */
export function resourceAt(path: string): string | undefined {
  if (!path.startsWith(RESOURCE_PATH)) return undefined
  const rest = path.slice(RESOURCE_PATH.length)
  const code = OF_BUSINESS.exec(rest)?.groups?.['code']
  return rest === '' || (code !== undefined && readCode(code) !== undefined) ? rest : undefined
}

/** The document that says who issues the tokens that the API takes (C6.3.2a, RFC 9728). */
export const answerResource: Step<Arrived, Answer> = async (
  { exchange: { target } },
  { catalogue, clientMethods, security, urls },
) => {
  const path = target instanceof Fault ? undefined : resourceAt(target.path)
  if (path === undefined) throw new Fault('outside')
  const document = {
    resource: urls.api + path,
    authorization_servers: [urls.issuer],
    scopes_supported: catalogue.values,
    bearer_methods_supported: ['header'],
    ...security.proofMetadata(await clientMethods.current()),
  }
  return publicDocument(JSON.stringify(document), MAX_AGE_SECONDS)
}

/** The public keys (C6.3.2, RFC 7517). */
export const answerJwks: Step<Arrived, Answer> = (_, { publicKeys }) =>
  publicDocument(JSON.stringify(publicKeys.jwks()), MAX_AGE_SECONDS)

/** Pages name an asset with its content's hash, so that it may be kept; for a day, because requests may leave out the hash. */
const serve =
  (pick: (dependencies: StepDependencies) => Asset | undefined): Step<Arrived, Answer> =>
  (_, dependencies) => {
    const asset = pick(dependencies)
    if (asset === undefined) throw new Fault('outside')
    return {
      status: 200,
      headers: {
        'Content-Type': asset.contentType,
        'Cache-Control': 'public, max-age=86400',
        'X-Content-Type-Options': 'nosniff',
        // An SVG opened by its address is a document, and may hold a script.
        'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
        'Cross-Origin-Resource-Policy': 'same-origin',
      },
      body: asset.bytes,
    }
  }

export const stylesheet: Step<Arrived, Answer> = serve(({ theme }) => theme.stylesheet)
export const logo: Step<Arrived, Answer> = serve(({ theme }) => theme.logo)
