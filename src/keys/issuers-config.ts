import { choice, duration, list, name, optional, section, text, url, type Static } from '../config/pieces.ts'
import type { Report } from '../config/report.ts'
import { isLoopback } from '../kernel/listen-address.ts'
import { LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../kernel/lifetimes.ts'
import { KNOWN_ALGORITHMS } from './signatures.ts'

const issuer = section({
  issuer: url({ description: 'Its `iss`, exactly.' }),
  jwks: url({
    description:
      'Where its keys are. https, or http on loopback. Read at the start, when a token names a key that is not known, and each minute while tokens come: a key that is no longer there is believed no more.',
  }),
  audience: text({ description: 'The `aud` that a token must name.' }),
  typ: list(text({ description: 'A media type without `application/`, in lower case.' }), {
    default: ['at+jwt'],
    minItems: 1,
    description: 'Header types that are accepted. RFC 9068 says `at+jwt`; some issuers say `jwt`.',
  }),
  algorithms: list(choice(KNOWN_ALGORITHMS, { description: 'A signature algorithm.' }), {
    default: ['ES256', 'RS256'],
    minItems: 1,
    description: 'Signature algorithms that are accepted.',
  }),
  scopeClaim: name({
    default: 'scope',
    description:
      'The claim that holds the scope: a text of values divided by spaces, or a list. A token with an item that can be ' +
      'no scope value (RFC 6749 §3.3: white space, quotes, no ASCII) is refused: others would read it differently.',
  }),
  targetClaim: optional(
    name({
      description:
        'The claim that holds the business: its code, or `b/CODE` or `f/CODE/FUND`. Left out, the target is a value of the scope.',
    }),
  ),
  clientClaim: name({
    default: 'client_id',
    description: 'The claim that names the client; `azp`, for some.',
  }),
  leeway: duration({
    orZero: true,
    default: '0s',
    description: 'Tolerance on the expiry, at most `60s`.',
  }),
  longestLife: duration({
    default: '1d',
    description: 'A token whose life (`exp` less `iat`) is longer is refused; at most `30d`.',
  }),
})

export const issuersSchema = list(issuer, {
  default: [],
  description:
    'Foreign issuers whose access tokens are accepted. With one or more, Postern is a sidecar: `/api` only, no identity endpoints, nothing on disk.',
})

export type IssuerConfig = Static<typeof issuer>

/** Reports what the schema can't say. */
export function compileIssuers(issuers: readonly IssuerConfig[], report: Report): void {
  const seen = new Set<string>()
  for (const [index, { issuer: iss, jwks, leeway, longestLife }] of issuers.entries()) {
    const path = ['issuers', index]
    const { protocol, hostname } = new URL(jwks)
    if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
      report.error([...path, 'jwks'], 'is http off loopback: anyone on the way could bring keys of their own')
    if (leeway > LONGEST_LEEWAY) report.error([...path, 'leeway'], 'must be at most 60s')
    if (longestLife > LONGEST_FOREIGN_TOKEN)
      report.error(
        [...path, 'longestLife'],
        'must be at most 30d',
        'revocation rules are kept as long as tokens live',
      )
    if (seen.has(iss)) report.error([...path, 'issuer'], 'stands a second time')
    seen.add(iss)
  }
}
