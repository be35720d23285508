/** The admin API's route that explains a call (C14.1). */
import type { DescribedCall, Explanation } from '../contracts/explanation.ts'
import { plainAddress } from '../http/addresses.ts'
import {
  type AdminRequest,
  type Operation,
  members,
  type Members,
  ok,
  reject,
  type Schema,
  text,
  WHO,
} from './operation.ts'

/** Characters: of a path over the longest that may be configured, of a token over the longest that is read. */
const LONGEST = { path: 65_536, token: 16_384, header: 65_536, body: 1_000_000 }
const MOST_HEADERS = 2_000

const CALL: Members = {
  method: text('The method of the call.'),
  path: text('Path and query, as in the request line.', { maxLength: LONGEST.path }),
  headers: {
    type: 'array',
    maxItems: MOST_HEADERS,
    items: text('`Name: value`', { maxLength: LONGEST.header }),
    description: 'Header lines. Host and Content-Length are added where they are missing.',
  },
  body: text('The body, as text.', { minLength: 0, maxLength: LONGEST.body }),
  bodyBase64: text('The body, in base64: in place of `body`.', { minLength: 0, maxLength: LONGEST.body }),
  from: text(
    'The address that the call comes from; loopback if it is left out. Behind a trusted proxy, that of the proxy.',
    { maxLength: 64 },
  ),
  token: text('An access token, added as `Authorization: Bearer`. It is neither logged nor stored.', {
    maxLength: LONGEST.token,
  }),
  client: text('In place of a token, with `user`: the client that calls.'),
  user: text('In place of a token, with `client`: the name or the subject of the user.'),
  target: text('With `client` and `user`: the target of the token, such as `b/ACME` or `f/ACME/SUPER1`.'),
  scope: text(
    'With `client` and `user`: what is asked for. Default: the default scope of the client, else all that it may have.',
  ),
}

const ANSWER: Schema = {
  type: 'object',
  properties: {
    outcome: { enum: ['let in', 'refused', 'unknown'] },
    method: text('As asked.'),
    path: text('As asked.'),
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
          clause: text('Its clause of the protocol.'),
          title: text('What must hold.'),
          verdict: { enum: ['passed', 'failed', 'not reached', 'unknown'] },
          wouldFailToo: { type: 'boolean', description: 'Behind the first failure.' },
          enforced: { type: 'boolean', description: 'False where a report-only area only reports it.' },
          reason: text('Why it failed, as the log and the metrics name it.'),
          facts: { type: 'object', description: 'What was found.' },
          words: text('The same in a sentence.'),
        },
        required: ['clause', 'title', 'verdict', 'wouldFailToo', 'enforced', 'facts', 'words'],
      },
    },
  },
  required: ['outcome', 'method', 'path', 'kind', 'checks'],
}

const isAddress = (text: string | undefined): boolean =>
  text !== undefined && plainAddress(text) !== undefined

const said = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Name and value of a header line; undefined if it is none. */
function readLine(line: string): readonly [string, string] | undefined {
  const colon = line.indexOf(':')
  return colon <= 0 ? undefined : [line.slice(0, colon), line.slice(colon + 1).trim()]
}

/** What is wrong with a request, beyond its schema. */
function problemsOf({ body }: AdminRequest): readonly string[] {
  const has = (name: string): boolean => body[name] !== undefined
  const lines = (body['headers'] ?? []) as readonly string[]
  return [
    has('token') && (has('client') || has('user')) && 'expected a token, or a client and a user: not both',
    has('client') !== has('user') && 'expected `client` and `user` together',
    (has('target') || has('scope')) &&
      !has('client') &&
      'expected `client` and `user` beside `target` and `scope`',
    has('from') && !isAddress(said(body['from'])) && 'expected an IP address as `from`',
    has('body') && has('bodyBase64') && 'expected `body` or `bodyBase64`: not both',
    lines.some((line) => readLine(line) === undefined) && 'expected header lines as `Name: value`',
  ].filter((problem) => problem !== false)
}

function readCall({ body }: AdminRequest): DescribedCall {
  const lines = (body['headers'] ?? []) as readonly string[]
  const [client, user] = [said(body['client']), said(body['user'])]
  const encoded = said(body['bodyBase64'])
  return {
    method: said(body['method']) ?? '',
    path: said(body['path']) ?? '',
    headers: lines.map(readLine).filter((line) => line !== undefined),
    body: encoded === undefined ? Buffer.from(said(body['body']) ?? '') : Buffer.from(encoded, 'base64'),
    from: said(body['from']),
    token: said(body['token']),
    caller:
      client === undefined || user === undefined
        ? undefined
        : { client, user, target: said(body['target']), scope: said(body['scope']) },
  }
}

export const EXPLAIN_ROUTE: Operation = {
  method: 'POST',
  path: '/explain',
  operationId: 'explain',
  needs: 'inspect',
  summary:
    'Whether a call would be let in, and why not: decided, and not made. Nothing is sent, counted or stored',
  body: members({ ...CALL, ...WHO }, ['method', 'path']),
  answers: { 200: ['The outcome, and each check', ANSWER] },
  handle: async (control, request) => {
    const problems = problemsOf(request)
    if (problems.length > 0) return reject(problems)
    const explanation: Explanation = await control.explain(readCall(request), request.operator)
    return ok(explanation)
  },
}
