/** The audit trail of this process: what is recorded, and what waits for it (C12.1). */
import type { AuditEntry, AuditTrail, BodyHash, Refusal } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { newSecret } from '../kernel/ids.ts'
import type { AuditPlan } from './config.ts'
import { hashBody } from './keys.ts'
import { prepareRecord } from './record.ts'
import { SegmentWriter } from './segment-writer.ts'
import { Suppression } from './suppression.ts'

export interface OpenTrail extends AuditTrail {
  /** The name of this process's part of the trail. */
  readonly writer: string
  /** Writes what waits, and ends. */
  close(): Promise<void>
}

export interface TrailParts {
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /** The deployment's key for the hashes of bodies (C12.2.2). */
  readonly bodyKey: string
}

/** Opens the trail of this process. Rejects if its folder cannot be used. */
export function openTrail(plan: AuditPlan, parts: TrailParts): Promise<OpenTrail> {
  return Promise.resolve(new FileTrail(plan, parts))
}

class FileTrail implements OpenTrail {
  readonly on = true
  readonly writer: string
  readonly #parts: TrailParts
  readonly #durable: boolean
  readonly #segment: SegmentWriter
  readonly #suppression: Suppression
  #seq = 0

  constructor({ folder, durability }: AuditPlan, parts: TrailParts) {
    const now = new Date(parts.clock.now()).toISOString()
    this.#parts = parts
    this.#durable = durability === 'disk'
    this.#suppression = new Suppression({ trail: this, clock: parts.clock })
    this.writer = `${now.replaceAll(/[-:]|\.\d+/g, '')}-${newSecret(6)}`
    this.#segment = new SegmentWriter({ folder, writer: this.writer, day: now.slice(0, 10) })
    this.note({ event: 'writer.opened', outcome: 'success', actor: { kind: 'service' } })
  }

  require(entry: AuditEntry): Promise<number> {
    try {
      const seq = this.#write(entry)
      if (this.#durable) this.#segment.sync()
      return Promise.resolve(seq)
    } catch (cause) {
      return Promise.reject(new Fault('audit_unavailable', { cause }))
    }
  }

  settle(entry: AuditEntry): Promise<void> {
    this.note(entry)
    return Promise.resolve()
  }

  keep(entry: AuditEntry): void {
    this.note(entry)
  }

  note(entry: AuditEntry): void {
    try {
      this.#write(entry)
    } catch (cause) {
      this.#parts.recorder.note('error', 'audit_not_written', { record: entry.event, cause })
    }
  }

  refuse(refusal: Refusal, entry: () => AuditEntry): void {
    this.#suppression.refuse(refusal, entry)
  }

  bodyHash(): BodyHash {
    return hashBody(this.#parts.bodyKey)
  }

  close(): Promise<void> {
    this.#suppression.end()
    this.note({ event: 'writer.closed', outcome: 'success', actor: { kind: 'service' } })
    this.#segment.close()
    return Promise.resolve()
  }

  #write(entry: AuditEntry): number {
    const seq = ++this.#seq
    const time = this.#parts.clock.now()
    this.#segment.write(prepareRecord(entry, { writer: this.writer, seq, time }))
    return seq
  }
}
