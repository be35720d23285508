/** A file of expectations (C14.6): calls, and what the configuration shall decide about each. For a deployer's own CI. */
import { loadFile } from '../../base/config/load.ts'
import { didYouMeanOfFew } from '../../base/config/problem-text.ts'
import type { Problems } from '../../base/config/problems.ts'
import {
  choice,
  list,
  literalText,
  opaque,
  optional,
  section,
  type Static,
} from '../../base/config/schema.ts'
import type { Environment } from '../../base/config/validate.ts'
import { type ExplainedCheck, type Explanation, NO_TOKEN } from '../../base/contracts/calls/explanation.ts'
import { checkOf, CHECKS, stepFaults } from '../../gateway/decide/order.ts'
import { plainAddress } from '../../base/http/head/addresses.ts'
import type { FaultCode } from '../../base/kernel/faults.ts'

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
    plainText(
      'The user whom the token speaks for: the name, or the subject. A machine has none.',
      '^.+$',
      'a user name',
    ),
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

/** The names that rows may use. Functions, because a directory may be large. */
export interface PartyNames {
  readonly hasClient: (id: string) => boolean
  /** Whether the client is one that no user belongs to (C6.1.5a). */
  readonly isMachine: (id: string) => boolean
  readonly hasUser: (nameOrSubject: string) => boolean
  readonly clients: () => Iterable<string>
  readonly users: () => Iterable<string>
  /** In a sidecar: nobody here knows what a token would be granted, so rows must say it. */
  readonly needScope?: boolean
}

interface ReadExpectations {
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
  if (client !== undefined && user === undefined && !known.isMachine(client))
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

/** The rows are to be used only if `problems` has not failed. */
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

/** A row whose call is decided otherwise than expected. */
export interface Mismatch {
  /** Its index in the file. */
  readonly row: number
  readonly expected: string
  /** `allowed`, `unknown`, or the reason of the refusal. */
  readonly actual: string
  /** What would change it, in a sentence or two. */
  readonly words: string
}

const MEDIA_TYPE = 'application/json'

/** The call that a row describes. `everything`: the scope of a token that is asked for all there is. */
export function expectedCall(expectation: Expectation, everything: string) {
  const { call, client, user, target, scope = everything, accept, body, from } = expectation
  const [method = '', path = ''] = call.split(' ')
  const contentType = expectation.contentType ?? (body === undefined ? undefined : MEDIA_TYPE)
  return {
    method,
    path,
    headers: {
      ...(accept !== undefined && { Accept: accept }),
      ...(contentType !== undefined && { 'Content-Type': contentType }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(from !== undefined && { from }),
    ...(client !== undefined && { client, scope }),
    ...(user !== undefined && { user }),
    ...(target !== undefined && { target: target.replace(/^target:/, '') }),
  }
}

const OF_BODIES = stepFaults('checkBody')
const OF_QUERIES = stepFaults('checkParameters')

/** Whether a row says nothing of a body, so that its call is not checked by one: most rows are about access alone. */
const ignoresBodies = ({ body, contentType, expect }: Expectation): boolean =>
  body === undefined && contentType === undefined && !OF_BODIES.has(expect)

/** The same for the parameters of a query. */
const ignoresQueries = ({ call, expect }: Expectation): boolean =>
  !call.includes('?') && !OF_QUERIES.has(expect)

/** In a report-only area that is `allowed`: nothing is refused there. */
function actualOf(expectation: Expectation, { outcome, refusal, checks }: Explanation): string {
  if (outcome === 'unknown') return 'unknown'
  if (refusal === undefined) return 'allowed'
  const isIgnored = (reason: string): boolean =>
    (OF_BODIES.has(reason) && ignoresBodies(expectation)) ||
    (OF_QUERIES.has(reason) && ignoresQueries(expectation))
  if (!isIgnored(refusal.reason)) return refusal.reason
  const failed = checks.filter(({ verdict, enforced }) => enforced && verdict === 'failed')
  return failed.map(({ reason = '' }) => reason).find((reason) => !isIgnored(reason)) ?? 'allowed'
}

/** The check that refuses the call or, of a call that is let in, the one that was expected to. */
function decisiveCheck({ expect }: Expectation, { checks }: Explanation): ExplainedCheck | undefined {
  const failed = checks.find(({ verdict }) => verdict === 'failed' || verdict === 'unknown')
  if (expect === 'allowed') return failed
  const title = checkOf(expect)?.title
  return checks.find((check) => check.title === title) ?? failed
}

const sentence = ({ title, words }: ExplainedCheck): string => `${title}: ${words}`

/** Undefined if the call is decided as expected. */
export function compareRow(
  row: number,
  expectation: Expectation,
  explanation: Explanation,
): Mismatch | undefined {
  const actual = actualOf(expectation, explanation)
  if (actual === expectation.expect) return undefined
  const failed = explanation.checks.find(({ verdict }) => verdict === 'failed')
  const checks = new Set(
    [failed, decisiveCheck(expectation, explanation)].filter((check) => check !== undefined),
  )
  return { row, expected: expectation.expect, actual, words: [...checks].map(sentence).join('\n') }
}
