/** Calls are explained: whether one would be let in (C14.1), and what was decided about one of the past (C14.4). */
import { Buffer } from 'node:buffer'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import type { PastAnswer } from '../watch/past-calls.ts'
import {
  CALL_PARTS,
  callerIn,
  METHOD_AND_PATH,
  readHeaderLine,
  readTypedCall,
  textOrNone,
  type TypedCall,
} from './described-call.ts'
import type { ServiceContext } from '../operation/context.ts'
import { type AnsweredPast, explanationText, pastCallText } from './explanation-text.ts'
import {
  type AdminRequest,
  commandLine,
  members,
  type Members,
  notFound,
  ok,
  type AdminOperation,
  problemsSchema,
  reject,
  type Schema,
  type CommandSession,
  textSchema,
  WHO,
  flagSchema,
  textsSchema,
} from '../operation/operation.ts'
import { readArgument, type Terminal } from '../operation/terminal.ts'
import { EXIT, type Options, UsageError } from '../operation/verb.ts'

/** The most characters: of a path over the longest that may be configured, of a token over the longest that is read. */
const LONGEST = { path: 65_536, token: 16_384, header: 65_536, body: 1_000_000 }
const MOST_HEADERS = 2_000

const CALL: Members = {
  method: textSchema('The method of the call.'),
  path: textSchema('Path and query, as in the request line.', { maxLength: LONGEST.path }),
  headers: {
    type: 'array',
    maxItems: MOST_HEADERS,
    items: textSchema('`Name: value`', { maxLength: LONGEST.header }),
    description: 'Header lines. Host and Content-Length are added where they are missing.',
  },
  body: textSchema('The body, as text.', { minLength: 0, maxLength: LONGEST.body }),
  bodyBase64: textSchema('The body, in base64: in place of `body`.', {
    minLength: 0,
    maxLength: LONGEST.body,
  }),
  from: textSchema(
    'The address that the call comes from; loopback if it is left out. Behind a trusted proxy, that of the proxy.',
    { maxLength: 64 },
  ),
  token: textSchema('An access token, added as `Authorization: Bearer`. It is neither logged nor stored.', {
    maxLength: LONGEST.token,
  }),
  client: textSchema('In place of a token, with `user` unless it is a machine: the client that calls.'),
  user: textSchema('With `client`: the name or the subject of the user.'),
  target: textSchema('With `client`: the target of the token, such as `b/ACME` or `f/ACME/SUPER1`.'),
  scope: textSchema(
    'With `client`: what is asked for. Default: the default scope of the client, else all that it may have.',
  ),
  sent: flagSchema(
    'Whether to show what the service would be sent for a call that is let in. It takes the right `administer`.',
  ),
}

const ANSWER: Schema = {
  type: 'object',
  properties: {
    outcome: { enum: ['let in', 'refused', 'unknown'] },
    method: textSchema('As asked.'),
    path: textSchema('As asked.'),
    kind: { enum: ['call', 'userinfo', 'preflight', 'identity'] },
    refusal: {
      type: 'object',
      description: 'If it is refused: clause, reason, and what the client is answered: status, code, text.',
    },
    reportOnly: { type: 'object', description: 'In a report-only area: `area` and `wouldRefuse`.' },
    caller: { type: 'object', description: 'Who calls, and whether a token has proven it.' },
    action: { type: 'object', description: 'What is called.' },
    checks: {
      type: 'array',
      description: 'Each check, in the order of the decision.',
      items: {
        type: 'object',
        properties: {
          clause: textSchema('Its clause of the protocol.'),
          title: textSchema('What must hold.'),
          verdict: { enum: ['passed', 'failed', 'not reached', 'unknown'] },
          wouldFailToo: flagSchema('Behind the first failure.'),
          enforced: flagSchema('False where a report-only area only reports it.'),
          reason: textSchema('Why it failed, as the log and the metrics name it.'),
          facts: { type: 'object', description: 'What was found.' },
          words: textSchema('The same in a sentence.'),
        },
        required: ['clause', 'title', 'verdict', 'wouldFailToo', 'enforced', 'facts', 'words'],
      },
    },
  },
  required: ['outcome', 'method', 'path', 'kind', 'checks'],
}

const SENT: Schema = {
  type: 'object',
  description:
    'With `sent`, of a call that is let in: what the service would be sent, with `***` for secrets. Or `refusal`: nothing would be sent, and the client would be answered this. Or `unknown`: why it is not known.',
  properties: {
    method: textSchema('Of the request.'),
    url: textSchema('Where it goes; of several targets, the first.'),
    others: textsSchema('The same at the other targets.'),
    headers: textsSchema('`name: value`, as they are sent.'),
    body: textSchema('The body, as text. Absent if there is none.'),
    bodyBase64: textSchema('In place of `body`, where it is no text.'),
    refusal: { type: 'object', description: 'status, code, text, reason.' },
    unknown: textSchema('Such as: the code of a module makes what is sent.'),
  },
}

/** What is wrong with a request, beyond its schema. */
async function problemsOf({ body }: AdminRequest): Promise<readonly string[]> {
  // Only here: commands need no addresses.
  const { plainAddress } = await import('../../base/http/head/addresses.ts')
  const has = (name: string): boolean => body[name] !== undefined
  const lines = (body['headers'] ?? []) as readonly string[]
  return [
    has('token') && (has('client') || has('user')) && 'expected a token, or a client: not both',
    (has('user') || has('target') || has('scope')) &&
      !has('client') &&
      'expected `client` beside `user`, `target` and `scope`',
    has('from') &&
      plainAddress(textOrNone(body['from']) ?? '') === undefined &&
      'expected an IP address as `from`',
    has('body') && has('bodyBase64') && 'expected `body` or `bodyBase64`: not both',
    lines.some((line) => readHeaderLine(line) === undefined) && 'expected header lines as `Name: value`',
  ].filter((problem) => problem !== false)
}

function readCall({ body }: AdminRequest): DescribedCall {
  const lines = (body['headers'] ?? []) as readonly string[]
  const { client, ...caller } = callerIn(body)
  const encoded = textOrNone(body['bodyBase64'])
  return {
    method: textOrNone(body['method']) ?? '',
    path: textOrNone(body['path']) ?? '',
    headers: lines.map(readHeaderLine).filter((line) => line !== undefined),
    body:
      encoded === undefined ? Buffer.from(textOrNone(body['body']) ?? '') : Buffer.from(encoded, 'base64'),
    from: textOrNone(body['from']),
    token: textOrNone(body['token']),
    caller: client === undefined ? undefined : { ...caller, client },
    sent: body['sent'] === true,
  }
}

const OPTIONS = {
  token: {
    type: 'string',
    kind: 'at-file',
    value: 'TOKEN|@FILE',
    help: 'The access token of the call. @- reads it from standard input, which no process list shows',
  },
  client: { type: 'string', value: 'ID', help: 'In place of a token: the client that calls' },
  user: {
    type: 'string',
    value: 'NAME',
    help: 'And its user; a machine has none. They have the token that the token endpoint would grant them',
  },
  target: { type: 'string', value: 'TARGET', help: 'Its target: b/ACME, or f/ACME/SUPER1' },
  scope: {
    type: 'string',
    value: '"A B"',
    help: 'Its scope. Default: the default scope of the client, else all that the client may have',
  },
  ...CALL_PARTS,
  from: {
    type: 'string',
    value: 'ADDRESS',
    help: 'Where the call comes from. Default: loopback. Behind a trusted proxy, the address of the proxy',
  },
  sent: {
    type: 'boolean',
    help: 'Show what the service would be sent too, with *** for secrets. It takes the right `administer`',
  },
  request: {
    type: 'string',
    value: 'ID',
    help: 'In place of METHOD and PATH: the X-Request-Id of one of the last calls, which each process keeps. Shows what was decided then, what would be now, and the difference',
  },
  log: {
    type: 'string',
    words: ['-'],
    help: 'The same of a line of the log, on standard input. Its client is taken to have the token that it would be given for its user now',
  },
} as const satisfies Options

type ExplainSession = CommandSession<typeof OPTIONS>

/** The exit code by what is decided. Any failure to get an answer counts as `unknown`. */
const exitOf = (decided: string): number =>
  decided === 'let in' ? EXIT.done : decided === 'unknown' ? EXIT.refused : EXIT.failed

/**
 * Asks a running service whether it would let a call in: one that nobody has made, or one that was made (`try`).
 * @param more who calls, and what else is asked
 */
export const requestExplanation = (
  send: ExplainSession['send'],
  { method, path, headers, body }: TypedCall,
  more: AdminRequest['body'],
): Promise<Explanation> =>
  send<Explanation>(EXPLAIN, {
    body: { method, path, headers, bodyBase64: body.toString('base64'), ...more },
  })

/** Explains a call that nobody has made. */
async function explainNew({ values, positionals, terminal, send, show }: ExplainSession): Promise<number> {
  const { token, client, user, target, scope, from, sent } = values
  if (positionals.length < METHOD_AND_PATH.length)
    throw new UsageError('expected a method and a path, such as GET /api/1.0/b/ACME/fund-data/fund-list')
  if (token !== undefined && (client !== undefined || user !== undefined))
    throw new UsageError('expected --token, or --client: not both')
  const call = await readTypedCall(positionals, values, terminal)
  const accessToken = token === undefined ? undefined : (await readArgument(token, terminal)).trim()
  const caller = { token: accessToken, client, user, target, scope }
  const explanation = await requestExplanation(send, call, { ...caller, from, sent })
  show(explanation, explanationText)
  return exitOf(explanation.outcome)
}

/** The options that describe a call that nobody has made, and are not for a call of the past. */
const OF_NEW_CALLS = (Object.keys(OPTIONS) as readonly (keyof typeof OPTIONS)[]).filter(
  (name) => name !== 'request' && name !== 'log',
)

/** Explains a call of the past (C14.4). @throws UsageError if another call is described as well */
async function explainPast({ values, positionals, terminal, send, show }: ExplainSession): Promise<number> {
  const { request, log } = values
  const described = OF_NEW_CALLS.find((name) => values[name] !== undefined)
  if (positionals.length > 0 || described !== undefined)
    throw new UsageError(
      `--request and --log name a call of the past: ${described === undefined ? 'METHOD and PATH are' : `--${described} is`} not for these`,
    )
  if (request !== undefined && log !== undefined)
    throw new UsageError('expected --request or --log: not both')
  const body = log === undefined ? { request } : { line: await readLogLine(terminal) }
  const answer = await send<AnsweredPast>(EXPLAIN_PAST, { body })
  show(answer, pastCallText)
  return exitOf(answer.difference.now)
}

/** The one line on standard input. @throws UsageError if there is none, or more than one */
async function readLogLine(terminal: Terminal): Promise<string> {
  const lines = (await readArgument('@-', terminal)).split('\n').filter((line) => line.trim() !== '')
  const [line] = lines
  if (line === undefined || lines.length > 1)
    throw new UsageError(`--log: expected one line of the log on standard input, got ${lines.length}`)
  return line
}

/** What a service is sent may tell of people, and of how it is called. Rejects with AdminError 403. */
async function authorizeSent(
  { audit }: ServiceContext,
  { authenticated, operator: { via, channel = 'admin' } }: AdminRequest,
): Promise<void> {
  // Only here: commands judge no rights.
  const { requireRight } = await import('../operation/perform.ts')
  requireRight(authenticated, false, { ...EXPLAIN, needs: 'administer' }, { audit, from: { via, channel } })
}

export const EXPLAIN: AdminOperation = {
  method: 'POST',
  path: '/explain',
  operationId: 'explain',
  needs: 'inspect',
  summary:
    'Whether a call would be let in, and why not: decided, and not made. Nothing is sent, counted or stored',
  body: members({ ...CALL, ...WHO }, ['method', 'path']),
  answers: {
    200: ['The outcome, and each check', { ...ANSWER, properties: { ...ANSWER.properties, sent: SENT } }],
  },
  handle: async (service, request) => {
    if (request.body['sent'] === true) await authorizeSent(service, request)
    const problems = await problemsOf(request)
    if (problems.length > 0) return reject(problems)
    const { explainAndRecord } = await import('./explain-call.ts')
    return ok(await explainAndRecord(readCall(request), service, request.operator))
  },
  commands: [
    commandLine({
      words: ['explain'],
      summary: 'Show whether a running service would let a call in, and each check with what it found',
      usage: '[OPTIONS] METHOD PATH, or --request ID, or --log -',
      notes: [
        'The call is not made: nothing reaches a backend, nothing is counted, no token is issued or remembered.',
        'With --sent it also shows the request that the service would get: method, URL, headers and body. Values from the environment, from files and stored secrets, credentials and tokens are ***. The service is not asked, and no token is fetched.',
        'The exit code is 0 if the call is let in, 1 if it is refused, 2 if that could not be told.',
        'Without a running service, the package export postern/explain tells the same of a configuration file.',
      ],
      arguments: METHOD_AND_PATH.map((argument) => ({ ...argument, optional: true })),
      options: OPTIONS,
      examples: [
        {
          line: 'postern explain --client acme-books --user alice --target b/ACME GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'show whether this call would be let in',
        },
        {
          line: 'postern explain --sent --client acme-books --user alice --target b/ACME GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'show what the service would be sent for it too',
        },
        {
          line: 'postern explain --request 7c8b40a1f5d24a0e9c1d7f3b2a6e5d4c',
          does: 'show why a call of the past was refused',
        },
      ],
      trouble: EXIT.refused,
      run: (session) =>
        session.values.request === undefined && session.values.log === undefined
          ? explainNew(session)
          : explainPast(session),
    }),
  ],
}

const LONGEST_LINE = 65_536

const THEN: Schema = {
  type: 'object',
  properties: {
    requestId: textSchema('Of its answer.'),
    at: textSchema('When it came.'),
    method: textSchema('The method.'),
    path: textSchema('Without the query. Absent if it could not be read.'),
    status: { type: 'integer', description: 'What was answered.' },
    reason: textSchema('Why it was refused, as the log and the metrics name it.'),
    wouldRefuse: textSchema('In a report-only area: what would have refused it.'),
    detail: textSchema('What the log says of the fault.'),
    caller: {
      type: 'object',
      description: 'client, subject, issuer, scope, target: of its token, if it was verified.',
    },
    accept: textSchema('Its Accept.'),
    contentType: textSchema('Its Content-Type.'),
    websocket: flagSchema('Whether it asked for a websocket.'),
    traceId: textSchema('Of W3C Trace Context: that of the call to the service, else that of the client.'),
    version: {
      type: 'integer',
      description: 'Of the action. Absent if it was refused before one was negotiated.',
    },
  },
}

const DIFFERENCE = members(
  {
    then: textSchema('`let in`, or the reason of the refusal.'),
    now: textSchema('The same of now, or `unknown`.'),
    same: flagSchema('Absent if it is not known what would be decided now.'),
    words: textSchema('For people.'),
  },
  ['then', 'now', 'words'],
)

const pastAnswerOf = ({ then, now, difference }: PastAnswer): unknown => ({
  then: { ...then, at: then.at === undefined ? undefined : new Date(then.at).toISOString() },
  now,
  difference,
})

const ELSEWHERE =
  'each process keeps its last 1,000 refused and 200 other calls since its start; the log has a line of every call'

const EXPLAIN_PAST: AdminOperation = {
  method: 'POST',
  path: '/explain/past',
  operationId: 'explainPast',
  needs: 'inspect',
  summary: 'What was decided about a call of the past, what would be now, and the difference',
  body: members({
    request: textSchema(
      'The X-Request-Id of its answer: one of the last calls, which each process keeps in memory.',
      {
        maxLength: 128,
      },
    ),
    line: textSchema('In place of `request`: the line of the log that tells of the call.', {
      maxLength: LONGEST_LINE,
    }),
    ...WHO,
  }),
  answers: {
    200: [
      'Then, now, and the difference. `now` is as /explain answers it; absent if too little is known',
      members({ then: THEN, now: { type: 'object' }, difference: DIFFERENCE }, ['then', 'difference']),
    ],
    404: ['No process keeps this call', problemsSchema],
  },
  handle: async (service, { body, operator }) => {
    const { request, line } = body
    if ((request === undefined) === (line === undefined))
      return reject(['expected `request` or `line`: one of them'])
    // Only here: commands read no lines of the log.
    const { NotACallLine, readCallLine } = await import('../watch/log/call-lines.ts')
    const { explainPastCall } = await import('./explain-call.ts')
    try {
      const past = typeof line === 'string' ? readCallLine(line) : String(request)
      const answer = await explainPastCall(past, service, operator)
      return answer === undefined
        ? notFound('no process keeps this call', [ELSEWHERE])
        : ok(pastAnswerOf(answer))
    } catch (thrown) {
      if (!(thrown instanceof NotACallLine)) throw thrown
      return reject([`line  ${thrown.message}`])
    }
  },
}

export const EXPLAIN_OPERATIONS: readonly AdminOperation[] = [EXPLAIN, EXPLAIN_PAST]
