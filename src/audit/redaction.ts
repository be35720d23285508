/** Erases the personal values of a subject while the trail is written (C12.2.3). */
import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../kernel/beside.ts'
import type { RedactMessage } from './redact-thread.ts'
import { segmentsOf, type SubjectValues } from './redact.ts'

export interface Redacted {
  /** Personal values that were erased. */
  readonly values: number
  /** Files that were written anew. */
  readonly files: number
}

export interface RedactionParts {
  readonly folder: string
  readonly subject: string
  /** Ends the segment of every writer. Rejects if one could not end it. */
  readonly roll: () => Promise<void>
  /** Makes the erasure durable in the trail, then does it. */
  readonly recorded: (found: Redacted, erase: () => Promise<void>) => Promise<void>
}

/**
 * Erases the values in the segments that the trail has now. What is recorded from now on may stand in a segment that begins
 * meanwhile, and keeps its values. Rejects as `roll` and `recorded` do, with nothing erased, or with the system's error,
 * with a part erased.
 */
export async function redactSubject(parts: RedactionParts): Promise<Redacted> {
  const { folder, subject, roll, recorded } = parts
  // Listed before the roll: whatever is written to these segments is behind us then.
  const segments = segmentsOf(folder)
  await roll()
  const found = await inThread({ find: { segments, subject } })
  const redacted = { values: found.reduce((sum, { values }) => sum + values, 0), files: found.length }
  await recorded(redacted, async () => {
    await inThread({ erase: found })
  })
  return redacted
}

function inThread(order: RedactMessage): Promise<readonly SubjectValues[]> {
  return new Promise((resolve, reject) => {
    new Worker(programBeside(import.meta.url, 'redact-thread'), {
      name: 'audit redaction',
      workerData: order,
      env: threadEnvironment(),
    })
      .on('message', resolve)
      .on('error', reject)
      .on('exit', () => reject(new Error('the thread of the redaction has ended')))
  })
}
