/** Where a question about the trail is answered: by the service that keeps it, or from the files (C12.5). */
import { queryEnded } from '../../audit/abandoned.ts'
import { queryTrail } from '../../audit/read/read-trail.ts'
import { readRow } from '../../audit/read/rows.ts'
import {
  type AuditQuery,
  type AuditRow,
  type Progress,
  type ScanEnd,
  type ScanStep,
  TrailReadError,
} from '../../contracts/audit-query.ts'
import { OperationError } from '../../operator/errors.ts'
import type { Terminal } from '../../operator/terminal.ts'
import type { Configuration } from '../../settings/configuration.ts'
import { operatorName, requestAdmin } from '../admin-commands.ts'
import { type CallOptions, ownToken } from '../call-options.ts'
import { noteQuestion } from './note-question.ts'
import type { AuditedConfiguration } from './trail-folder.ts'

/** What is asked, as it was written and as it was read. */
export interface Question {
  readonly texts: Readonly<Record<string, string>>
  readonly query: AuditQuery
  readonly purpose: 'find' | 'export'
}

/** One part of an answer. The last one is `end`. */
export type AnswerPart =
  { readonly rows: readonly AuditRow[] } | { readonly progress: Progress } | { readonly end: ScanEnd }

/** From files, in a thread of this process. Rejects with TrailReadError. */
export async function* fromFiles(
  folders: readonly string[],
  query: AuditQuery,
  onProgress: (progress: Progress) => void,
): AsyncGenerator<AnswerPart> {
  yield* partsOf(queryTrail({ folders, query }, onProgress))
}

async function* partsOf(steps: AsyncIterable<ScanStep>): AsyncGenerator<AnswerPart> {
  for await (const step of steps)
    yield step.kind === 'end' ? { end: step } : { rows: step.lines.map(readRow) }
}

/**
 * From the trail of a configuration: its service is asked, if it runs; then it records who asks. Otherwise the files are
 * read here, and this command leaves the record. Rejects with TrailReadError or OperationError.
 */
export async function* fromTrail(
  audited: AuditedConfiguration,
  question: Question,
  options: CallOptions,
  {
    terminal,
    onProgress,
  }: { readonly terminal: Terminal; readonly onProgress: (progress: Progress) => void },
): AsyncGenerator<AnswerPart> {
  const by = operatorName(terminal)
  const noted = await noteQuestion(audited, { ...question, by, reason: options.reason })
  if (noted === 'service') {
    yield* fromService(audited.configuration, question, {
      own: ownToken(options, terminal),
      by,
      reason: options.reason,
    })
    return
  }
  if (noted !== 'noted')
    terminal.stderr.write(`postern: no record was left of this question: ${noted.failed}\n`)
  yield* partsOf(queryEnded(audited.plan.folder, question.query, onProgress))
}

const BROKEN_OFF = 'the answer of the service broke off: what was shown is not all'

interface Asker {
  readonly own: string | undefined
  readonly by: string
  readonly reason: string | undefined
}

async function* fromService(
  configuration: Configuration,
  { texts, query, purpose }: Question,
  { own, by, reason }: Asker,
): AsyncGenerator<AnswerPart> {
  const response = await requestAdmin(
    configuration,
    {
      method: 'GET',
      path: '/audit/stream',
      query: { ...texts, purpose, singly: String(query.singly === true), claimed: by, reason },
    },
    own,
  )
  if (response.body === null) throw new OperationError('the service sent no answer')
  let batch: AuditRow[] = []
  for await (const line of linesOf(response.body)) {
    const part = JSON.parse(line) as StreamedLine
    if ('row' in part && batch.push(part.row) < BATCH) continue
    if (batch.length > 0) yield { rows: batch }
    batch = []
    if ('failed' in part) throw new TrailReadError(part.failed)
    if (!('row' in part)) yield part
    if ('end' in part) return
  }
  throw new OperationError(BROKEN_OFF)
}

/** Rejects with OperationError if the connection breaks. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const bytes of body) {
      const lines = `${rest}${decoder.decode(bytes, { stream: true })}`.split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (cause) {
    throw new OperationError(BROKEN_OFF, { cause })
  }
}

/** Rows that are shown at once. */
const BATCH = 256

type StreamedLine =
  | { readonly row: AuditRow }
  | { readonly progress: Progress }
  | { readonly end: ScanEnd }
  | { readonly failed: string }
