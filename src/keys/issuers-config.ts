/** The issuers whose access tokens a sidecar accepts, as configured (C11.2). */
import { didYouMean } from '../config/problem-text.ts'
import type { KeyPath, Report } from '../config/report.ts'
import {
  choice,
  duration,
  list,
  literalText,
  mapOf,
  optional,
  section,
  type Static,
  text,
  url,
} from '../config/schema.ts'
import { LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../kernel/lifetimes.ts'
import { isLoopback } from '../kernel/listen-address.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import { SUPPORTED_ALGORITHMS } from './signatures.ts'

const claim = (description: string, more: { default?: string } = {}) =>
  literalText({
    pattern: '^\\S{1,500}$',
    expected: 'a claim, such as "scope", "realm_access.roles" or "https://example.com/business"',
    description,
    ...more,
  })

/** The `audience` of an issuer whose tokens name none. */
export const NO_AUDIENCE = 'none'

const issuer = section({
  issuer: url({ description: 'Its `iss`, compared exactly.' }),
  jwks: url({
    description: 'URL of its key set. https, or http on loopback.',
  }),
  audience: text({
    description: 'The `aud` that a token must have. `none`: not checked; tokens for other services pass too.',
  }),
  typ: list(text({ description: 'A media type, with or without `application/`, in any case.' }), {
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
  confirmation: choice(['refuse', 'ignore'], {
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

/** A check of one issuer beyond the schema. */
type IssuerCheck = (config: IssuerConfig, at: KeyPath, report: Report, catalogue: Catalogue) => void

const checkAddress: IssuerCheck = ({ jwks }, at, report) => {
  const { protocol, hostname } = new URL(jwks)
  if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
    report.error([...at, 'jwks'], 'is http to another machine: anyone on the way could replace the keys')
}

const checkTimes: IssuerCheck = ({ leeway, longestLife }, at, report) => {
  if (leeway > LONGEST_LEEWAY) report.error([...at, 'leeway'], 'must be at most 60s')
  if (longestLife > LONGEST_FOREIGN_TOKEN)
    report.error(
      [...at, 'longestLife'],
      'must be at most 30d',
      'revocation rules are kept as long as tokens live',
    )
}

/** The settings that accept tokens which were not issued for this service, or not for this caller: told at each start. */
const warnOfRisks: IssuerCheck = ({ issuer: iss, audience, confirmation }, at, report) => {
  if (audience === NO_AUDIENCE)
    report.warn(
      [...at, 'audience'],
      `is none: a token that ${iss} issued for any other service is accepted here`,
      'name the audience if the issuer can be made to write one',
    )
  if (confirmation === 'ignore')
    report.warn(
      [...at, 'confirmation'],
      `is ignore: a token of ${iss} that is bound to a key works for whoever copies it`,
    )
}

const checkScopeMap: IssuerCheck = ({ scopeMap = {} }, at, report, catalogue) => {
  for (const [role, values] of Object.entries(scopeMap))
    for (const [index, value] of values.entries())
      if (!catalogue.has(value))
        report.error(
          [...at, 'scopeMap', role, index],
          `names no scope of the catalogue: "${value}"`,
          didYouMean(value, catalogue.values),
        )
}

const CHECKS: readonly IssuerCheck[] = [checkAddress, checkTimes, warnOfRisks, checkScopeMap]

/** Reports what the schema can't express. */
export function compileIssuers(issuers: readonly IssuerConfig[], report: Report, catalogue: Catalogue): void {
  const seen = new Set<string>()
  for (const [index, config] of issuers.entries()) {
    const at = ['issuers', index]
    for (const check of CHECKS) check(config, at, report, catalogue)
    if (seen.has(config.issuer)) report.error([...at, 'issuer'], 'is listed twice')
    seen.add(config.issuer)
  }
}
