/** Writes the records of a ring to segments, in groups: whatever came while the last sync ran (C12.4.2). */
import { type AnnouncedWriter, writeAnnouncement } from './announcement.ts'
import { ChainLines } from './chain-lines.ts'
import { DisplacedError } from './displaced.ts'
import { prepareRecord } from './record.ts'
import type { RecordRing, RingRecord } from './record-ring.ts'
import { Segment } from './segment.ts'
import { messageOf } from '../kernel/thrown.ts'
import { DAY_MS } from '../kernel/units.ts'

export interface ChainPlan {
  readonly folder: string
  readonly writer: string
  /** How this writer was announced; absent only where nobody signs the trail. */
  readonly announced?: AnnouncedWriter | undefined
  /** Whether records shall survive a power cut; or else the end of the process only. */
  readonly durable: boolean
  /** Bytes of lines after which another segment begins. */
  readonly segmentBytes: number
  /** The name of this node, where several share a store. */
  readonly node?: string | undefined
}

export interface ChainWriterParts {
  readonly ring: RecordRing
  /** Tells the serving thread that more is written, or durable. */
  readonly signal: () => void
  /** A segment was left after a failure. `displaced`: since its file was removed, moved or changed. */
  readonly abandoned: (reason: string, displaced: boolean) => void
}

/** Bytes of lines that are written at once. */
const GROUP = 64 * 1024
/** Bytes in the ring that are synced though nobody waits for them: it must not fill. */
const MOST_UNSYNCED = 256 * 1024
/** Milliseconds after which a record is synced though nobody waits for it. */
const SYNC_AFTER = 1000
/** Milliseconds between two attempts. */
const RETRY = 1000
/** Milliseconds after which an idle thread looks whether its files are still there. */
const LOOK = 1000

const NOTHING = Buffer.alloc(0)

/** Whether an attempt that failed has left a segment of that number behind. */
const isTaken = (error: unknown): boolean => {
  const { code, syscall } = error as NodeJS.ErrnoException
  return code === 'EEXIST' && syscall === 'open'
}

const dayOf = (time: number): number => Math.floor(time / DAY_MS)
const nameOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

export class ChainWriter {
  readonly #plan: ChainPlan
  readonly #parts: ChainWriterParts
  readonly #ring: RecordRing
  readonly #chain: ChainLines
  #segment: Segment | undefined
  /** Of the segment, in days since the epoch. */
  #day = 0
  #number = 0
  /** The position of the next record. */
  #cursor: number
  /** When the records that are not durable have to be; in the time of performance.now(). */
  #syncDue = Infinity
  /** Attempts that failed, one after another. */
  #failures = 0

  constructor(plan: ChainPlan, parts: ChainWriterParts) {
    this.#plan = plan
    this.#parts = parts
    this.#ring = parts.ring
    // A thread before this one may have ended: its segment is left as it is.
    this.#chain = new ChainLines(plan.writer, parts.ring.head)
    this.#cursor = parts.ring.durable
    parts.ring.setWritten(this.#cursor)
  }

  /** Blocks until the ring shall end, and what is in it is written, or an attempt at that has failed. */
  async run(): Promise<void> {
    while (!this.#isDone()) await this.#attempt()
    this.#segment?.close()
  }

  #isDone(): boolean {
    const { ring } = this.#parts
    return ring.ending && (this.#failures > 1 || ring.published === ring.durable)
  }

  async #attempt(): Promise<void> {
    try {
      if (this.#ring.published !== this.#cursor) await this.#writeGroup()
      else if (this.#ring.rollsAsked !== this.#ring.rollsDone) await this.#roll()
      else if (this.#ring.ending || this.#syncDue <= performance.now()) await this.#sync()
      else this.#rest()
    } catch (error) {
      this.#abandon(error)
    }
  }

  #rest(): void {
    const due = this.#syncDue - performance.now()
    this.#ring.sleep(this.#cursor, this.#segment === undefined ? due : Math.min(due, LOOK))
    if (this.#ring.published === this.#cursor) this.#segment?.requireInPlace()
  }

  async #writeGroup(): Promise<void> {
    let awaited = false
    let record = this.#ring.take(this.#cursor)
    for (; record !== undefined && this.#chain.lines.length < GROUP; record = this.#ring.take(record.end)) {
      if (!this.#fits(record)) await this.#nextSegment(record)
      this.#ring.setSeq(record.position, this.#chain.add(record))
      this.#cursor = record.end
      awaited ||= record.awaited
    }
    this.#write()
    if (awaited || this.#unsynced() > MOST_UNSYNCED) await this.#sync()
  }

  #unsynced(): number {
    return (this.#cursor - this.#ring.durable) | 0
  }

  /** Another segment begins each day, and when the last is full. */
  #fits({ time }: RingRecord): boolean {
    const bytes = (this.#segment?.length ?? Infinity) + this.#chain.lines.length
    return bytes < this.#plan.segmentBytes && dayOf(time) === this.#day
  }

  async #nextSegment({ time }: RingRecord): Promise<void> {
    if (this.#segment !== undefined) await this.#finish(this.#segment)
    this.#create(dayOf(time))
    this.#begin(time)
  }

  async #finish(segment: Segment): Promise<void> {
    this.#write()
    await this.#sync()
    this.#segment = undefined
    segment.close()
  }

  /** Ends the segment, if there is one: nothing more is written to its files. The next record begins another. */
  async #roll(): Promise<void> {
    const roll = this.#ring.rollsAsked
    if (this.#segment !== undefined) await this.#finish(this.#segment)
    this.#ring.setRollsDone(roll)
    this.#parts.signal()
  }

  #create(day: number): void {
    const { folder, writer, durable, announced } = this.#plan
    if (announced !== undefined && this.#chain.head.seq === 0) writeAnnouncement(folder, announced)
    for (;;)
      try {
        const number = this.#number + 1
        this.#segment = Segment.open({ folder, writer, day: nameOfDay(day), number }, durable)
        this.#number = number
        this.#day = day
        return
      } catch (error) {
        if (!isTaken(error)) throw error
        this.#number += 1
      }
  }

  /**
   * The first record of a segment names the last of the one before, so that no segment can be taken out unnoticed; how this
   * writer was announced, so that the announcement cannot be taken out; and the node, for all records of this writer.
   */
  #begin(time: number): void {
    const { node, writer, announced } = this.#plan
    const before = this.#number === 1 ? undefined : { writer, ...this.#chain.head }
    const told = {
      ...(node !== undefined && { node }),
      ...(announced !== undefined && { announced: { ...announced.announcement } }),
      ...(before !== undefined && { before }),
    }
    const change = Object.keys(told).length > 0 ? told : undefined
    const actor = { kind: 'service' } as const
    const { members } = prepareRecord({ event: 'writer.opened', outcome: 'success', actor, change }, time)
    this.#chain.add({ members: Buffer.from(members), personal: NOTHING })
  }

  /** Hands the lines that are ready to the system. */
  #write(): void {
    this.#segment?.append(this.#chain.lines, this.#chain.beside)
    this.#segment?.requireInPlace()
    this.#chain.clear()
    this.#ring.setWritten(this.#cursor)
    if (this.#plan.durable) {
      this.#syncDue = Math.min(this.#syncDue, performance.now() + SYNC_AFTER)
      this.#parts.signal()
    } else this.#kept()
  }

  async #sync(): Promise<void> {
    if (this.#plan.durable && this.#segment !== undefined) {
      const start = performance.now()
      await this.#segment.sync()
      this.#ring.syncs.add(performance.now() - start)
      this.#segment.requireInPlace()
    }
    this.#kept()
  }

  /** What was written is durable. */
  #kept(): void {
    this.#segment?.keep()
    this.#syncDue = Infinity
    this.#ring.setDurable(this.#cursor, this.#chain.head)
    if (this.#failures > 0) this.#recovered()
    this.#parts.signal()
  }

  #recovered(): void {
    this.#failures = 0
    this.#ring.setFailing(false)
  }

  /**
   * What is written to a descriptor, or synced, after a failure may be lost though the system says that it succeeded. So the
   * segment is left at its last durable record, and the rest is written again, to another one: at once, then each second.
   * So is what was written to a file that is not in its place any more.
   */
  #abandon(error: unknown): void {
    const displaced = error instanceof DisplacedError
    if (displaced) this.#segment?.leave()
    else if (this.#segment?.abandon() === 'removed') this.#number -= 1
    this.#segment = undefined
    this.#cursor = this.#ring.durable
    this.#chain.clear()
    this.#chain.head = this.#ring.head
    this.#syncDue = Infinity
    this.#ring.setWritten(this.#cursor)
    this.#failures += 1
    if (this.#failures > 1) this.#ring.setFailing(true)
    this.#parts.abandoned(messageOf(error), displaced)
    if (this.#failures > 1) this.#ring.pause(RETRY)
  }
}
