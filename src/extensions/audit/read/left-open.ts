/** Counts the intents at the end of a trail whose processes have ended without their outcomes (C12.1.3). */
import { isJsonObject, type JsonValue } from '../../../base/http/body/json.ts'
import { endsIntent } from '../../../base/kernel/audit-events.ts'
import { eachLine, chunksOf } from '../format/lines.ts'
import { HEAD_BYTES, parseBytes, readHead } from '../format/record-line.ts'
import { type Segment, Segments, sizeOf } from '../format/segments.ts'

/** Where a trail ended when its process started. */
export interface OpenEnd {
  readonly folder: string
  readonly writer: string
  /** The last record of before the start. */
  readonly seq: number
}

/** Bytes of the last records that are read: an intent waits for its outcome as long as its call takes, so it is near the end. */
const MOST_READ = 128 * 1024 ** 2

const QUESTIONS: ReadonlySet<string> = new Set(['audit.queried', 'audit.exported'])

/** Whether a record is of a question for all open intents. A filter, such as a month, leaves some out. */
export const isQuestionForAllOpen = (event: string, asked: JsonValue | undefined): boolean =>
  QUESTIONS.has(event) &&
  isJsonObject(asked) &&
  asked['outcome'] === 'open' &&
  Object.keys(asked).length === 1

/** Intents that are open at that end, and that nobody has asked for. Throws the system's error. */
export function leftOpen({ folder, writer, seq: last }: OpenEnd): number {
  const open = new Set<number>()
  const listed = new Segments([folder])
  for (const segment of lastSegments(listed, writer)) {
    const until = Math.min(last, listed.lastSeq(segment))
    for (const { bytes } of chunksOf(segment.path))
      eachLine(bytes, undefined, (_, start, end) => {
        const head = readHead(bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES)))
        if (head === undefined || head.seq > until) return
        if (head.outcome === 'pending') open.add(head.seq)
        else if (head.intent !== undefined && endsIntent(head.event)) open.delete(head.intent)
        else if (QUESTIONS.has(head.event) && isAsked(head.event, bytes.toString('latin1', start, end)))
          open.clear()
      })
  }
  return open.size
}

function isAsked(event: string, line: string): boolean {
  const { change } = (parseBytes(line) ?? {}) as { readonly change?: { readonly asked?: JsonValue } }
  return isQuestionForAllOpen(event, change?.asked)
}

/** The newest segments, in the order of their numbers. */
function lastSegments(listed: Segments, writer: string): readonly Segment[] {
  const found: Segment[] = []
  let bytes = 0
  const own = listed.all().filter((segment) => segment.writer === writer)
  for (const segment of own.toSorted((a, b) => b.number - a.number)) {
    if (bytes >= MOST_READ) break
    found.unshift(segment)
    bytes += sizeOf(segment.path)
  }
  return found
}
