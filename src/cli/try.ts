/** `postern try METHOD PATH`: a call with a test token, its answer, and why (C11.5.7). */
import type { Explanation } from '../contracts/explanation.ts'
import { printJson, readBytes, type Terminal } from '../operator/terminal.ts'
import type { UsableTestToken } from '../operator/test-token-orders.ts'
import { EXIT, type Given, UsageError } from '../operator/verb.ts'
import { type AdminCaller, operatorName, usingAdminApi } from './admin-commands.ts'
import { type Call, type CallAnswer, headersWithType, makeCall, NoAnswer } from './make-call.ts'
import { TRY } from './tables/try.ts'
import { grantText, testTokenCall } from './token.ts'
import { answerText, plainAnswer, whyText } from './try-text.ts'
import { commandOf } from './verbs.ts'

type Parsed = Given<(typeof TRY.verbs)['']>

/** The code of the business that a path of the API names: what follows `/b/` or `/f/`. Undefined if it cannot be decoded. */
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

async function callOf({ values, positionals }: Parsed, terminal: Terminal): Promise<Call> {
  const [method = '', path = ''] = positionals
  if (!PATH.test(path))
    throw new UsageError('expected a path that begins with "/", such as /api/1.0/b/ACME/fund-data/fund-list')
  const { header = [], data } = values
  const body = data === undefined ? Buffer.alloc(0) : await readBytes(data, terminal)
  return { method, path, headers: headersWithType(header, body), body }
}

/** Asked behind the call, so that it explains the limits as the call met them. */
function explain(ask: AdminCaller, { method, path, headers, body }: Call, token: string, terminal: Terminal) {
  const described = { method, path, headers, bodyBase64: body.toString('base64'), token }
  const asked = {
    method: 'POST',
    path: '/explain',
    body: { ...described, by: operatorName(terminal) },
  } as const
  return ask(asked) as Promise<Explanation>
}

interface Tried {
  readonly issued: UsableTestToken
  readonly call: Call
  readonly answer: CallAnswer
  readonly explanation: Explanation
}

function show({ issued, call, answer, explanation }: Tried, json: boolean, terminal: Terminal): void {
  const { method, path } = call
  const { client, subject, scope, target, expiresIn, dropped } = issued
  const granted = { client, subject, scope, target, expiresIn, dropped }
  if (json) printJson({ granted, call: { method, path }, answer: plainAnswer(answer), explanation }, terminal)
  else
    terminal.stdout.write(
      [
        `token: ${grantText(issued)}\n`,
        `${method} ${path}\n\n`,
        answerText(answer),
        '\n',
        whyText(explanation, answer),
      ].join(''),
    )
}

export const tryCommand = commandOf(TRY, {
  '': async (given, terminal) => {
    const { values, positionals } = given
    const business = values.business ?? businessIn(positionals[1] ?? '')
    const order = testTokenCall({ ...values, business }, terminal)
    const call = await callOf(given, terminal)
    return usingAdminApi(values, terminal, async (ask) => {
      const issued = (await ask(order)) as UsableTestToken
      const bearer = `Authorization: Bearer ${issued.token}`
      try {
        const answer = await makeCall(issued.api, { ...call, headers: [...call.headers, bearer] })
        const explanation = await explain(ask, call, issued.token, terminal)
        show({ issued, call, answer, explanation }, values.json === true, terminal)
        return answer.status < 400 ? EXIT.done : EXIT.failed
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error
        terminal.stderr.write(`postern: ${error.message}\n`)
        return EXIT.refused
      }
    })
  },
})
