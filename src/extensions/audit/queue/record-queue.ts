import type { PreparedRecord, PutOptions } from '../format/record.ts'

/**
 * The records of a process that are not durable yet: in the process that writes, the ring of its thread; in a worker, on their way
 * to that process. Positions count bytes since the start, modulo 2³²; they are compared by their difference (`reaches`).
 */
export interface RecordQueue {
  /** The position behind the last record; that behind the last one that is written, or durable. */
  readonly published: number
  readonly written: number
  readonly durable: number
  /** How many bytes of records are not written yet. */
  readonly waiting: number
  /** Whether the last attempt to write has failed, or nobody writes. */
  readonly failing: boolean
  /** Whether another process has all that is not durable: it is not lost at the end of this one. */
  readonly isElsewhere: boolean
  /** Changes when the time of those who wait begins anew (C12.1.2). */
  readonly steps: number
  /** Puts a record behind the last. Returns its position; undefined if more than `most` bytes would wait then. */
  put(record: PreparedRecord, options: PutOptions): number | undefined
  /** Lets what was put be written. */
  wake(): void
  /** Nothing more is put. */
  end(): void
  /** The `seq` of a durable record. Its place must not be free yet. */
  seqAt(position: number): number
  /** To be called before the rest is read: what comes later is told again. */
  heed(): void
  /** The records before a position are of no use any more. */
  free(position: number): void
}

/** The work on the records of a queue. */
export interface RecordWriting {
  /** Whether somebody waits for it: then it keeps the process alive. */
  await(awaited: boolean): void
  /** Resolves when all is written, or nothing more can be, or after `ms` milliseconds. */
  ended(ms: number): Promise<void>
}
