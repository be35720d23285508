/** The audit trail of this process: what is recorded, and what waits for it (C12.1). */
import type { KeyObject } from 'node:crypto'
import { setImmediate } from 'node:timers'
import type {
  AuditEntry,
  AuditTrail,
  BodyHash,
  RefusalRecord,
  RequireOptions,
} from '../../../base/contracts/records/audit.ts'
import { endsIntent } from '../../../base/kernel/audit-events.ts'
import { after as systemAfter } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import type { KeptTrailParts } from '../../../operate/hooks/kept-trail.ts'
import { bodyKeyOf, hashBody } from '../format/keys.ts'
import { prepareRecord, type PutOptions } from '../format/record.ts'
import type { RecordQueue, RecordWriting } from '../queue/record-queue.ts'
import { reaches } from '../queue/record-ring.ts'
import { Suppression } from './suppression.ts'
import { TrailLog } from './trail-log.ts'
import { Waiting } from '../queue/waiting.ts'

/** For the metrics. */
interface TrailState {
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

export interface TrailParts extends KeptTrailParts {
  /** The deployment's key for the hashes of bodies (C12.2.2). */
  readonly bodyKey: string
  /** Within what time a record must be durable, in milliseconds. */
  readonly timeout: number
}

/** Where the records of a process go. */
interface TrailWay {
  readonly queue: RecordQueue
  readonly writing: RecordWriting
}

const UNWRITABLE = 'the audit trail cannot be written'
// Bytes that the records which are not durable may take, before one of its kind: what stops nothing leaves room to what
// does, and that to what has happened already.
const MOST_FOR_NOTES = 512 * 1024
const MOST_FOR_REQUIRED = 1024 ** 2
export const MOST_FOR_KEPT = 2 * 1024 ** 2

/** The record may be written yet. Its caller waits no more, so it is undone then. */
export const late = (ms: number): Fault =>
  new Fault('audit_unavailable', {
    detail: `the record was not durable within ${ms / 1000} s: the disk of the audit trail is slow`,
    late: true,
    retryAfter: 1,
  })
const lost = (detail: string): Fault => new Fault('audit_unavailable', { detail, retryAfter: 1 })

/** The `seq` of the intent that an entry settles; 0 if it settles none. */
const settledBy = ({ event, outcome, intent = 0 }: AuditEntry): number =>
  outcome === 'pending' || !endsIntent(event) ? 0 : intent

/** The audit trail of a process, as its owner has it: besides recording, its state and its end. */
export class OpenTrail implements AuditTrail {
  readonly on = true
  readonly #parts: TrailParts
  readonly #bodyKey: KeyObject
  readonly #suppression: Suppression
  readonly #queue: RecordQueue
  readonly #writing: RecordWriting
  /** Callers that wait until a record is durable. */
  readonly #durable: Waiting
  /** Callers that wait until a record is written. */
  readonly #written: Waiting
  /** All who wait. */
  readonly #waits: Waiting[] = []
  readonly #held = new Set<Held>()
  protected readonly log: TrailLog
  /** Steps to a new segment that were seen. */
  #steps = 0
  #dropped = 0
  protected displaced = 0
  /** The `seq` of each. */
  readonly #openIntents = new Set<number>()
  #waking = false
  /** Set when the trail is closed; settles when nothing is written any more. */
  protected over: Promise<void> | undefined
  #closing: Promise<void> | undefined
  /** Called when all else was recorded; takes no longer than so many milliseconds. */
  protected beforeEnd: ((ms: number) => Promise<void>) | undefined

  constructor({ queue, writing }: TrailWay, parts: TrailParts) {
    const { clock } = parts
    this.#parts = parts
    this.#queue = queue
    this.#writing = writing
    this.log = new TrailLog(parts.recorder)
    this.#bodyKey = bodyKeyOf(parts.bodyKey)
    this.#suppression = new Suppression({ trail: this, clock })
    this.#durable = this.waiting()
    this.#written = this.waiting()
  }

  protected waiting(): Waiting {
    const { clock, after = systemAfter, timeout } = this.#parts
    const waiting = new Waiting({ clock, after, timeout, look: () => this.look() })
    this.#waits.push(waiting)
    return waiting
  }

  get state(): TrailState {
    const { failing, waiting } = this.#queue
    const { size: held } = this.#held
    const openIntents = this.#openIntents.size
    const [dropped, displaced] = [this.#dropped, this.displaced]
    return { writable: !failing, held, dropped, displaced, queue: waiting, openIntents }
  }

  require(entry: AuditEntry, { goesOn = false }: RequireOptions = {}): Promise<number> {
    if (this.#queue.failing) return Promise.reject(this.#refusal(lost(UNWRITABLE)))
    const opens = entry.outcome === 'pending'
    const start = this.put(entry, { awaited: true, onlyDurable: true, most: MOST_FOR_REQUIRED, opens })
    if (start === undefined) return Promise.reject(this.#refusal(lost('too many records wait to be written')))
    const seq = (): number => this.#queue.seqAt(start)
    return new Promise((resolve, reject) => {
      this.#wait(this.#durable, {
        reached: () => {
          if (opens) this.#openIntents.add(seq())
          resolve(seq())
        },
        late: () => {
          const fault = this.#queue.failing ? lost(UNWRITABLE) : late(this.#parts.timeout)
          reject(goesOn ? fault : this.#refusal(fault))
        },
        ...(!goesOn && { written: () => this.#undo(entry, seq()) }),
      })
    })
  }

  settle(entry: AuditEntry): Promise<void> {
    if (this.put(entry, { awaited: false, most: MOST_FOR_KEPT }) === undefined) {
      this.#drop(entry)
      return Promise.resolve()
    }
    this.#settled(entry)
    return new Promise((resolve) => this.#wait(this.#written, { reached: resolve, late: resolve }))
  }

  keep(entry: AuditEntry): Promise<boolean> {
    if (this.put(entry, { awaited: true, most: MOST_FOR_KEPT }) === undefined) {
      this.#drop(entry)
      return Promise.resolve(false)
    }
    return new Promise((resolve) => {
      const held = (): void => {
        this.log.held(entry)
        resolve(false)
      }
      const reached = (): void => resolve(true)
      this.#wait(this.#written, { reached, late: held, lost: () => this.log.lost(entry) })
    })
  }

  note(entry: AuditEntry): void {
    if (this.put(entry, { awaited: false, most: MOST_FOR_NOTES }) === undefined) this.#countDropped()
    else if (entry.event === 'tunnel.opened') this.#settled(entry)
  }

  refuse(refusal: RefusalRecord, entry: () => AuditEntry): void {
    this.#suppression.refuse(refusal, entry)
  }

  bodyHash(): BodyHash {
    return hashBody(this.#bodyKey)
  }

  /** Lets the thread write what was recorded so far, without waiting for the end of this turn of the event loop. */
  flush(): void {
    this.#waking = false
    this.#queue.wake()
  }

  /** Writes what waits, and ends. Takes no longer than the timeout of the trail. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    const { clock, timeout } = this.#parts
    const start = clock.monotonic()
    await this.#untilNoneHeld()
    this.#suppression.end()
    await this.beforeEnd?.(Math.max(0, timeout - (clock.monotonic() - start)))
    this.#queue.end()
    const left = Math.max(0, timeout - (clock.monotonic() - start))
    await (this.over = this.#writing.ended(left))
    this.look()
    for (const waiting of this.#waits) {
      waiting.expireAll()
      waiting.stop()
    }
    if (!this.#queue.isElsewhere) for (const held of this.#held) held.lost?.()
  }

  /** Called when the records have come further, before their places are free. */
  protected looked(): void {
    // Only the process that writes the trail tells others.
  }

  /** Waits for records that are late: what of them was refused meanwhile is undone by another record. */
  async #untilNoneHeld(): Promise<void> {
    this.look()
    if (this.#held.size === 0 || this.#queue.failing) return
    const over = Promise.withResolvers<undefined>()
    const reached = (): void => over.resolve(undefined)
    this.#durable.add({ end: this.#queue.published, reached, late: reached })
    this.#writing.await(true)
    await over.promise
  }

  /** Returns the position of the record; undefined if there is no room for it. */
  protected put(entry: AuditEntry, options: Omit<PutOptions, 'time' | 'settles'>): number | undefined {
    if (this.over !== undefined) return undefined
    const time = this.#parts.clock.now()
    const record = prepareRecord(entry, time)
    const position = this.#queue.put(record, { ...options, time, settles: settledBy(entry) })
    if (position === undefined) return undefined
    this.#parts.metrics?.recorded(entry.event)
    this.wakeSoon()
    return position
  }

  /** At the end of this turn of the event loop, so that the records of one turn are one group. */
  protected wakeSoon(): void {
    if (this.#waking) return
    this.#waking = true
    setImmediate(() => this.flush())
  }

  /** Waits for the record that was put last. */
  #wait(waiting: Waiting, { reached, late, written, lost }: Wait): void {
    const end = this.#queue.published
    const held = (): void => {
      this.#held.add({ end, written, lost })
      late()
    }
    if (this.#queue.failing) held()
    else {
      waiting.add({ end, reached, late: held })
      this.#writing.await(true)
    }
  }

  /** Looks how far the records have come. */
  protected look(): void {
    const queue = this.#queue
    queue.heed()
    const { durable, failing, steps } = queue
    if (steps !== this.#steps) for (const waiting of this.#waits) waiting.renew()
    this.#steps = steps
    this.#written.reach(queue.written)
    this.#durable.reach(durable)
    for (const held of this.#held) if (reaches(durable, held.end)) this.#release(held)
    this.looked()
    queue.free(durable)
    if (failing) for (const waiting of this.#waits) waiting.expireAll()
    else if (this.log.troubled) this.log.recovered()
    if (this.#waits.every(({ isEmpty }) => isEmpty)) this.#writing.await(false)
  }

  #release(held: Held): void {
    this.#held.delete(held)
    held.written?.()
  }

  /** Records the refusal of an act whose record was late, and is durable after all: so the intent does not stay open. */
  #undo({ event, requestId, traceId, actor, on }: AuditEntry, seq: number): void {
    const settled = event === 'call.intended' ? 'call.settled' : event
    const outcome = { event: settled, outcome: 'refused', reason: 'audit_unavailable' } as const
    void this.keep({ ...outcome, requestId, traceId, intent: seq, actor, on })
  }

  #settled({ intent }: AuditEntry): void {
    if (intent !== undefined) this.#openIntents.delete(intent)
  }

  #drop(entry: AuditEntry): void {
    this.#countDropped()
    this.log.dropped(entry)
  }

  #countDropped(): void {
    this.#dropped += 1
    this.#parts.metrics?.recordDropped()
  }

  #refusal(fault: Fault): Fault {
    this.#parts.metrics?.refusedUnrecorded()
    return fault
  }
}

/** A wait of one caller. One of `reached` and `late` is called. */
interface Wait {
  readonly reached: () => void
  readonly late: () => void
  /** Called if it was late, and the record became durable after that. */
  readonly written?: () => void
  /** Called if it was late, and the trail has ended without it. */
  readonly lost?: () => void
}

/** A record that nobody waits for any more, until it is durable. */
interface Held {
  readonly end: number
  readonly written: (() => void) | undefined
  readonly lost: (() => void) | undefined
}
