import { join } from 'node:path'
import type { Report } from '../config/report.ts'
import {
  choice,
  duration,
  flag,
  list,
  name,
  optional,
  section,
  type Static,
  text,
  url,
} from '../config/schema.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../kernel/lifetimes.ts'
import { isLoopback } from '../kernel/listen-address.ts'
import type { KeysPlan } from './service-keys.ts'
import { SUPPORTED_ALGORITHMS } from './signatures.ts'

export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const satisfies readonly SigningAlgorithm[]

export const keysSchema = section(
  {
    rotation: section(
      {
        automatic: flag({
          default: true,
          description: 'Make the next key automatically. Otherwise `postern keys rotate` makes it.',
        }),
        every: duration({ default: '30d', description: 'How long a key signs before the next one does.' }),
        announce: duration({
          orZero: true,
          default: '1d',
          description:
            'How long a new key is published before it signs. Must be longer than others cache the key set.',
        }),
      },
      {
        default: {},
        description:
          'Replacement of signing keys. An old key stays published until its last token has expired.',
      },
    ),
  },
  {
    default: {},
    description:
      'The keys that sign tokens. The first start makes them, in the folder `keys` of the data folder.',
  },
)

export type KeysConfig = Static<typeof keysSchema>

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** Milliseconds. Caches may keep our key set for five minutes; some clients keep it longer. */
const SHORTEST_ANNOUNCEMENT = 10 * MINUTE

/** Reports what the schema can't express. */
export function compileKeys({ rotation }: KeysConfig, report: Report): void {
  const { announce, every } = rotation
  const at = ['keys', 'rotation', 'announce']
  if (announce >= every) report.error(at, 'must be shorter than `every`')
  if (announce < SHORTEST_ANNOUNCEMENT)
    report.warn(
      at,
      'is less than ten minutes',
      'whoever keeps the key set longer refuses new tokens for a while',
    )
}

/**
 * The plan for the keys of a data folder. Keys of both algorithms always exist, because clients may ask for either on
 * their id_tokens. `longestLife`: milliseconds that any token may live. A day at least, since a client may have that.
 */
export const planKeys = (data: string, { rotation }: KeysConfig, longestLife = DAY): KeysPlan => ({
  folder: join(data, 'keys'),
  algorithms: SIGNING_ALGORITHMS,
  rotation: {
    automatic: rotation.automatic,
    every: Math.floor(rotation.every / 1000),
    announce: Math.floor(rotation.announce / 1000),
    longestLife: Math.ceil(Math.max(DAY, longestLife) / 1000),
  },
})

const issuer = section({
  issuer: url({ description: 'Its `iss`, compared exactly.' }),
  jwks: url({
    description: 'URL of its key set. https, or http on loopback.',
  }),
  audience: text({ description: 'The `aud` that a token must have.' }),
  typ: list(text({ description: 'A media type without `application/`, in lower case.' }), {
    default: ['at+jwt'],
    minItems: 1,
    description: 'Accepted values of the header `typ`. RFC 9068 says `at+jwt`. Some issuers send `jwt`.',
  }),
  algorithms: list(choice(SUPPORTED_ALGORITHMS, { description: 'A signature algorithm.' }), {
    default: ['ES256', 'RS256'],
    minItems: 1,
    description: 'Accepted signature algorithms.',
  }),
  scopeClaim: name({
    default: 'scope',
    description: 'Claim with the scope: values separated by spaces, or a list.',
  }),
  targetClaim: optional(
    name({
      description:
        'Claim with the target: a business code, `b/CODE` or `f/CODE/FUND`. Default: the target is in the scope.',
    }),
  ),
  clientClaim: name({
    default: 'client_id',
    description: 'Claim with the client id. Some issuers use `azp`.',
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

/** Reports what the schema can't express. */
export function compileIssuers(issuers: readonly IssuerConfig[], report: Report): void {
  const seen = new Set<string>()
  for (const [index, { issuer: iss, jwks, leeway, longestLife }] of issuers.entries()) {
    const path = ['issuers', index]
    const { protocol, hostname } = new URL(jwks)
    if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
      report.error([...path, 'jwks'], 'is http to another machine: anyone on the way could replace the keys')
    if (leeway > LONGEST_LEEWAY) report.error([...path, 'leeway'], 'must be at most 60s')
    if (longestLife > LONGEST_FOREIGN_TOKEN)
      report.error(
        [...path, 'longestLife'],
        'must be at most 30d',
        'revocation rules are kept as long as tokens live',
      )
    if (seen.has(iss)) report.error([...path, 'issuer'], 'is listed twice')
    seen.add(iss)
  }
}
