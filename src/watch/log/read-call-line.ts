/** Reads the log's line of a call again (C14.4), to ask what would be decided about the call now. */
import { isTargetValue } from '../../config/scopes/scope-token.ts'
import type { PastCall, PastCaller } from '../past-calls.ts'

export interface LoggedCall extends PastCall {
  /** Of the URL; of the token's target if the URL names none. */
  readonly business: string | undefined
}

/** The text is no line of a call. The message says why. It repeats nothing of the text. */
export class NotACallLine extends Error {
  override readonly name = 'NotACallLine'
}

/**
 * Reads one line. What stands before its `{` is passed over: some collectors put a time there.
 *
 * @throws NotACallLine
 */
export function readCallLine(line: string): LoggedCall {
  const members = parse(line)
  const text = (name: string): string | undefined => {
    const value = members[name]
    return typeof value === 'string' ? value : undefined
  }
  const [requestId, method] = [text('requestId'), text('method')]
  const { status } = members
  const wrong = WRONG.find(({ is }) => is(members))
  if (wrong !== undefined) throw new NotACallLine(wrong.why)
  if (requestId === undefined || method === undefined || typeof status !== 'number')
    throw new NotACallLine('it has no `requestId`, `method` or `status`')
  const at = Date.parse(text('time') ?? '')
  return {
    ...{ requestId, method, status, at: Number.isNaN(at) ? undefined : at, path: text('path') },
    ...{ reason: text('reason'), wouldRefuse: text('wouldRefuse'), detail: text('detail') },
    caller: callerOf(text),
    ...{ accept: text('accept'), contentType: undefined, websocket: false, business: text('business') },
  }
}

const WRONG: readonly { readonly is: (members: Members) => boolean; readonly why: string }[] = [
  { is: ({ event }) => event !== 'call', why: 'it is of another event: expected "event":"call"' },
  {
    is: ({ door }) => door === 'identity',
    why: 'it is of an identity endpoint, and only calls below /api are decided so',
  },
]

function callerOf(text: (name: string) => string | undefined): PastCaller | undefined {
  const [client, subject, scope] = [text('client'), text('subject'), text('scope')]
  if (client === undefined || subject === undefined) return undefined
  return { client, subject, issuer: text('issuer'), scope, target: scope?.split(' ').find(isTargetValue) }
}

type Members = Readonly<Record<string, unknown>>

function parse(line: string): Members {
  try {
    const value: unknown = JSON.parse(line.slice(line.indexOf('{')))
    if (typeof value === 'object' && value !== null) return value as Members
  } catch {
    // told below
  }
  throw new NotACallLine('it is no JSON object')
}
