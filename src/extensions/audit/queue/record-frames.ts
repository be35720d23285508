/**
 * The bytes between a worker, whose records they are, and the process that writes the trail (C12.4.2): records on the way there,
 * and how far these have come on the way back. Both are processes of one machine and of one version.
 */
import { Buffer } from 'node:buffer'
import { isoTime, type PreparedRecord, type PutOptions } from '../format/record.ts'

/** Frames that arrive in pieces: the next whole one begins at `at` in `bytes`. */
abstract class ArrivingFrames {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  /** The bytes of a frame from which its size can be read. */
  protected abstract readonly head: number

  /** The size of the frame at `at`, in bytes. */
  protected abstract get size(): number

  /** Whether there is a whole one. */
  get isWhole(): boolean {
    const left = this.bytes.length - this.at
    return left >= this.head && left >= this.size
  }

  add(bytes: Buffer): void {
    this.bytes = this.at === this.bytes.length ? bytes : Buffer.concat([this.bytes.subarray(this.at), bytes])
    this.at = 0
  }

  /** Goes on behind the whole one. */
  drop(): void {
    this.at += this.size
  }
}

/** The facts of a worker's record besides its bytes. */
type SentRecord = Required<Omit<PutOptions, 'most'>>

// A record: the lengths of its members and of the lines beside, its flags, its time, the intent that it settles; then these members
// and lines.
const MEMBER_BYTES = 0
const BESIDE_BYTES = 4
const FLAGS = 8
const TIME = 16
const SETTLES = 24
const RECORD_HEAD = 32
const BEFORE_TIME = '"time":"'.length
const AWAITED = 1
const OPENS = 2
const ONLY_DURABLE = 4
/** Bytes that the records of a turn mostly fit into. */
const USUAL = 64 * 1024
/** Bytes of UTF-8 that a UTF-16 unit takes at most. */
const MOST_OF_UNIT = 3

/** The records of one turn of a worker, ready to be sent. */
export class LeavingRecords {
  #bytes: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(USUAL)
  #length = 0
  /** Bytes that can be used again: to make them anew for each turn keeps the garbage collector busy. */
  #spare: Buffer<ArrayBuffer> | undefined

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** Adds a record, unless it takes more than `most` bytes. Returns its bytes; 0 if it was not added. */
  add(
    { members, personal }: PreparedRecord,
    { awaited, onlyDurable, time, opens, settles }: SentRecord,
    most: number,
  ): number {
    const beside = personal.length === 0 ? '' : personal.join('\n')
    const start = this.#length
    this.#makeRoom(RECORD_HEAD + (members.length + beside.length) * MOST_OF_UNIT)
    const bytes = this.#bytes
    const memberBytes = bytes.write(members, start + RECORD_HEAD)
    const besideBytes = beside === '' ? 0 : bytes.write(beside, start + RECORD_HEAD + memberBytes)
    const size = RECORD_HEAD + memberBytes + besideBytes
    if (size > most) return 0
    bytes.writeUInt32LE(memberBytes, start + MEMBER_BYTES)
    bytes.writeUInt32LE(besideBytes, start + BESIDE_BYTES)
    const flags = (awaited ? AWAITED : 0) | (opens ? OPENS : 0) | (onlyDurable ? ONLY_DURABLE : 0)
    bytes.writeUInt32LE(flags, start + FLAGS)
    bytes.writeDoubleLE(time, start + TIME)
    bytes.writeDoubleLE(settles, start + SETTLES)
    this.#length += size
    return size
  }

  /** All that was added since the last time. Give the bytes back when they are of no use any more. */
  take(): Buffer<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = this.#spare ?? Buffer.allocUnsafeSlow(USUAL)
    this.#spare = undefined
    this.#length = 0
    return taken
  }

  giveBack({ buffer }: Buffer<ArrayBuffer>): void {
    if (buffer.byteLength === USUAL) this.#spare = Buffer.from(buffer)
  }

  #makeRoom(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + more))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** The records of a worker, as they arrive. The members describe the whole one. */
export class ArrivingRecords extends ArrivingFrames implements SentRecord {
  protected readonly head = RECORD_HEAD

  protected get size(): number {
    return RECORD_HEAD + this.memberBytes + this.besideBytes
  }

  get memberBytes(): number {
    return this.bytes.readUInt32LE(this.at + MEMBER_BYTES)
  }

  get besideBytes(): number {
    return this.bytes.readUInt32LE(this.at + BESIDE_BYTES)
  }

  /** Where its members begin in `bytes`; the lines beside follow. */
  get start(): number {
    return this.at + RECORD_HEAD
  }

  get awaited(): boolean {
    return (this.bytes.readUInt32LE(this.at + FLAGS) & AWAITED) !== 0
  }

  get opens(): boolean {
    return (this.bytes.readUInt32LE(this.at + FLAGS) & OPENS) !== 0
  }

  get onlyDurable(): boolean {
    return (this.bytes.readUInt32LE(this.at + FLAGS) & ONLY_DURABLE) !== 0
  }

  get time(): number {
    return this.bytes.readDoubleLE(this.at + TIME)
  }

  /** Gives it a later time: the members begin with it. */
  delay(time: number): void {
    this.bytes.write(isoTime(time), this.start + BEFORE_TIME, 'latin1')
    this.bytes.writeDoubleLE(time, this.at + TIME)
  }

  get settles(): number {
    return this.bytes.readDoubleLE(this.at + SETTLES)
  }
}

/** How far the records of a worker have come. Counts are of all since it started, modulo 2³². */
export interface Progress {
  readonly written: number
  readonly durable: number
  /** As RecordRing's. */
  readonly failing: boolean
  readonly steps: number
  /** The `seq` of each record that has become durable since the last time. */
  readonly seqs: readonly number[]
}

const WRITTEN = 0
const DURABLE = 4
const FAILING = 8
const STEPS = 12
const COUNT = 16
const PROGRESS_HEAD = 20
const SEQ_BYTES = 8

export function progressFrame({ written, durable, failing, steps, seqs }: Progress): Buffer {
  const frame = Buffer.allocUnsafe(PROGRESS_HEAD + seqs.length * SEQ_BYTES)
  frame.writeUInt32LE(written >>> 0, WRITTEN)
  frame.writeUInt32LE(durable >>> 0, DURABLE)
  frame.writeUInt32LE(failing ? 1 : 0, FAILING)
  frame.writeUInt32LE(steps >>> 0, STEPS)
  frame.writeUInt32LE(seqs.length, COUNT)
  let at = PROGRESS_HEAD
  for (const seq of seqs) at = frame.writeDoubleLE(seq, at)
  return frame
}

/** The progress that a worker is told, as it arrives. */
export class ArrivingProgress extends ArrivingFrames {
  protected readonly head = PROGRESS_HEAD

  protected get size(): number {
    return PROGRESS_HEAD + this.count * SEQ_BYTES
  }

  /** How many records have become durable. */
  get count(): number {
    return this.bytes.readUInt32LE(this.at + COUNT)
  }

  /** How many records behind the durable ones are written. */
  get ahead(): number {
    const { bytes, at } = this
    return (bytes.readUInt32LE(at + WRITTEN) - bytes.readUInt32LE(at + DURABLE)) >>> 0
  }

  get failing(): boolean {
    return this.bytes.readUInt32LE(this.at + FAILING) === 1
  }

  get steps(): number {
    return this.bytes.readUInt32LE(this.at + STEPS)
  }

  /** @param index of a record that has become durable */
  seq(index: number): number {
    return this.bytes.readDoubleLE(this.at + PROGRESS_HEAD + index * SEQ_BYTES)
  }
}
