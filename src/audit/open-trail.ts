/** The audit trail of a process, as its owner sees it: beside recording, its state, its segments and its end. */
import type { AuditTrail } from '../contracts/audit.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'
import type { ChainHead } from './record-ring.ts'

export interface OpenTrail extends AuditTrail {
  /** The name of this process's part of the trail. */
  readonly writer: string
  /** The last durable record: what can be signed (C12.4.4). `seq` is 0 before the first. */
  readonly head: ChainHead
  readonly state: TrailState
  /** Lets the thread write what was recorded so far, without waiting for the end of this turn of the event loop. */
  flush(): void
  /**
   * Ends the segments of what was recorded so far: nothing more is written to their files. Rejects with Fault
   * `audit_unavailable` if that takes longer than the timeout of the trail, or cannot be done.
   */
  roll(): Promise<void>
  /** Writes what waits, and ends. Takes no longer than the timeout of the trail. */
  close(): Promise<void>
}

/** What is counted of a trail; each method counts one. */
export interface TrailMeter {
  recorded(event: AuditEvent): void
  /** What was to be recorded before it happens was refused. */
  refusedUnrecorded(): void
  recordDropped(): void
  trailSynced(seconds: number): void
  /** A file that was being written was removed, moved or changed. */
  fileDisplaced(): void
}

/** For the metrics. */
export interface TrailState {
  /** False after a failed attempt to write, until one succeeds. */
  readonly writable: boolean
  /** Records that could not be written in time, and are not yet. */
  readonly held: number
  /** Records that were dropped since the start. */
  readonly dropped: number
  /** How often a file that was being written was removed, moved or changed since the start. */
  readonly displaced: number
  /** Bytes of the records that are not written yet. */
  readonly queue: number
  /** Intents of this process whose outcome is not recorded yet, or never will be. */
  readonly openIntents: number
}
