/** The records of a worker, in the process that writes the trail (C12.4.2). */
import type { Buffer } from 'node:buffer'
import type { Readable, Writable } from 'node:stream'
import type { RecordedWay } from '../../../base/contracts/processes/recorded-way.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import { ArrivingRecords, type Progress, progressFrame } from './record-frames.ts'
import { reaches, type RecordRing } from './record-ring.ts'

/** Bytes of the ring that the records of workers may fill. The others wait on their way, and in their process. */
const MOST_OF_WORKERS = 384 * 1024
/** How much older than the last record one of another process may be to get the time of that, in milliseconds. */
const MOST_BEHIND = 10_000

export interface TakenParts {
  readonly ring: RecordRing
  /** Called when there are records in the ring that the thread may not know of. */
  readonly put: () => void
  /** Called when the worker has ended, with the number of intents that it has left open. */
  readonly left: (open: number) => void
}

const dayOf = (time: number): number => Math.floor(time / DAY_MS)

/** Takes the records of one worker, and tells it how far they have come. */
export class TakenRecords {
  readonly #records: Readable
  readonly #progress: Writable
  readonly #parts: TakenParts
  readonly #arriving = new ArrivingRecords()
  /** Records in the ring that are not durable: where each begins and ends there, and whether it is an intent. */
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  readonly #opens: boolean[] = []
  /** Whether the worker is told of each when it is written. */
  readonly #toBeWritten: boolean[] = []
  /** Intents without an outcome, by their `seq`. */
  readonly #open = new Set<number>()
  #durable = 0
  /** The progress that the worker was told last. */
  #toldWritten = 0
  #toldFailing = false
  #toldSteps = 0
  #isGone = false
  #isStopped = false

  constructor({ records, progress }: RecordedWay, parts: TakenParts) {
    this.#records = records
    this.#progress = progress
    this.#parts = parts
    records.on('data', (bytes: Buffer) => this.#take(bytes))
    records.on('close', () => this.#end())
    // A worker that was killed may leave half a record, and what is told to it may not arrive.
    for (const stream of [records, progress]) stream.on('error', () => undefined)
  }

  /** Whether the worker has ended, and all that it has sent is durable. */
  get isOver(): boolean {
    return this.#isGone && this.#ends.length === 0 && !this.#arriving.isWhole
  }

  /** Looks how far its records have come, and tells the worker. To be called before their places in the ring are free. */
  look(): void {
    const { ring } = this.#parts
    const { written, durable, failing, steps } = ring
    const until = this.#ends.findIndex((end) => !reaches(durable, end))
    const count = until === -1 ? this.#ends.length : until
    const seqs = this.#starts.splice(0, count).map((start) => ring.seqAt(start))
    for (const [index, opens] of this.#opens.splice(0, count).entries())
      if (opens) this.#open.add(seqs[index] ?? 0)
    this.#ends.splice(0, count)
    this.#toBeWritten.splice(0, count)
    this.#durable += count
    const ahead = this.#ends.findIndex((end) => !reaches(written, end))
    const behind = ahead === -1 ? this.#ends.length : ahead
    this.#tell({ written: this.#durable + behind, durable: this.#durable, failing, steps, seqs })
    this.#tellLeft()
  }

  #tell(progress: Progress): void {
    const { written, failing, steps, seqs } = progress
    const isOld =
      seqs.length === 0 &&
      !this.#isAwaited(written) &&
      failing === this.#toldFailing &&
      steps === this.#toldSteps
    if (isOld || this.#isGone) return
    this.#toldWritten = written
    this.#toldFailing = failing
    this.#toldSteps = steps
    this.#progress.write(progressFrame(progress))
  }

  /** Whether the worker waits for a record that is written now, and was not when it was told last. */
  #isAwaited(written: number): boolean {
    const told = Math.max(0, this.#toldWritten - this.#durable)
    const awaited = this.#toBeWritten.indexOf(true, told)
    return awaited !== -1 && awaited < written - this.#durable
  }

  /** Whether records wait for room in the ring. */
  get isWaiting(): boolean {
    return this.#records.isPaused()
  }

  /** From now on nothing is taken. */
  stop(): void {
    this.#isStopped = true
  }

  /** Puts what has waited, as far as there is room. Returns whether there was. To be called when places in the ring are free. */
  goOn(): boolean {
    const { length } = this.#ends
    this.#put()
    if (!this.#arriving.isWhole) this.#records.resume()
    return this.#ends.length > length
  }

  #take(bytes: Buffer): void {
    this.#arriving.add(bytes)
    this.#put()
    if (this.#arriving.isWhole) this.#records.pause()
  }

  #put(): void {
    const { ring } = this.#parts
    const arriving = this.#arriving
    while (arriving.isWhole && !this.#isStopped) {
      this.#delay()
      const { bytes, start, memberBytes, besideBytes, awaited } = arriving
      const options = { awaited, time: arriving.time, most: MOST_OF_WORKERS }
      const position = ring.putBytes({ bytes, start, memberBytes, besideBytes }, options)
      if (position === undefined) return
      this.#parts.put()
      this.#starts.push(position)
      this.#ends.push(ring.published)
      this.#opens.push(arriving.opens)
      this.#toBeWritten.push(!arriving.onlyDurable)
      const { settles } = arriving
      if (settles > 0) this.#open.delete(settles)
      arriving.drop()
    }
  }

  /** A record that arrives behind one of the next day has the time of that one, as its segment is of that day. */
  #delay(): void {
    const { latest } = this.#parts.ring
    const { time } = this.#arriving
    if (dayOf(time) < dayOf(latest) && latest - time <= MOST_BEHIND) this.#arriving.delay(latest)
  }

  #end(): void {
    this.#isGone = true
    this.#tellLeft()
  }

  /** Once, when the worker has ended and all that it has sent is durable. */
  #tellLeft(): void {
    if (!this.isOver) return
    if (this.#open.size > 0) this.#parts.left(this.#open.size)
    this.#open.clear()
  }
}
