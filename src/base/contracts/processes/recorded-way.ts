/** The way of a worker's records to the process that writes the trail (C12.4.2). */
import type { Readable, Writable } from 'node:stream'

/**
 * The descriptors of a worker process through which it sends its records, and through which it is told how far they have come. They
 * are two, so that what cannot be told to a worker that has ended takes away none of its records.
 */
export const RECORDS_DESCRIPTOR = 4
export const PROGRESS_DESCRIPTOR = 5

/** Its end in the process that writes. */
export interface RecordedWay {
  readonly records: Readable
  /** Tells the worker how far they have come. */
  readonly progress: Writable
}
