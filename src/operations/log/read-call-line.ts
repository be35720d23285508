/** Reads the log's line of a call again (C14.4), to ask what would be decided about the call now. */
import { isTargetValue } from '../../scopes/scope-token.ts'

/** What a line tells of a call. Members that the line does not have are undefined. */
export interface LoggedCall {
  readonly requestId: string
  /** As the line says it; undefined if it says none. */
  readonly time: string | undefined
  readonly method: string
  /** Without the query; undefined if the target could not be read. */
  readonly path: string | undefined
  readonly status: number
  readonly reason: string | undefined
  readonly wouldRefuse: string | undefined
  readonly detail: string | undefined
  readonly client: string | undefined
  readonly subject: string | undefined
  readonly issuer: string | undefined
  /** Only refused calls have it. */
  readonly scope: string | undefined
  /** `target:b/ACME`; undefined if the scope has none, or is not known. */
  readonly target: string | undefined
  readonly accept: string | undefined
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
  if (members['event'] !== 'call') throw new NotACallLine('it is of another event: expected "event":"call"')
  const text = (name: string): string | undefined => {
    const value = members[name]
    return typeof value === 'string' ? value : undefined
  }
  const [requestId, method] = [text('requestId'), text('method')]
  const { status, door } = members
  if (requestId === undefined || method === undefined || typeof status !== 'number')
    throw new NotACallLine('it has no `requestId`, `method` or `status`')
  if (door === 'identity')
    throw new NotACallLine('it is of an identity endpoint, and only calls below /api are decided so')
  const scope = text('scope')
  return {
    ...{ requestId, method, status, scope, target: scope?.split(' ').find(isTargetValue) },
    ...{ time: text('time'), path: text('path'), reason: text('reason'), wouldRefuse: text('wouldRefuse') },
    ...{ detail: text('detail'), client: text('client'), subject: text('subject'), issuer: text('issuer') },
    accept: text('accept'),
  }
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line.slice(line.indexOf('{')))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // told below
  }
  throw new NotACallLine('it is no JSON object')
}
