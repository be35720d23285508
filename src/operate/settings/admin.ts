import type { Problems } from '../../base/config/problems.ts'
import {
  choice,
  list,
  listenAddress,
  optional,
  secret,
  section,
  type Static,
  text,
} from '../../base/config/schema.ts'
import { isSecretHash } from '../../identity/directory/hashing/hasher.ts'
import { isLoopback, splitListenAddress } from '../../base/kernel/listen-address.ts'
import { INSTANT_PATTERN } from '../../base/kernel/units.ts'

/** The roles of operators (operate/operation/operators.ts says what each may do). */
export const ROLES = ['view', 'operate', 'administer', 'audit'] as const

export const OPERATOR_NAME = {
  pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$',
  expected: 'a name of at most 64 letters, digits, ".", "_", "@" and "-"',
} as const

/** The name of the one token that may do everything. */
export const ADMIN = 'admin'

const tokenSchema = section({
  name: text({
    ...OPERATOR_NAME,
    description: 'Who has the token. Records of what it did name it.',
  }),
  role: choice(ROLES, {
    description:
      '`view`: status and metrics. `operate`: orders too. `administer`: all changes. `audit`: the trail.',
  }),
  hash: secret({ plain: true, description: '`sha256:…`, as `postern admin-token add` prints it.' }),
  expires: optional(
    text({
      pattern: INSTANT_PATTERN,
      expected: 'a time with its zone, such as "2026-02-01T20:00:00Z"',
      description: 'From then on the token is refused. Default: never.',
    }),
  ),
})

export const adminSchema = section(
  {
    listen: listenAddress({
      default: '127.0.0.1:9090',
      description: 'Address and port to listen on.',
    }),
    token: optional(
      secret({
        pattern: '^[!-~]+$',
        expected: '{ file: … } or { env: … } of visible ASCII characters',
        description:
          'Bearer token of the admin listener. Required if it does not listen on loopback. Health needs no token.',
      }),
    ),
    tokens: list(tokenSchema, {
      default: [],
      takesAway: 'less',
      description: 'Tokens of named operators, each with a role. A reload puts changes in force.',
    }),
    probes: optional(
      listenAddress({
        description:
          'Address of a second, read-only listener for `/metrics` and `/health/*`. It needs no token.',
      }),
    ),
  },
  { default: {}, description: 'The listener for metrics, health and the admin API.' },
)

export type AdminConfig = Static<typeof adminSchema>

/** The fewest characters of a token: shorter ones can be guessed over a network. */
const TOKEN_LENGTH = 16

/** Refuses an admin listener that strangers could use (C11.1, T7). */
export function compileAdmin({ listen, token, tokens }: AdminConfig, problems: Problems): void {
  checkTokens(tokens, problems)
  if (token === undefined && !isLoopback(splitListenAddress(listen).host)) {
    problems.error(
      ['admin', 'listen'],
      'is off loopback without authentication',
      'set `admin.token`, or give probes and scrapers the read-only `admin.probes`',
    )
  }
  if (token !== undefined && token.length < TOKEN_LENGTH) {
    problems.error(['admin', 'token'], `is too short; expected at least ${TOKEN_LENGTH} characters`)
  }
}

/** One name is one operator, so that a record says who it was. */
function checkTokens(tokens: AdminConfig['tokens'], problems: Problems): void {
  const names = new Set<string>([ADMIN])
  const hashes = new Set<string>()
  for (const [index, { name, hash, expires }] of tokens.entries()) {
    const at = (key: string) => ['admin', 'tokens', index, key]
    if (names.has(name))
      problems.error(at('name'), `is taken: "${name}"`, 'give each token a name of its own')
    if (!isSecretHash(hash))
      problems.error(
        at('hash'),
        'is no hash of a token',
        'make one by `postern admin-token add NAME --role ROLE`',
      )
    else if (hashes.has(hash))
      problems.error(at('hash'), 'is that of another token', 'make a token of its own')
    if (expires !== undefined && Number.isNaN(Date.parse(expires)))
      problems.error(at('expires'), 'is no time of the calendar')
    names.add(name)
    hashes.add(hash)
  }
}
