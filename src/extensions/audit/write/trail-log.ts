import type { AuditEntry } from '../../../base/contracts/records/audit.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'

/** The lines of the log about the trail: its troubles, and records that it does not have, or not yet. */
export class TrailLog {
  readonly #recorder: Pick<Recorder, 'note'>
  #troubled = false

  constructor(recorder: Pick<Recorder, 'note'>) {
    this.#recorder = recorder
  }

  /** Whether a failure was logged, and no recovery since. */
  get troubled(): boolean {
    return this.#troubled
  }

  /** It is late, and written when that is possible. */
  held(entry: AuditEntry): void {
    this.#tellOf('audit_held', entry)
  }

  dropped(entry: AuditEntry): void {
    this.#tellOf('audit_dropped', entry)
  }

  lost(entry: AuditEntry): void {
    this.#tellOf('audit_lost', entry)
  }

  /** @param failing whether nothing can be written now; otherwise only a segment was lost */
  abandoned(detail: string, failing: boolean): void {
    this.#troubled = failing
    if (failing) this.#recorder.note('error', 'audit_unwritable', { detail })
    else this.#recorder.note('warn', 'audit_segment_abandoned', { detail })
  }

  /** A file was removed, moved or changed by somebody else. */
  displaced(detail: string): void {
    this.#recorder.note('error', 'audit_file_displaced', { detail })
  }

  recovered(): void {
    this.#troubled = false
    this.#recorder.note('info', 'audit_writable')
  }

  #tellOf(name: string, { event, outcome, reason, requestId, actor, on }: AuditEntry): void {
    const record = { event, outcome, reason, requestId, actor, on }
    this.#recorder.note('error', name, { record })
  }
}
