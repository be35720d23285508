/** Test tokens: one is printed, or a call is made with it and explained (C11.5.7). */
import { CALL_PARTS, callerIn, METHOD_AND_PATH, readTypedCall } from './described-call.ts'
import { partyText } from './explanation-text.ts'
import { requestExplanation } from './explain.ts'
import type { TestTokenOutcome, UsableTestToken } from './issue-test-token.ts'
import {
  type AdminAnswer,
  commandLine,
  count,
  members,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  reject,
  type CommandSession,
  textSchema,
  WHO,
  textsSchema,
} from '../operation/operation.ts'
import { EXIT, type Options, UsageError, type Values } from '../operation/verb.ts'

const body = members(
  {
    user: textSchema('The name or the subject of the user. Left out: of no user, for a machine.'),
    client: textSchema(
      'The id of the client. Default: the first one that is granted such a token for the user.',
    ),
    target: textSchema(
      'The target of the token, such as `b/ACME` or `f/ACME/SUPER1`. Default: that of the scope.',
    ),
    scope: textSchema(
      'What is asked for. Default: the default scope of the client, else all that the client may have.',
    ),
    ...WHO,
  },
  [],
)

const issuedSchema = members(
  {
    token: textSchema(
      'The access token. It is neither logged nor stored, and no refresh token comes with it.',
    ),
    id: textSchema('Its `jti`, as the audit trail names it, and as `revoke` takes it.'),
    expiresIn: count('Seconds until it expires: 900 at most.'),
    client: textSchema('The client that it is for.'),
    subject: textSchema('The `sub` of the user. Absent for a machine.'),
    scope: textSchema('What was granted.'),
    target: textSchema('Its target, such as `target:b/ACME`. Absent if it has none.'),
    business: textSchema('The code of the business of its target.'),
    fund: textSchema('The code of the fund of its target.'),
    dropped: textsSchema('Values that were asked for and not granted.'),
    api: textSchema('The URL of the API, which takes it.'),
  },
  ['token', 'id', 'expiresIn', 'client', 'scope', 'dropped', 'api'],
)

function answerOf(answer: TestTokenOutcome): AdminAnswer {
  if (answer.outcome === 'closed') return conflict('this service issues no test tokens', [answer.why])
  if (answer.outcome === 'refused')
    return conflict('no such token can be had', [`${answer.reason}  ${answer.why}`])
  return ok(answer.issued)
}

/** Whom a test token is for. */
const BEARER_OPTIONS = {
  user: { type: 'string', value: 'NAME', help: 'The user, by name or subject. A machine has none' },
  client: {
    type: 'string',
    value: 'ID',
    help: 'The client. Default: the first one that is granted such a token',
  },
  scope: {
    type: 'string',
    value: '"A B"',
    help: 'What is asked for. Default: the default scope of the client, else all that the client may have',
  },
} as const satisfies Options

const ONLY_HERE =
  'Only a service that is on loopback, with all its addresses, issues test tokens. Each is recorded with your name.'

const TRY_OPTIONS = {
  ...BEARER_OPTIONS,
  business: {
    type: 'string',
    value: 'CODE',
    help: 'The business that the token is for. Default: the one in PATH',
  },
  fund: { type: 'string', value: 'CODE', help: 'The token is only for this fund of the business' },
  ...CALL_PARTS,
} as const satisfies Options

interface Bearer extends Values<typeof BEARER_OPTIONS> {
  readonly business?: string | undefined
  readonly fund?: string | undefined
}

function targetOf({ business, fund }: Bearer): string | undefined {
  if (business === undefined && fund !== undefined)
    throw new UsageError('expected --business beside --fund: a fund belongs to a business')
  if (business === undefined) return undefined
  return fund === undefined ? `b/${business}` : `f/${business}/${fund}`
}

/** What is asked for, by the options of a command. @throws UsageError if nobody is named */
function wishOf({ user, client, scope, ...place }: Bearer) {
  if ((user ?? client) === undefined)
    throw new UsageError('expected --user: whom the token is for; or --client, if it is for a machine')
  return { user, client, scope, target: targetOf(place) }
}

/** What was granted, for people. */
function grantText({ client, subject, scope, expiresIn, dropped }: UsableTestToken): string {
  const less = dropped.length === 0 ? '' : `; not granted: ${dropped.join(' ')}`
  return `${partyText(client, subject)}, for ${expiresIn} s, scope ${scope}${less}\n`
}

/** The code of the business that a path of the API names: the part behind `/b/` or `/f/`. Undefined if it cannot be decoded. */
function businessIn(path: string): string | undefined {
  const [, segment] = /^\/api\/[^/]+\/[bf]\/([^/?]+)/.exec(path) ?? []
  try {
    return segment && decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** Some clients send the whole address (RFC 9112 §3.2.2). */
const PATH = /^(?:\/|https?:\/\/)/

/** Calls with a test token, and shows the answer and why it was let in or refused. Resolves with the exit code. */
async function tryCall({
  values,
  positionals,
  terminal,
  send,
  show,
  commandFor,
}: CommandSession<typeof TRY_OPTIONS>): Promise<number> {
  const [, path = ''] = positionals
  const wish = wishOf({ ...values, business: values.business ?? businessIn(path) })
  if (!PATH.test(path))
    throw new UsageError('expected a path that begins with "/", such as /api/1.0/b/ACME/fund-data/fund-list')
  const call = await readTypedCall(positionals, values, terminal)
  const issued = await send<UsableTestToken>(ISSUE, { body: wish })
  // Only here: `postern token` makes no call.
  const { answerText, makeCall, NoAnswer, plainAnswer, whyText } = await import('./tried-call.ts')
  const { method } = call
  const { token } = issued
  try {
    const headers = [...call.headers, `Authorization: Bearer ${token}`]
    const answer = await makeCall(issued.api, { ...call, headers })
    // After the call, so that it explains the limits as the call met them. The reason was for the token.
    const explanation = await requestExplanation(send, call, { token, reason: undefined })
    const { client, subject, scope, target, expiresIn, dropped } = issued
    const granted = { client, subject, scope, target, expiresIn, dropped }
    show({ granted, call: { method, path }, answer: plainAnswer(answer), explanation }, () =>
      [
        `token: ${grantText(issued)}\n`,
        `${method} ${path}\n\n`,
        answerText(answer),
        '\n',
        whyText(explanation, answer, commandFor),
      ].join(''),
    )
    return answer.status < 400 ? EXIT.done : EXIT.failed
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    terminal.stderr.write(`postern: ${error.message}\n`)
    return EXIT.refused
  }
}

const ISSUE: AdminOperation = {
  method: 'POST',
  path: '/test-tokens',
  operationId: 'issueTestToken',
  needs: 'administer',
  summary:
    'Issue a test token: what a client and a user would be granted, without their secrets; only by a service on loopback',
  body,
  answers: {
    200: ['The token, recorded with the operator', issuedSchema],
    409: [
      'The client and the user would be granted none; or the service is not on loopback, or is a sidecar',
      problemsSchema,
    ],
  },
  handle: async (service, { body: sent, operator }) => {
    const wish = callerIn(sent)
    if ((wish.user ?? wish.client) === undefined)
      return reject(['expected `user`, or the `client` that is a machine'])
    const { issueTestToken } = await import('./issue-test-token.ts')
    return answerOf(await issueTestToken(wish, service, operator))
  },
  commands: [
    commandLine({
      words: ['token'],
      summary:
        'Print an access token to try a running service with, without the secrets of its client and its user',
      notes: [
        'The token is what the token endpoint would give, for 15 minutes at most, and without a refresh token.',
        ONLY_HERE,
      ],
      arguments: [],
      options: {
        ...BEARER_OPTIONS,
        business: { type: 'string', value: 'CODE', help: 'The business that it is for: its target' },
        fund: { type: 'string', value: 'CODE', help: 'With --business: only for this fund' },
      },
      examples: [
        {
          line: 'postern token --user alice --business ACME',
          does: 'print a token for what alice may do at ACME',
        },
        {
          line: 'postern token --user alice --business ACME --client ledgerline --scope fund.read --json',
          does: 'the same through one client, with one scope, and what was granted',
        },
      ],
      run: async ({ values, terminal, send, show }) => {
        show(await send<UsableTestToken>(ISSUE, { body: wishOf(values) }), (issued) => {
          // On stderr, so that a script gets the token alone.
          terminal.stderr.write(grantText(issued))
          return `${issued.token}\n`
        })
        return EXIT.done
      },
    }),
    commandLine({
      words: ['try'],
      summary: 'Call a running service as a user: with a test token, and why the call was let in or refused',
      notes: [
        'The call is made: one that changes data changes it. `postern explain` tells the same without making it.',
        'The token is for the business that PATH names, unless --business names another.',
        ONLY_HERE,
        'The exit code is 0 if the status of the answer is below 400, 1 for any other, 2 if there was none.',
      ],
      arguments: METHOD_AND_PATH,
      options: TRY_OPTIONS,
      examples: [
        {
          line: 'postern try --user alice GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'list the funds of ACME as alice',
        },
        {
          line: 'postern try --user bob --business GLOBEX GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'see why bob is refused the funds of ACME',
        },
      ],
      run: (session) => tryCall(session),
    }),
  ],
}

export const TEST_TOKEN_OPERATIONS: readonly AdminOperation[] = [ISSUE]
