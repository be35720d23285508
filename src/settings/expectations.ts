/** A file of expectations (C14.6): calls, and what the configuration shall decide about each. For a deployer's own CI. */
import { loadFile } from '../config/load.ts'
import { didYouMeanOfFew } from '../config/problem-text.ts'
import type { Environment } from '../config/references.ts'
import type { Problems } from '../config/problems.ts'
import { choice, list, literalText, opaque, optional, section, type Static } from '../config/schema.ts'
import { CHECKS } from '../gateway/order.ts'
import { plainAddress } from '../http/addresses.ts'
import type { FaultCode } from '../kernel/faults.ts'

/** Why no token is given to a client for a user: a row may expect that, too. */
export const NO_TOKEN = ['invalid_client', 'unauthorized_client', 'invalid_scope', 'invalid_grant'] as const

const REASONS: readonly FaultCode[] = [...CHECKS.flatMap(({ faults }) => faults), ...NO_TOKEN]

const LONGEST = 8192
const plainText = (description: string, pattern: string, expected: string) =>
  literalText({ description, pattern, expected })

const TARGET = '^(target:)?(b/[^/ ]+|f/[^/ ]+/[^/ ]+)$'

const row = section({
  call: plainText(
    'The method and the path: `GET /api/1.0/b/ACME/fund-data/fund-list`. The path may have a query.',
    `^[A-Z]+ /\\S{0,${LONGEST}}$`,
    'a method and a path, such as "GET /api/1.0/b/ACME/fund-data/fund-list"',
  ),
  client: optional(
    plainText('The client whose token it is. Left out: a call without a token.', '^.+$', 'a client id'),
  ),
  user: optional(
    plainText('The user whom the token speaks for: the name, or the subject.', '^.+$', 'a user name'),
  ),
  target: optional(
    plainText('The target of the token: `b/ACME` or `f/ACME/SUPER1`.', TARGET, '"b/CODE" or "f/CODE/FUND"'),
  ),
  scope: optional(
    plainText(
      'The scope that the token is asked for. Default: all that the two may have.',
      '^\\S.*$',
      'scope values',
    ),
  ),
  accept: optional(plainText('The header `Accept`.', '^.+$', 'a value of the header Accept')),
  contentType: optional(
    plainText('The header `Content-Type`. Default with a body: `application/json`.', '^.+$', 'a media type'),
  ),
  body: optional(
    opaque<unknown>({
      description: 'The body: JSON, or a text as it is. Left out: the call is not judged by its body.',
      expected: 'JSON or text',
    }),
  ),
  from: optional(
    plainText('The address that the call comes from. Default: loopback.', '^\\S+$', 'an IP address'),
  ),
  expect: choice(['allowed', ...REASONS], {
    description: '`allowed`, or the reason of the refusal.',
    expected: '`allowed`, or the reason of a refusal as the log names it',
  }),
})

export const expectationsSchema = section({
  calls: list(row, { description: 'The calls, and what is expected of each.', minItems: 1 }),
})

export type Expectation = Static<typeof row>

/** The names that rows may use. Functions, since a directory may be large. */
export interface PartyNames {
  readonly hasClient: (id: string) => boolean
  readonly hasUser: (nameOrSubject: string) => boolean
  readonly clients: () => Iterable<string>
  readonly users: () => Iterable<string>
  /** In a sidecar: nobody here knows what a token would be granted, so rows must say it. */
  readonly needScope?: boolean
}

export interface ReadExpectations {
  readonly calls: readonly Expectation[]
  /** Knows the line of each row: `locate(['calls', 3])`. */
  readonly problems: Problems
}

function checkRow(
  { client, user, target, scope, from }: Expectation,
  at: number,
  known: PartyNames,
  problems: Problems,
): void {
  const path = ['calls', at]
  if (from !== undefined && plainAddress(from) === undefined)
    problems.error([...path, 'from'], `expected an IP address, got "${from}"`)
  if (client === undefined)
    for (const [key, value] of Object.entries({ user, target, scope }))
      if (value !== undefined) problems.error([...path, key], 'is of a token, which needs a `client` too')
  if (client !== undefined && user === undefined)
    problems.error([...path, 'user'], 'is missing: a token is for a client and a user')
  if (client !== undefined && scope === undefined && known.needScope === true)
    problems.error([...path, 'scope'], 'is missing: a sidecar does not know what its issuer would grant')
  if (client !== undefined && !known.hasClient(client))
    problems.error(
      [...path, 'client'],
      `names no client: "${client}"`,
      didYouMeanOfFew(client, known.clients()),
    )
  if (user !== undefined && !known.hasUser(user))
    problems.error([...path, 'user'], `names no user: "${user}"`, didYouMeanOfFew(user, known.users()))
}

/** Reads a file of expectations. All problems are in the report; the rows are to be used only if it has not failed. */
export function readExpectations(
  file: string,
  environment: Environment,
  known: PartyNames,
): ReadExpectations {
  const { value, problems } = loadFile(expectationsSchema, file, environment)
  if (value === undefined || problems.failed) return { calls: [], problems }
  for (const [at, expectation] of value.calls.entries()) checkRow(expectation, at, known, problems)
  return { calls: value.calls, problems }
}
