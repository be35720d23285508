/** The issuers whose access tokens a sidecar accepts, as configured (C11.2). */
import { reportUnknownName } from '../../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import {
  choice,
  duration,
  list,
  literalText,
  mapOf,
  name,
  optional,
  section,
  type Static,
  text,
  url,
} from '../../../base/config/schema.ts'
import { LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../../../base/kernel/lifetimes.ts'
import type { Catalogue } from '../../../base/config/scopes/catalogue.ts'
import { SCOPE } from '../../../base/config/scopes/schema.ts'
import { isFetchable } from '../../../base/kernel/listen-address.ts'
import { SUPPORTED_ALGORITHMS } from '../verify/algorithms.ts'

const claim = (description: string, more: { default?: string } = {}) =>
  literalText({
    pattern: '^\\S{1,500}$',
    expected: 'a claim, such as "scope", "realm_access.roles" or "https://example.com/business"',
    description,
    ...more,
  })

/** The name of a media type of `application`: tokens have no other types, so any other name would match nothing. */
const mediaTypeName = (description: string) =>
  literalText({
    pattern: "^([Aa][Pp]{2}[Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/)?[0-9A-Za-z!#$%&'*+.^_`|~-]{1,127}$",
    expected: 'the name of a media type, such as "at+jwt" or "JWT"',
    description,
  })

/** The ways to treat tokens that are bound to a key, where no call proves that key. */
const UNPROVEN = ['refuse', 'ignore'] as const

/** The `audience` of an issuer whose tokens name none. */
export const NO_AUDIENCE = 'none'

const issuer = section({
  name: optional(
    name({
      description: 'A short name. Required with several issuers: limits and lists say `NAME:CLIENT` then.',
    }),
  ),
  issuer: url({ description: 'Its `iss`, compared exactly.' }),
  jwks: optional(
    url({
      description:
        'URL of its key set. https, or http on loopback. Default: as the metadata of the issuer says.',
    }),
  ),
  audience: text({
    description: 'The `aud` that a token must have. `none`: not checked; tokens for other services pass too.',
  }),
  typ: list(mediaTypeName('A media type, with or without `application/`, in any case.'), {
    default: ['at+jwt'],
    minItems: 1,
    description: 'Accepted values of the header `typ`. RFC 9068 says `at+jwt`. Some issuers send `JWT`.',
  }),
  algorithms: list(choice(SUPPORTED_ALGORITHMS, { description: 'A signature algorithm.' }), {
    default: ['ES256', 'RS256'],
    minItems: 1,
    description: 'Accepted signature algorithms.',
  }),
  scopeClaim: claim('Claim with the scope, or with roles: values separated by spaces, or a list.', {
    default: 'scope',
  }),
  scopeMap: optional(
    mapOf(
      list(text({ description: 'A scope value of `scopes`.' }), {
        description: 'The scope values that a token with this role gets.',
      }),
      {
        keys: '^.+$',
        expectedKeys: 'a role of the issuer',
        description:
          'Scope values by role. Other values of the claim are dropped. Default: its values are the scope.',
      },
    ),
  ),
  targetClaim: optional(
    claim(
      'Claim with the target: a business code, `b/CODE` or `f/CODE/FUND`. Default: the target is in the scope.',
    ),
  ),
  clientClaim: claim('Claim with the client id. Some issuers use `azp`.', { default: 'client_id' }),
  subjectClaim: claim('Claim with the subject.', { default: 'sub' }),
  confirmation: choice(UNPROVEN, {
    default: 'refuse',
    description:
      'What is done with a token bound to a key (`cnf`). With `ignore`, it works without that key.',
  }),
  leeway: duration({
    orZero: true,
    default: '0s',
    description: 'Allowed difference between clocks when the expiry is checked, at most `60s`.',
  }),
  longestLife: duration({
    default: '1d',
    description: 'Longest lifetime of a token (`exp` minus `iat`), at most `30d`. Longer ones are refused.',
  }),
})

export const issuersSchema = list(issuer, {
  default: [],
  description:
    'Other issuers whose access tokens are accepted. With one or more, Postern is a sidecar: it serves `/api` only.',
})

export type IssuerConfig = Static<typeof issuer>

/** Whether it is a sidecar: it serves `/api` only, for tokens of foreign issuers, and writes nothing to disk (C11.2). */
export const isSidecar = ({ issuers }: { readonly issuers: readonly unknown[] }): boolean =>
  issuers.length > 0

type IssuerCheck = (config: IssuerConfig, at: KeyPath, problems: Problems, catalogue: Catalogue) => void

const checkAddresses: IssuerCheck = (config, at, problems) => {
  const { jwks } = config
  if (jwks === undefined) checkMetadata(config, at, problems)
  else checkFetched(jwks, [...at, 'jwks'], 'replace the keys', problems)
}

/** Reports an address that is asked without TLS. @param danger what anyone on the way could do */
export function checkFetched(url: string, at: KeyPath, danger: string, problems: Problems): void {
  if (!isFetchable(url)) problems.error(at, `is http to another machine: anyone on the way could ${danger}`)
}

/** Reports an issuer whose metadata cannot be read safely. */
export function checkMetadata(
  { issuer: iss }: Pick<IssuerConfig, 'issuer'>,
  at: KeyPath,
  problems: Problems,
): void {
  const path = [...at, 'issuer']
  checkFetched(
    iss,
    path,
    'name other keys; its metadata is read, since `jwks` or an endpoint is not given',
    problems,
  )
  if (new URL(iss).search !== '')
    problems.error(path, 'has a query, so its metadata cannot be found', 'give `jwks`')
}

const checkTimes: IssuerCheck = ({ leeway, longestLife }, at, problems) => {
  if (leeway > LONGEST_LEEWAY) problems.error([...at, 'leeway'], 'must be at most 60s')
  if (longestLife > LONGEST_FOREIGN_TOKEN)
    problems.error(
      [...at, 'longestLife'],
      'must be at most 30d',
      'revocation rules are kept as long as tokens live',
    )
}

/** The settings that accept tokens which were not issued for this service, or not for this caller: warned of at each start. */
const warnOfRisks: IssuerCheck = ({ issuer: iss, audience, confirmation }, at, problems) => {
  if (audience === NO_AUDIENCE)
    problems.warn(
      [...at, 'audience'],
      `is none: a token that ${iss} issued for any other service is accepted here`,
      'name the audience if the issuer can be made to write one',
    )
  if (confirmation === 'ignore')
    problems.warn(
      [...at, 'confirmation'],
      `is ignore: a token of ${iss} that is bound to a key works for whoever copies it`,
    )
}

const checkScopeMap: IssuerCheck = ({ scopeMap = {} }, at, problems, catalogue) => {
  for (const [role, values] of Object.entries(scopeMap))
    for (const [index, value] of values.entries())
      if (!catalogue.has(value))
        reportUnknownName(problems, [...at, 'scopeMap', role, index], SCOPE, value, catalogue.values)
}

const CHECKS: readonly IssuerCheck[] = [checkAddresses, checkTimes, warnOfRisks, checkScopeMap]

export function compileIssuers(
  issuers: readonly IssuerConfig[],
  problems: Problems,
  catalogue: Catalogue,
): void {
  for (const [index, config] of issuers.entries()) {
    const at = ['issuers', index]
    for (const check of CHECKS) check(config, at, problems, catalogue)
    checkBeside(config, issuers.slice(0, index), at, problems)
    if (issuers.length > 1 && config.name === undefined)
      problems.error([...at, 'name'], 'is missing: with several issuers, limits and lists say `NAME:CLIENT`')
  }
}

/** A proof names the address that its client calls. Made from `listen`, that would be one that no client knows. */
export function requireAddressOfProofs(
  issuers: readonly IssuerConfig[],
  baseUrl: string | undefined,
  problems: Problems,
): void {
  for (const [index, config] of issuers.entries())
    if (provesKeys(config) && baseUrl === undefined)
      problems.error(
        ['issuers', index, 'confirmation'],
        `is ${config.confirmation}, and \`server.baseUrl\` is not set: proofs are made for the address that clients call`,
        'set `server.baseUrl` to that address',
      )
}

/** Whether calls with its tokens prove the key that those are bound to (C4.4a): in a way that an extension adds. */
export const provesKeys = ({ confirmation }: Pick<IssuerConfig, 'confirmation'>): boolean =>
  !UNPROVEN.includes(confirmation)

/** The properties that an issuer may not have in common with those before it. */
function checkBeside(
  config: IssuerConfig,
  before: readonly IssuerConfig[],
  at: KeyPath,
  problems: Problems,
): void {
  if (before.some(({ issuer: iss }) => iss === config.issuer))
    problems.error([...at, 'issuer'], 'is listed twice')
  if (config.name !== undefined && before.some((other) => other.name === config.name))
    problems.error([...at, 'name'], `is the name of two issuers: "${config.name}"`)
}

/** The names of the issuers if there are several; undefined if there is one, or none: then no name is used. */
export const issuerNames = (
  issuers: readonly Pick<IssuerConfig, 'name'>[],
): ReadonlySet<string> | undefined =>
  issuers.length > 1 ? new Set(issuers.flatMap((config) => config.name ?? [])) : undefined

/**
 * What is wrong with a client in a limit or a list: with several issuers it must be `NAME:CLIENT`. Undefined if nothing.
 * @param names what `issuerNames` gives
 */
export function clientKeyProblem(
  client: string,
  names: ReadonlySet<string> | undefined,
): { readonly message: string; readonly hint: string } | undefined {
  const colon = client.indexOf(':')
  if (names === undefined || (colon > 0 && names.has(client.slice(0, colon)))) return undefined
  const [example = 'NAME'] = names
  return {
    message: `does not say which issuer's client it is: "${client}"`,
    hint: `expected NAME:CLIENT, such as "${example}:${client}"`,
  }
}
