/**
 * The way of the records from the thread that serves to the thread that writes them (C12.4.2): a ring in shared memory.
 * A record stays in it until it is durable, so that it can be written again after a failure (C12.4.3).
 *
 * Measured: a record costs both threads together 4 µs this way at 16 callers, and 17 at one. A message for each costs 4
 * and 38.
 */
import { Buffer } from 'node:buffer'
import { after } from '../../../base/kernel/clock.ts'
import type { PreparedRecord, PutOptions, ChainHead } from '../format/record.ts'
import type { RecordQueue } from './record-queue.ts'
import { SYNC_BYTES, SyncTimes } from './sync-times.ts'

/** The size of the ring in bytes: a power of two. */
const RING_BYTES = 2 * 1024 ** 2
const MASK = RING_BYTES - 1
/** Where the times of the syncs begin in the memory, in bytes: behind the control words and the head of the chain. */
const SYNC_TIMES = 256
/** Bytes before the ring. */
const CONTROL_BYTES = SYNC_TIMES + SYNC_BYTES
/** Bytes before the members of a record. */
const SLOT_HEAD = 32
/** Slots begin at multiples of this, so that their numbers can be read at once. */
const ALIGNMENT = 8

// The control words. Positions count the bytes since the start, modulo 2³²; they are compared by their difference.
const PUBLISHED = 0
const WRITTEN = 1
const DURABLE = 2
/** Changes whenever the writing thread shall look again. */
const BELL = 3
const ASLEEP = 4
const SIGNALLED = 5
const ENDING = 6
const FAILING = 7
const HEAD_VERSION = 8
// How many segments were asked to end, and how many of these have.
const ROLLS_ASKED = 9
const ROLLS_DONE = 10
/** How many steps the writer has taken that lead to a new segment: its records wait for them, and are not written by them. */
const STEPS = 11
/** The number of the segment that was opened last. */
const SEGMENT = 12
/** Where the head of the chain is in the memory, in bytes. */
const HEAD_SEQ = 64
const HEAD_HASH = 72
const HASH_BYTES = 43

// The words of a slot. A slot without members fills the end of the ring, which is too short for the next record.
const SIZE = 0
const MEMBER_BYTES = 1
const BESIDE_BYTES = 2
const AWAITED = 3
/** Where these are in the slot, in bytes from its beginning. */
const TIME = 16
const SEQ = 24

/** Whether a position is at or behind another. */
export const reaches = (position: number, other: number): boolean => ((position - other) | 0) >= 0

/** A record as the writing thread finds it. Its bytes are the ring's own. */
export interface RingRecord {
  readonly position: number
  /** The position behind it. */
  readonly end: number
  /** As in PreparedRecord. */
  readonly members: Buffer
  /** The lines of the `.personal.jsonl` file, each without its `seq`, with line feeds between them. */
  readonly personal: Buffer
  /** Whether somebody waits until it is durable. */
  readonly awaited: boolean
  /** The time of the record, in milliseconds since the epoch. */
  readonly time: number
}

/** A record in other bytes, at `start`: its members, and behind them the lines beside. */
interface RecordBytes {
  readonly bytes: Buffer
  readonly start: number
  readonly memberBytes: number
  readonly besideBytes: number
}

/** How a writer waits for what there is to do. */
export interface Waits {
  /** As RecordRing's. */
  sleep(position: number, ms: number): void | Promise<void>
  pause(ms: number): void | Promise<void>
}

/** The memory, as both threads see it. The thread that serves makes it, and is the only one to `put`. */
export class RecordRing implements RecordQueue, Waits {
  readonly memory: SharedArrayBuffer
  readonly syncs: SyncTimes
  readonly #control: Int32Array
  readonly #headSeq: Float64Array
  readonly #headHash: Buffer
  readonly #words: Int32Array
  readonly #numbers: Float64Array
  readonly #bytes: Buffer
  /** The position behind the last record whose place may be used again. */
  #freed = 0
  readonly isElsewhere = false
  /** The time of the record that was put last, in milliseconds since the epoch. */
  latest = 0
  /** Ends the rest of a writer in this thread. */
  #rung: (() => void) | undefined

  /** @param from where the chain goes on, at the first start of the thread */
  constructor(memory = new SharedArrayBuffer(CONTROL_BYTES + RING_BYTES), from?: ChainHead) {
    this.memory = memory
    this.#control = new Int32Array(memory, 0, HEAD_SEQ / 4)
    this.syncs = new SyncTimes(memory, SYNC_TIMES)
    this.#headSeq = new Float64Array(memory, HEAD_SEQ, 1)
    this.#headHash = Buffer.from(memory, HEAD_HASH, HASH_BYTES)
    this.#words = new Int32Array(memory, CONTROL_BYTES)
    this.#numbers = new Float64Array(memory, CONTROL_BYTES)
    this.#bytes = Buffer.from(memory, CONTROL_BYTES)
    if (from !== undefined) this.setDurable(0, from)
  }

  /** The position behind the last record. */
  get published(): number {
    return Atomics.load(this.#control, PUBLISHED)
  }

  /** The position behind the last record that is written. It goes back after a failure, to the durable ones. */
  get written(): number {
    return Atomics.load(this.#control, WRITTEN)
  }

  /** The position behind the last durable record. */
  get durable(): number {
    return Atomics.load(this.#control, DURABLE)
  }

  /** How many bytes of records are not written yet. */
  get waiting(): number {
    return (this.published - this.written) | 0
  }

  /** Whether the last attempt to write has failed. */
  get failing(): boolean {
    return Atomics.load(this.#control, FAILING) === 1
  }

  get ending(): boolean {
    return Atomics.load(this.#control, ENDING) === 1
  }

  /** The last durable record. */
  get head(): ChainHead {
    for (;;) {
      const version = Atomics.load(this.#control, HEAD_VERSION)
      const seq = this.#headSeq[0] ?? 0
      const hash = this.#headHash.toString('latin1')
      // An odd version is being changed.
      if (version % 2 === 0 && version === Atomics.load(this.#control, HEAD_VERSION))
        return { seq, hash: seq === 0 ? '' : hash }
    }
  }

  /**
   * Puts a record behind the last. Returns its position; undefined if the records that are kept here would take more than
   * `most` bytes then.
   */
  put({ members, personal }: PreparedRecord, options: PutOptions): number | undefined {
    const memberBytes = Buffer.byteLength(members)
    const beside = personal.join('\n')
    const slot = this.#begin(memberBytes, Buffer.byteLength(beside), options)
    if (slot === undefined) return undefined
    this.#bytes.write(members, slot.at)
    this.#bytes.write(beside, slot.at + memberBytes)
    Atomics.store(this.#control, PUBLISHED, slot.end)
    return slot.start
  }

  /** As `put`, of a record of another process. */
  putBytes({ bytes, start, memberBytes, besideBytes }: RecordBytes, options: PutOptions): number | undefined {
    const slot = this.#begin(memberBytes, besideBytes, options)
    if (slot === undefined) return undefined
    bytes.copy(this.#bytes, slot.at, start, start + memberBytes + besideBytes)
    Atomics.store(this.#control, PUBLISHED, slot.end)
    return slot.start
  }

  /** Makes room for a record, whose bytes begin at `at`. */
  #begin(
    memberBytes: number,
    besideBytes: number,
    { awaited, time, most }: PutOptions,
  ): { readonly start: number; readonly end: number; readonly at: number } | undefined {
    const size = aligned(SLOT_HEAD + memberBytes + besideBytes)
    const start = this.#findRoom(size, most)
    if (start === undefined) return undefined
    const slot = start & MASK
    const word = slot / 4
    this.#words[word + SIZE] = size
    this.#words[word + MEMBER_BYTES] = memberBytes
    this.#words[word + BESIDE_BYTES] = besideBytes
    this.#words[word + AWAITED] = awaited ? 1 : 0
    this.#numbers[(slot + TIME) / 8] = time
    this.latest = time
    return { start, end: (start + size) | 0, at: slot + SLOT_HEAD }
  }

  /** Wakes the writing thread, if it waits for records. */
  wake(): void {
    if (Atomics.load(this.#control, ASLEEP) === 1) this.#ring()
  }

  /**
   * Asks the writing thread to end its segment, when what was put before is durable. Returns the number that `rollsDone`
   * reaches then.
   */
  askRoll(): number {
    const roll = (Atomics.add(this.#control, ROLLS_ASKED, 1) + 1) | 0
    this.#ring()
    return roll
  }

  get rollsDone(): number {
    return Atomics.load(this.#control, ROLLS_DONE)
  }

  /** Lets the writing thread write what there is, once, and end. */
  end(): void {
    Atomics.store(this.#control, ENDING, 1)
    Atomics.notify(this.#control, ENDING)
    this.#ring()
  }

  /** The `seq` that a written record was given. Its place must not be free yet. */
  seqAt(position: number): number {
    return this.#numbers[((position & MASK) + SEQ) / 8] ?? 0
  }

  /** Called when the writing thread has signalled, before the rest is read: what comes later is signalled again. */
  heed(): void {
    Atomics.store(this.#control, SIGNALLED, 0)
  }

  /** Lets the places of the records before a position be used again. */
  free(position: number): void {
    this.#freed = position
  }

  get steps(): number {
    return Atomics.load(this.#control, STEPS)
  }

  // The rest is for the writing thread.

  /** A thread that is started again goes on behind it. */
  get segment(): number {
    return Atomics.load(this.#control, SEGMENT)
  }

  setSegment(number: number): void {
    Atomics.store(this.#control, SEGMENT, number)
  }

  addStep(): void {
    Atomics.add(this.#control, STEPS, 1)
  }

  /** The record at a position; undefined if there is none yet. */
  take(position: number): RingRecord | undefined {
    if (position === this.published) return undefined
    const slot = position & MASK
    const word = slot / 4
    const end = (position + (this.#words[word + SIZE] ?? 0)) | 0
    const memberBytes = this.#words[word + MEMBER_BYTES] ?? 0
    if (memberBytes === 0) return this.take(end)
    const beside = slot + SLOT_HEAD + memberBytes
    return {
      position,
      end,
      members: this.#bytes.subarray(slot + SLOT_HEAD, beside),
      personal: this.#bytes.subarray(beside, beside + (this.#words[word + BESIDE_BYTES] ?? 0)),
      awaited: this.#words[word + AWAITED] === 1,
      time: this.#numbers[(slot + TIME) / 8] ?? 0,
    }
  }

  setSeq(position: number, seq: number): void {
    this.#numbers[((position & MASK) + SEQ) / 8] = seq
  }

  get rollsAsked(): number {
    return Atomics.load(this.#control, ROLLS_ASKED)
  }

  setRollsDone(roll: number): void {
    Atomics.store(this.#control, ROLLS_DONE, roll)
  }

  setWritten(position: number): void {
    Atomics.store(this.#control, WRITTEN, position)
  }

  setDurable(position: number, head: ChainHead): void {
    Atomics.add(this.#control, HEAD_VERSION, 1)
    this.#headSeq[0] = head.seq
    this.#headHash.write(head.hash, 'latin1')
    Atomics.add(this.#control, HEAD_VERSION, 1)
    Atomics.store(this.#control, DURABLE, position)
  }

  setFailing(failing: boolean): void {
    Atomics.store(this.#control, FAILING, failing ? 1 : 0)
  }

  /** Whether the serving thread has to be signalled; not if it was, and has not looked yet. */
  claimSignal(): boolean {
    return Atomics.exchange(this.#control, SIGNALLED, 1) === 0
  }

  /** Blocks until there is a record at the position, a segment or the thread shall end, or `ms` milliseconds are over. */
  sleep(position: number, ms: number): void {
    const bell = Atomics.load(this.#control, BELL)
    Atomics.store(this.#control, ASLEEP, 1)
    if (this.#isIdle(position)) Atomics.wait(this.#control, BELL, bell, ms)
    Atomics.store(this.#control, ASLEEP, 0)
  }

  #isIdle(position: number): boolean {
    return this.published === position && this.rollsAsked === this.rollsDone && !this.ending
  }

  /** Blocks for `ms` milliseconds, or until the thread shall end. */
  pause(ms: number): void {
    Atomics.wait(this.#control, ENDING, 0, ms)
  }

  /** How a writer waits that is in the thread which puts: as `sleep` and `pause`, without blocking it. */
  readonly unblocking: Waits = {
    sleep: async (position, ms) => {
      Atomics.store(this.#control, ASLEEP, 1)
      if (this.#isIdle(position)) await this.#untilRung(ms)
      Atomics.store(this.#control, ASLEEP, 0)
    },
    pause: async (ms) => {
      if (!this.ending) await this.#untilRung(ms)
    },
  }

  #untilRung(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = after(ms, resolve)
      this.#rung = () => {
        cancel()
        resolve()
      }
    })
  }

  #ring(): void {
    Atomics.add(this.#control, BELL, 1)
    Atomics.notify(this.#control, BELL)
    this.#rung?.()
  }

  /** Where a slot of that size begins: no slot goes round the end. Undefined if there is no room for it. */
  #findRoom(size: number, most: number): number | undefined {
    const { published } = this
    const tail = RING_BYTES - (published & MASK)
    const skipped = size > tail ? tail : 0
    const used = (published - this.#freed) | 0
    if (used + skipped + size > Math.min(most, RING_BYTES)) return undefined
    if (skipped > 0) {
      const word = (published & MASK) / 4
      this.#words[word + SIZE] = skipped
      this.#words[word + MEMBER_BYTES] = 0
    }
    return (published + skipped) | 0
  }
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT
