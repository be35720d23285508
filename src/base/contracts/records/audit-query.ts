/** Questions to the audit trail, and its answers (C12.5). */
import type { AuditEvent } from '../../kernel/audit-events.ts'
import type { AuditEntry } from './audit.ts'

/** How an act ended. `open`: an intent whose outcome is missing. */
export const ROW_OUTCOMES = ['success', 'refused', 'failed', 'open'] as const
export type RowOutcome = (typeof ROW_OUTCOMES)[number]

/** Every given member must fit. */
export interface AuditQuery {
  readonly business?: string | undefined
  readonly fund?: string | undefined
  /** A `sub`: who acted, or whom it is about. */
  readonly user?: string | undefined
  /** A client id: through which it came, or that it is about. */
  readonly client?: string | undefined
  /** Who acted, as it was proven: a `sub`, a client id or the name of an operator. */
  readonly by?: string | undefined
  /** `action` or `area/action`. */
  readonly action?: string | undefined
  readonly request?: string | undefined
  readonly events?: readonly AuditEvent[] | undefined
  readonly outcome?: RowOutcome | undefined
  /** Whether it has changed something, or may have: an open intent. */
  readonly changed?: boolean | undefined
  /** From this moment on, in milliseconds since the epoch. */
  readonly from?: number | undefined
  /** Before this moment. */
  readonly until?: number | undefined
  /** Every record by itself. Otherwise the records of one call are one row. */
  readonly singly?: boolean | undefined
}

export interface TrailRecord extends Omit<AuditEntry, 'personal'> {
  readonly writer: string
  readonly seq: number
  readonly time: string
  readonly personal?: Readonly<Record<string, string>>
  readonly hash?: string
}

export interface AuditRow extends Omit<TrailRecord, 'outcome' | 'personal'> {
  /** The outcome of the whole call, where the row is an intent. `pending` only where each record is a row by itself. */
  readonly outcome: RowOutcome | 'pending'
  /** The record that holds the outcome of an intent. */
  readonly settled?: { readonly seq: number; readonly time: string } | undefined
  /** Places of personal values that were erased. */
  readonly erased?: readonly string[] | undefined
  /** Places of personal values that are not those of the record: they don't fit its hashes. */
  readonly altered?: readonly string[] | undefined
}

/** A line that is no record: the chain shows what became of it (`postern audit verify`). */
export interface UnreadableLine {
  readonly path: string
  readonly offset: number
}

export interface Position {
  readonly day: string
  /** The time of the row, in milliseconds since the epoch. */
  readonly time: number
  readonly writer: string
  readonly seq: number
}

export interface ScanRequest {
  /** Folders of one trail each: those of several nodes are one answer. */
  readonly folders: readonly string[]
  readonly query: AuditQuery
  /** Only rows behind this one. */
  readonly after?: Position | undefined
  readonly limit?: number | undefined
}

/** Part of the time that was asked for and that a trail lacks. */
export interface UncoveredTime {
  /** It has nothing of that time. */
  readonly all: boolean
  /** The time of its first record; undefined if it has none, or if that time has not come yet. */
  readonly begins: string | undefined
  /** Since when it was kept, if what stood before `begins` was removed when its retention had ended. */
  readonly removedFrom: string | undefined
}

export interface ScanEnd {
  readonly rows: number
  readonly uncovered?: UncoveredTime | undefined
  /** The place of the last row, if there may be more. */
  readonly last?: Position | undefined
  readonly unreadable: readonly UnreadableLine[]
  readonly unreadableCount: number
}

/** Bytes that were read, and those of all that is to be read. */
export interface ReadProgress {
  readonly done: number
  readonly total: number
}

export type ScanStep =
  { readonly kind: 'rows'; readonly lines: readonly string[] } | ({ readonly kind: 'end' } & ScanEnd)

/** The files could not be read, or there was too much to answer. The message is for operators: it may name files. */
export class TrailReadError extends Error {
  override readonly name = 'TrailReadError'
}

/** The result of a verification (C12.4.6). */
export interface TrailVerdict {
  readonly whole: boolean
  /** What was tampered with, and where: the first ones. */
  readonly findings: readonly object[]
  readonly found: number
  readonly records: number
  readonly signedUntil: string | undefined
  readonly anchoredUntil: string | undefined
}

/** The erasure of a subject's personal values (C12.2.3). */
export interface Redacted {
  /** Personal values that were erased. */
  readonly values: number
  /** Files that were written anew. */
  readonly files: number
}

/** Makes an erasure durable in the trail, then does it. `subject`: whose values were found; undefined if there are none. */
export type RecordedErasure = (
  found: Redacted,
  erase: () => Promise<void>,
  subject: string | undefined,
) => Promise<void>

/** The erasure of a subject's personal values in the trails of all nodes that share a store. */
export interface ErasedEverywhere extends Redacted {
  /** The nodes that still have to: host and address. */
  readonly pending: readonly string[]
}

/** Reads the trail of a service, in a thread. */
export interface TrailReader {
  /** The answer, in batches. It waits until each was taken. Rejects with TrailReadError. */
  query(
    order: Omit<ScanRequest, 'folders'>,
    onProgress?: (progress: ReadProgress) => void,
  ): AsyncIterable<ScanStep>
  /** Rejects with TrailReadError. */
  verify(): Promise<TrailVerdict>
}
