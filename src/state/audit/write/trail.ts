/** The audit trail of this process: what is recorded, and what waits for it (C12.1). */
import type { KeyObject } from 'node:crypto'
import type { Stats } from 'node:fs'
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { setImmediate } from 'node:timers'
import type {
  AuditEntry,
  AuditTrail,
  BodyHash,
  RefusalRecord,
  RequireOptions,
} from '../../../base/contracts/records/audit.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { AuditEvent } from '../../../base/kernel/audit-events.ts'
import { type After, after as systemAfter, type Clock } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { whoMayReplace } from '../../../base/files/file-modes.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import type { AnnouncedWriter } from '../format/announcement.ts'
import type { AuditThreadMessage } from './audit-thread.ts'
import { bodyKeyOf, hashBody } from '../format/keys.ts'
import { reaches, RecordRing, Waiting } from './record-ring.ts'
import { prepareRecord, type PutOptions, type ChainHead } from '../format/record.ts'
import type { AuditPlan } from '../format/schema.ts'
import { Suppression } from './suppression.ts'
import { WriterThread } from './thread.ts'
import { WriterHere } from './writer-here.ts'

/** Counts the events of a trail; each method counts one. */
interface TrailMeter {
  recorded(event: AuditEvent): void
  /** An act that was to be recorded before it happens was refused. */
  refusedUnrecorded(): void
  recordDropped(): void
  trailSynced(seconds: number): void
  /** A file that was being written was removed, moved or changed. */
  fileDisplaced(): void
}

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

export interface TrailParts {
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /** The deployment's key for the hashes of bodies (C12.2.2). */
  readonly bodyKey: string
  readonly after?: After
  readonly meter?: TrailMeter | undefined
  /** Bytes of lines after which another segment begins. */
  readonly segmentBytes?: number
  /** The name of this node, where several share a store. */
  readonly node?: string | undefined
  /** This process's part of the trail, as it was announced. Absent only where nobody signs the trail. */
  readonly announced?: AnnouncedWriter | undefined
  /** Whether this thread writes, as that of a command does, which serves nobody. */
  readonly here?: boolean
}

const CLOSED: AuditEntry = { event: 'writer.closed', outcome: 'success', actor: { kind: 'service' } }
/** The parts of a plan that concern writing. */
type WritingPlan = Pick<AuditPlan, 'folder' | 'durability' | 'timeout'>

const UNWRITABLE = 'the audit trail cannot be written'
const SEGMENT_BYTES = 64 * 1024 ** 2
// Bytes that the records which are not durable may take, before one of its kind: what stops nothing leaves room to what
// does, and that to what has happened already.
const MOST_FOR_NOTES = 512 * 1024
const MOST_FOR_REQUIRED = 1024 ** 2
const MOST_FOR_KEPT = 2 * 1024 ** 2

/** Opens the trail of this process, in a folder that was prepared (`prepareAuditFolder`). */
export const openTrail = (plan: WritingPlan, parts: TrailParts): OpenTrail => new OpenTrail(plan, parts)

/** The name of a writer: when it began, and what distinguishes it from others of that second. */
export const newWriterName = (time: number): string => `${writerStamp(time)}-${newSecret(6)}`

/** How the names of writers begin that began at this time, or later: by them they can be compared. */
export const writerStamp = (time: number): string =>
  new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '')

/** The record may be written yet. Its caller waits no more, so it is undone then. */
const late = (ms: number): Fault =>
  new Fault('audit_unavailable', {
    detail: `the record was not durable within ${ms / 1000} s: the disk of the audit trail is slow`,
    late: true,
    retryAfter: 1,
  })
const lost = (detail: string): Fault => new Fault('audit_unavailable', { detail, retryAfter: 1 })

/** The audit trail of a process, as its owner has it: besides recording, its state, its segments and its end. */
export class OpenTrail implements AuditTrail {
  readonly on = true
  /** The name of this process's part of the trail. */
  readonly writer: string
  readonly #parts: TrailParts
  readonly #bodyKey: KeyObject
  readonly #suppression: Suppression
  readonly #timeout: number
  readonly #ring = new RecordRing()
  readonly #writing: Pick<WriterThread, 'await' | 'ended'>
  /** Callers that wait until a record is durable. */
  readonly #durable: Waiting
  /** Callers that wait until a record is written. */
  readonly #written: Waiting
  /** Callers that wait for the end of a segment, by the number of the roll. */
  readonly #rolls: Waiting
  readonly #held = new Set<Held>()
  readonly #log: TrailLog
  /** Steps to a new segment that were seen. */
  #steps = 0
  #dropped = 0
  #displaced = 0
  /** The `seq` of each. */
  readonly #openIntents = new Set<number>()
  #waking = false
  /** Set when the trail is closed; settles when its thread has ended. */
  #ended: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor({ folder, durability, timeout }: WritingPlan, parts: TrailParts) {
    const { clock, after = systemAfter, segmentBytes = SEGMENT_BYTES, node, announced } = parts
    this.#parts = parts
    this.#log = new TrailLog(parts.recorder)
    this.#bodyKey = bodyKeyOf(parts.bodyKey)
    this.#suppression = new Suppression({ trail: this, clock })
    this.#timeout = timeout
    this.writer = announced?.writer ?? newWriterName(clock.now())
    const waiting = { clock, after, timeout, look: () => this.#look() }
    this.#durable = new Waiting(waiting)
    this.#written = new Waiting(waiting)
    this.#rolls = new Waiting(waiting)
    const durable = durability === 'disk'
    const plan = { folder, writer: this.writer, durable, segmentBytes, node, announced }
    const onMessage = (message: AuditThreadMessage): void => this.#onMessage(message)
    const died = (cause: unknown): void => parts.recorder.note('error', 'audit_thread_ended', { cause })
    this.#writing =
      parts.here === true
        ? new WriterHere(this.#ring, plan, { after, onMessage })
        : new WriterThread({ ...plan, memory: this.#ring.memory }, { after, onMessage, died })
  }

  get #waiting(): readonly Waiting[] {
    return [this.#written, this.#durable, this.#rolls]
  }

  /** The last durable record: what can be signed (C12.4.4). `seq` is 0 before the first. */
  get head(): ChainHead {
    return this.#ring.head
  }

  get state(): TrailState {
    const { failing, waiting } = this.#ring
    const { size: held } = this.#held
    const openIntents = this.#openIntents.size
    const [dropped, displaced] = [this.#dropped, this.#displaced]
    return { writable: !failing, held, dropped, displaced, queue: waiting, openIntents }
  }

  require(entry: AuditEntry, { goesOn = false }: RequireOptions = {}): Promise<number> {
    if (this.#ring.failing) return Promise.reject(this.#refusal(lost(UNWRITABLE)))
    const start = this.#put(entry, { awaited: true, most: MOST_FOR_REQUIRED })
    if (start === undefined) return Promise.reject(this.#refusal(lost('too many records wait to be written')))
    const seq = (): number => this.#ring.seqAt(start)
    return new Promise((resolve, reject) => {
      this.#wait(this.#durable, {
        reached: () => {
          if (entry.outcome === 'pending') this.#openIntents.add(seq())
          resolve(seq())
        },
        late: () => {
          const fault = this.#ring.failing ? lost(UNWRITABLE) : late(this.#timeout)
          reject(goesOn ? fault : this.#refusal(fault))
        },
        ...(!goesOn && { written: () => this.#undo(entry, seq()) }),
      })
    })
  }

  settle(entry: AuditEntry): Promise<void> {
    if (this.#put(entry, { awaited: false, most: MOST_FOR_KEPT }) === undefined) {
      this.#drop(entry)
      return Promise.resolve()
    }
    this.#settled(entry)
    return new Promise((resolve) => this.#wait(this.#written, { reached: resolve, late: resolve }))
  }

  keep(entry: AuditEntry): Promise<void> {
    if (this.#put(entry, { awaited: true, most: MOST_FOR_KEPT }) === undefined) {
      this.#drop(entry)
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      const held = (): void => {
        this.#log.held(entry)
        resolve()
      }
      this.#wait(this.#written, { reached: resolve, late: held, lost: () => this.#log.lost(entry) })
    })
  }

  note(entry: AuditEntry): void {
    if (this.#put(entry, { awaited: false, most: MOST_FOR_NOTES }) === undefined) this.#countDropped()
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
    this.#ring.wake()
  }

  /**
   * Ends the segments of what was recorded so far: nothing more is written to their files. Rejects with Fault
   * `audit_unavailable` if that takes longer than the timeout of the trail, or cannot be done.
   */
  roll(): Promise<void> {
    if (this.#ended !== undefined) return this.#ended
    const end = this.#ring.askRoll()
    return new Promise((reached, reject) => {
      this.#rolls.add({ end, reached, late: () => reject(late(this.#timeout)) })
      this.#writing.await(true)
    })
  }

  /** Writes what waits, and ends. Takes no longer than the timeout of the trail. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    const { clock } = this.#parts
    const start = clock.monotonic()
    await this.#untilNoneHeld()
    this.#suppression.end()
    if (this.#ring.published !== 0) this.#put(CLOSED, { awaited: true, most: MOST_FOR_KEPT })
    this.#ring.end()
    const left = Math.max(0, this.#timeout - (clock.monotonic() - start))
    await (this.#ended = this.#writing.ended(left))
    this.#look()
    for (const waiting of this.#waiting) {
      waiting.expireAll()
      waiting.stop()
    }
    for (const held of this.#held) held.lost?.()
  }

  /** Waits for records that are late: what of them was refused meanwhile is undone by another record. */
  async #untilNoneHeld(): Promise<void> {
    this.#look()
    if (this.#held.size === 0 || this.#ring.failing) return
    const over = Promise.withResolvers<undefined>()
    const reached = (): void => over.resolve(undefined)
    this.#durable.add({ end: this.#ring.published, reached, late: reached })
    this.#writing.await(true)
    await over.promise
  }

  /** Returns the position of the record; undefined if there is no room for it. */
  #put(entry: AuditEntry, options: Omit<PutOptions, 'time'>): number | undefined {
    if (this.#ended !== undefined) return undefined
    const time = this.#parts.clock.now()
    const position = this.#ring.put(prepareRecord(entry, time), { ...options, time })
    if (position === undefined) return undefined
    this.#parts.meter?.recorded(entry.event)
    if (!this.#waking) this.#wakeSoon()
    return position
  }

  /** At the end of this turn of the event loop, so that the records of one turn are one group. */
  #wakeSoon(): void {
    this.#waking = true
    setImmediate(() => this.flush())
  }

  /** Waits for the record that was put last. */
  #wait(waiting: Waiting, { reached, late, written, lost }: Wait): void {
    const end = this.#ring.published
    const held = (): void => {
      this.#held.add({ end, written, lost })
      late()
    }
    if (this.#ring.failing) held()
    else {
      waiting.add({ end, reached, late: held })
      this.#writing.await(true)
    }
  }

  #onMessage(message: AuditThreadMessage): void {
    this.#look()
    if (message === null) return
    const { abandoned, displaced } = message
    if (displaced) {
      this.#displaced += 1
      this.#parts.meter?.fileDisplaced()
      this.#log.displaced(abandoned)
    }
    const { failing } = this.#ring
    if (!this.#log.troubled && (failing || !displaced)) this.#log.abandoned(abandoned, failing)
  }

  /** Looks how far the thread has come. */
  #look(): void {
    const ring = this.#ring
    ring.heed()
    const { durable, failing, steps } = ring
    if (steps !== this.#steps) for (const waiting of this.#waiting) waiting.renew()
    this.#steps = steps
    this.#written.reach(ring.written)
    this.#durable.reach(durable)
    this.#rolls.reach(ring.rollsDone)
    for (const ms of ring.syncs.take()) this.#parts.meter?.trailSynced(ms / 1000)
    for (const held of this.#held) if (reaches(durable, held.end)) this.#release(held)
    ring.free(durable)
    if (failing) for (const waiting of this.#waiting) waiting.expireAll()
    else if (this.#log.troubled) this.#log.recovered()
    if (this.#waiting.every(({ isEmpty }) => isEmpty)) this.#writing.await(false)
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
    this.#log.dropped(entry)
  }

  #countDropped(): void {
    this.#dropped += 1
    this.#parts.meter?.recordDropped()
  }

  #refusal(fault: Fault): Fault {
    this.#parts.meter?.refusedUnrecorded()
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

/** The lines of the log about the trail: its troubles, and records that it does not have, or not yet. */
class TrailLog {
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

/** The folder of the trail cannot be used as it is, so the service must not start. The message says what to do. */
export class AuditFolderError extends Error {
  override readonly name = 'AuditFolderError'
}

/**
 * Creates the folder (mode 0700) if it does not exist, and examines it. Rejects with AuditFolderError if it cannot be
 * written, or if other users could write to it: they could replace the files of the trail.
 * @param group whose the folder's group is (`dataGroup`)
 */
export async function prepareAuditFolder(folder: string, group: 'own' | 'others'): Promise<void> {
  const found = await openFolder(folder).catch((cause: unknown) => {
    const reason = messageOf(cause)
    throw new AuditFolderError(
      `The folder of the audit trail, ${folder}, cannot be used: ${reason}. Correct that, or set another folder ` +
        '(`audit.folder`).',
      { cause },
    )
  })
  const others = whoMayReplace(folder, found, group)
  if (others !== undefined)
    throw new AuditFolderError(
      `Others could replace the files of the audit trail: its folder, ${folder}, ${others}.`,
    )
}

async function openFolder(folder: string): Promise<Stats> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await stat(folder)
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  return found
}
