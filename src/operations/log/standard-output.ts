import type { DestinationStream } from 'pino'
import { LineQueue, type LineQueueParts } from './line-queue.ts'
import { openOutlet } from './outlet.ts'

/** Where lines go. `write` takes whole lines, never waits and never throws. */
export interface LogDestination extends DestinationStream {
  /** Writes what is held, and waits for nothing. */
  flush?(): void
  /** How many lines could not be kept, since the start. */
  readonly dropped?: number
  /** So many lines are missing here, which somebody else had to drop. */
  lose?(lines: number): void
  /** Writes what is held; resolves when it is written, after a second at most. */
  end?(): Promise<void>
}

/**
 * Standard output, written in pieces, by no library's destination: those hold without bound what nobody reads, give up
 * for good when a write fails, and end a process only when everything has been read (T5.11).
 */
export function standardOutput(gapLine: LineQueueParts['gapLine']): LogDestination {
  const queue = new LineQueue({ outlet: openOutlet(), gapLine })
  process.once('exit', () => queue.endNow())
  return queue
}
