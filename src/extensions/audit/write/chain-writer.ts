/** Writes the records of a ring to segments, in groups: whatever came while the last sync ran (C12.4.2). */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { messageOf } from '../../../base/kernel/thrown.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import type { RecordRing, RingRecord, Waits } from '../queue/record-ring.ts'
import { prepareRecord, type ChainHead } from '../format/record.ts'
import { DisplacedError, OpenSegment } from '../format/segment.ts'

export interface ChainPlan {
  readonly folder: string
  /** The name of the trail. */
  readonly writer: string
  /** The number of its last segment; 0 where it has none. */
  readonly lastSegment: number
  /** Whether records shall survive a power cut; or else the end of the process only. */
  readonly durable: boolean
  /** Bytes of lines after which another segment begins. */
  readonly segmentBytes: number
  /** The name of this node, where several share a store. */
  readonly node?: string | undefined
}

interface ChainWriterParts {
  readonly ring: RecordRing
  readonly waits: Waits
  /** Whether this thread has other work than to write, which a sync must not hold up. */
  readonly shares: boolean
  /** Signals to the serving thread that more is written, or durable. */
  readonly signal: () => void
  /** A segment was left after a failure. `displaced`: because its file was removed, moved or changed. */
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
  #segment: OpenSegment | undefined
  /** The day of the segment, in days since the epoch. */
  #day = 0
  #number: number
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
    this.#number = Math.max(plan.lastSegment, parts.ring.segment)
    // A thread before this one may have ended: its segment is left as it is.
    this.#chain = new ChainLines(plan.writer, parts.ring.head)
    this.#cursor = parts.ring.durable
    parts.ring.setWritten(this.#cursor)
  }

  /** Resolves when the ring shall end, and what is in it is written, or an attempt at that has failed. Never rejects. */
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
      else await this.#rest()
    } catch (error) {
      await this.#abandon(error)
    }
  }

  async #rest(): Promise<void> {
    const due = this.#syncDue - performance.now()
    await this.#parts.waits.sleep(this.#cursor, this.#segment === undefined ? due : Math.min(due, LOOK))
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
    await this.#create(dayOf(time))
    this.#begin(time)
  }

  async #finish(segment: OpenSegment): Promise<void> {
    this.#write()
    await this.#sync()
    this.#segment = undefined
    segment.close()
    this.#step()
  }

  /** Waiting callers count the time from here: a new segment takes several syncs before the one of its records. */
  #step(): void {
    this.#ring.addStep()
    this.#parts.signal()
  }

  /** Ends the segment, if there is one: nothing more is written to its files. The next record begins another. */
  async #roll(): Promise<void> {
    const roll = this.#ring.rollsAsked
    if (this.#segment !== undefined) await this.#finish(this.#segment)
    this.#ring.setRollsDone(roll)
    this.#parts.signal()
  }

  async #create(day: number): Promise<void> {
    const { folder, writer, durable } = this.#plan
    for (;;)
      try {
        const number = this.#number + 1
        this.#segment = await OpenSegment.open({ folder, writer, day: nameOfDay(day), number }, durable)
        this.#number = number
        this.#ring.setSegment(number)
        this.#day = day
        this.#step()
        return
      } catch (error) {
        if (!isTaken(error)) throw error
        this.#number += 1
      }
  }

  /**
   * The first record of a segment names the last of the one before, so that no segment can be taken out unnoticed; and the node,
   * for all records behind it.
   */
  #begin(time: number): void {
    const { node, writer } = this.#plan
    const { head } = this.#chain
    const opening = {
      ...(node !== undefined && { node }),
      ...(head.seq > 0 && { before: { writer, ...head } }),
    }
    const change = Object.keys(opening).length > 0 ? opening : undefined
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
      await (this.#parts.shares ? this.#segment.syncAside() : this.#segment.sync())
      this.#ring.syncs.add(performance.now() - start)
      this.#segment.requireInPlace()
    }
    this.#kept()
  }

  /** All that was written is durable. */
  #kept(): void {
    this.#segment?.keep()
    this.#syncDue = Infinity
    this.#ring.setDurable(this.#cursor, this.#chain.head)
    // A thread before this one may have ended in a failure.
    if (this.#failures > 0 || this.#ring.failing) this.#recovered()
    this.#parts.signal()
  }

  #recovered(): void {
    this.#failures = 0
    this.#ring.setFailing(false)
  }

  /**
   * Data written to a descriptor, or synced, after a failure may be lost though the system says that it succeeded. So the
   * segment is left at its last durable record, and the rest is written again, to another one: at once, then each second.
   * Lines that were written to a file which is not in its place any more are written again too.
   */
  async #abandon(error: unknown): Promise<void> {
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
    if (this.#failures > 1) await this.#parts.waits.pause(RETRY)
  }
}

const VERSION = 1
const LINE_FEED = 0x0a
/** Bytes of a line besides the members and the name of its writer; each line of a `.personal.jsonl` file has fewer. */
const AROUND = 128

/** A buffer that grows at its end. */
class Bytes {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The bytes that are there, until they are cleared. */
  get whole(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(length = 0): void {
    this.#length = length
  }

  makeRoom(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + more))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  /** ASCII only. */
  text(text: string): void {
    this.#length += this.#bytes.write(text, this.#length, 'latin1')
  }

  copy(bytes: Buffer, start = 0, end = bytes.length): void {
    this.#length += bytes.copy(this.#bytes, this.#length, start, end)
  }
}

/** The lines of a group of records, ready to be written: numbered and chained (C12.4.1). */
class ChainLines {
  readonly #prefix: string
  /** The hash before, and the line that is being made. */
  readonly #line = new Bytes()
  readonly #lines = new Bytes()
  readonly #beside = new Bytes()
  head: ChainHead

  constructor(writer: string, head: ChainHead) {
    this.#prefix = `{"v":${VERSION},"writer":"${writer}","seq":`
    this.head = head
  }

  get lines(): Buffer {
    return this.#lines.whole
  }

  /** The lines of the `.personal.jsonl` file. */
  get beside(): Buffer {
    return this.#beside.whole
  }

  clear(): void {
    this.#lines.clear()
    this.#beside.clear()
  }

  /** Adds a record behind the head. Returns its `seq`. */
  add({ members, personal }: Pick<RingRecord, 'members' | 'personal'>): number {
    const seq = this.head.seq + 1
    const line = this.#line
    line.clear()
    line.makeRoom(members.length + this.#prefix.length + AROUND)
    line.text(this.head.hash)
    const start = line.length
    line.text(this.#prefix)
    line.text(`${seq},`)
    line.copy(members)
    const recordHash = hash('sha256', line.whole, 'base64url')
    this.#lines.makeRoom(line.length + AROUND)
    this.#lines.copy(line.whole, start, line.length - 1)
    this.#lines.text(`,"hash":"${recordHash}"}\n`)
    if (personal.length > 0) this.#addBeside(personal, seq)
    this.head = { seq, hash: recordHash }
    return seq
  }

  #addBeside(personal: Buffer, seq: number): void {
    for (let start = 0; start < personal.length;) {
      const found = personal.indexOf(LINE_FEED, start)
      const end = found === -1 ? personal.length : found
      this.#beside.makeRoom(end - start + AROUND)
      this.#beside.text(`{"seq":${seq},`)
      this.#beside.copy(personal, start, end)
      this.#beside.text('\n')
      start = end + 1
    }
  }
}
