/** The records of a worker on their way to the process that writes the trail (C12.4.2). */
import { Buffer } from 'node:buffer'
import type { OnReadOpts, Socket } from 'node:net'
import type { After } from '../../../base/kernel/clock.ts'
import type { PreparedRecord, PutOptions } from '../format/record.ts'
import { ArrivingProgress, LeavingRecords } from './record-frames.ts'
import type { RecordQueue, RecordWriting } from './record-queue.ts'

/** The way to the process that writes, and back. */
export interface SentWay {
  readonly records: Socket
  /** Opens what it tells of them. */
  readonly openProgress: (onread: OnReadOpts) => Socket
}

/** Bytes that are read at once. */
const READ = 16 * 1024

/** A record that is not durable yet. */
interface Sent {
  /** As of RecordRing. */
  readonly start: number
  readonly end: number
}

/**
 * As the ring of the process that writes: what is put here is sent at the end of the turn, and what that process tells is how far
 * it has come. Without that process it fails.
 */
export class SentRecords implements RecordQueue, RecordWriting {
  readonly #records: Socket
  readonly #progress: Socket
  readonly #after: After
  readonly #told = new ArrivingProgress()
  readonly #leaving = new LeavingRecords()
  readonly #sent: Sent[] = []
  /** The `seq` of records that have become durable, by their position, until their places are free. */
  readonly #seqs = new Map<number, number>()
  #isGone = false
  /** Whether bytes are on their way out of this process. */
  #isSending = false
  #isFailing = false
  #ending = false
  #awaited = false
  #freed = 0
  steps = 0
  published = 0
  written = 0
  durable = 0
  #onProgress: () => void = () => undefined
  readonly #gone = Promise.withResolvers<undefined>()

  constructor({ records, openProgress }: SentWay, after: After) {
    this.#after = after
    this.#records = records
    this.#progress = openProgress({
      // One for all: what is told is short, and comes often.
      buffer: Buffer.allocUnsafeSlow(READ),
      callback: (bytes, buffer) => {
        this.#take(Buffer.from((buffer as Buffer).subarray(0, bytes)))
        return true
      },
    })
    for (const stream of [this.#records, this.#progress]) {
      stream.unref()
      // `close` follows.
      stream.on('error', () => undefined)
      stream.on('close', () => this.#end())
    }
  }

  get failing(): boolean {
    return this.#isGone || this.#isFailing
  }

  get waiting(): number {
    return (this.published - this.written) | 0
  }

  /** Called when the records have come further, or cannot. */
  onProgress(listener: () => void): void {
    this.#onProgress = listener
  }

  put(
    record: PreparedRecord,
    { most, awaited, onlyDurable = false, time, opens = false, settles = 0 }: PutOptions,
  ): number | undefined {
    const start = this.published
    const left = most - ((start - this.#freed) | 0)
    const size = this.#leaving.add(record, { awaited, onlyDurable, time, opens, settles }, left)
    if (size === 0) return undefined
    this.published = (start + size) | 0
    this.#sent.push({ start, end: this.published })
    return start
  }

  /** One write at a time: while the process that writes does not read, the records stand together and not in many buffers. */
  wake(): void {
    if (this.#leaving.isEmpty || this.#isSending || this.#isGone) return
    this.#isSending = true
    const bytes = this.#leaving.take()
    this.#records.write(bytes, () => {
      this.#isSending = false
      this.#leaving.giveBack(bytes)
      this.wake()
    })
  }

  get isElsewhere(): boolean {
    return !this.#isGone && !this.#isSending && this.#leaving.isEmpty
  }

  end(): void {
    this.wake()
  }

  seqAt(position: number): number {
    return this.#seqs.get(position) ?? 0
  }

  heed(): void {
    // Progress was counted when it came.
  }

  free(position: number): void {
    this.#freed = position
    this.#seqs.clear()
  }

  /** As of WriterThread. */
  await(awaited: boolean): void {
    this.#awaited = awaited
    if (this.#ending) return
    if (awaited) this.#progress.ref()
    else this.#progress.unref()
  }

  /**
   * Resolves when all is written, and durable where somebody waits for that; or nobody writes any more; or after `ms` milliseconds.
   * The way is closed then.
   */
  async ended(ms: number): Promise<void> {
    this.#ending = true
    this.#progress.ref()
    const over = Promise.withResolvers<undefined>()
    const cancel = this.#after(ms, () => over.resolve(undefined))
    const listener = this.#onProgress
    this.#onProgress = () => {
      listener()
      const { durable, written, published } = this
      const isOver = published === (this.#awaited ? durable : written)
      if (isOver || this.#isGone || (this.failing && this.isElsewhere)) over.resolve(undefined)
    }
    this.#onProgress()
    await Promise.race([over.promise, this.#gone.promise])
    cancel()
    this.#records.end()
    this.#progress.unref()
  }

  #take(bytes: Buffer): void {
    const told = this.#told
    told.add(bytes)
    while (told.isWhole) {
      this.#advance(told)
      told.drop()
    }
    this.#onProgress()
  }

  #advance(told: ArrivingProgress): void {
    const durable = this.#sent.splice(0, told.count)
    for (const [index, { start, end }] of durable.entries()) {
      this.#seqs.set(start, told.seq(index))
      this.durable = end
    }
    // After a failure it goes back to what is durable.
    this.written = this.#sent[told.ahead - 1]?.end ?? this.durable
    this.#isFailing = told.failing
    this.steps = told.steps
  }

  #end(): void {
    this.#isGone = true
    this.#gone.resolve(undefined)
    this.#onProgress()
  }
}
