/** `postern explain --request ID` and `postern explain --log -`: about a call of the past (C14.4). */
import { text } from 'node:stream/consumers'
import type { Terminal } from '../operator/terminal.ts'
import { EXIT, UsageError } from '../operator/verb.ts'
import { callAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import { type AnsweredPast, pastCallText } from './past-call-text.ts'

export interface PastOptions extends CallOptions {
  /** `--request`: the X-Request-Id of the answer. */
  readonly request?: string | undefined
  /** `--log`: `-`, for standard input. */
  readonly log?: string | undefined
  readonly json?: boolean | undefined
}

/** The one line that stands on standard input. @throws UsageError if there is none, or more than one */
async function readLine({ stdin }: Terminal): Promise<string> {
  const lines = (await text(stdin)).split('\n').filter((line) => line.trim() !== '')
  const [line] = lines
  if (line === undefined || lines.length > 1)
    throw new UsageError(`--log: expected one line of the log on standard input, got ${lines.length}`)
  return line
}

const EXITS: Readonly<Record<string, number>> = { 'let in': EXIT.done, unknown: EXIT.refused }

/** By what would be decided now, as `postern explain`. The promise gives the exit code. */
export async function explainPast(options: PastOptions, terminal: Terminal): Promise<number> {
  const { request, log } = options
  if (request !== undefined && log !== undefined)
    throw new UsageError('expected --request or --log: not both')
  const body = {
    ...(log === undefined ? { request } : { line: await readLine(terminal) }),
    ...{ reason: checkedReason(options), by: operatorName(terminal) },
  }
  return callAdminApi({ method: 'POST', path: '/explain/past', body }, options, terminal, pastCallText, {
    of: ({ difference }: AnsweredPast) => EXITS[difference.now] ?? EXIT.failed,
    trouble: EXIT.refused,
  })
}
