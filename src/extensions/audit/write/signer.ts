/** Signs the last record of the trail, each second with news (C12.4.4). The process that holds the lock of the folder does. */
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { type After, after as systemAfter, type Clock } from '../../../base/kernel/clock.ts'
import { oneAtATime } from '../../../base/kernel/in-turn.ts'
import { type AnchorPlan, AnchorSink } from '../format/anchors.ts'
import type { AuditKeys } from '../format/keys.ts'
import { ManifestFile, type ManifestNews, type RemovedSegment, type SignedHead } from '../format/manifest.ts'
import type { ChainHead } from '../format/record.ts'
import { DisplacedError } from '../format/segment.ts'
import { findEnd, syncSegments } from './find-end.ts'
import { newWriterName, type TrailEnd } from './writing-trail.ts'

interface SignerParts {
  readonly folder: string
  readonly keys: AuditKeys
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly anchors: readonly AnchorPlan[]
  /**
   * Whether the records that the writer counts as durable are. Otherwise they are made so before they are signed: a power cut must
   * not look like an attack.
   */
  readonly durable: boolean
  /** Called when an anchor could not be written. */
  readonly anchorFailed?: (() => void) | undefined
  /** Called when the manifest was removed, moved or changed by somebody else. */
  readonly displaced?: (() => void) | undefined
  readonly after?: After | undefined
}

/** For the metrics. */
export interface SignerState {
  /** False after a failed attempt to sign, until one succeeds. */
  readonly signing: boolean
  /** How often the manifest was removed, moved or changed by somebody else since the start. */
  readonly displaced: number
  /** The time of the last line, RFC 3339. */
  readonly signedAt: string | undefined
  /** When the anchor that is furthest behind was written last, milliseconds since the epoch; 0: not since the start. */
  readonly anchoredAt: number | undefined
}

const PERIOD = 1000

export class ManifestSigner {
  /** Where the writer goes on. */
  readonly end: TrailEnd
  readonly #parts: SignerParts
  readonly #file: ManifestFile
  readonly #anchors: readonly AnchorSink[]
  /** The last durable record, as far as it is known. */
  #head: SignedHead
  /** The last segment that was synced here. */
  #synced: number
  /** The first line of this process is news: nothing may be written before it. */
  #news = true
  #failing = false
  #displaced = 0
  /** One line at a time. */
  readonly #inTurn = oneAtATime()
  #cancel: (() => void) | undefined
  #durable: () => ChainHead
  readonly #begun = Promise.withResolvers<undefined>()
  /** Why nothing could be signed yet; undefined once something was. */
  trouble: Error | undefined

  private constructor(parts: SignerParts, file: ManifestFile, end: TrailEnd, head: SignedHead) {
    this.#parts = parts
    this.#file = file
    this.end = end
    this.#head = head
    this.#synced = end.number
    this.#durable = () => head
    this.#anchors = parts.anchors.map((plan) => new AnchorSink(plan, parts))
  }

  /**
   * Goes on with the manifest, or begins one: its next line signs where the writer goes on, with what a process that was killed has
   * left behind. Rejects with ManifestError, or with the system's error if nothing can be read. Where that line cannot be written,
   * it is tried again each second; until then nothing may be written to the trail (`begun`).
   */
  static async open(parts: SignerParts): Promise<ManifestSigner> {
    const { folder, keys, clock } = parts
    const file = await ManifestFile.open(folder, keys)
    const { head, closed, begins } = file.last ?? {}
    const { writer } = head ?? { writer: newWriterName(clock.now()) }
    const signed = head ?? { writer, seq: 0, hash: '' }
    const isClosed = closed === true || head === undefined
    const found = await findEnd(folder, signed, { isClosed, begins })
    const isFound = found.head.seq > signed.seq
    const first: SignedHead = { writer, ...found.head, ...(isFound && { found: true as const }) }
    const signer = new ManifestSigner(parts, file, { writer, ...found }, first)
    await signer.sign()
    signer.#wind()
    return signer
  }

  get state(): SignerState {
    const written = this.#anchors.map(({ writtenAt }) => writtenAt)
    const anchoredAt = written.length === 0 ? undefined : Math.min(...written)
    const signedAt = this.#file.last?.time
    return { signing: !this.#failing, displaced: this.#displaced, signedAt, anchoredAt }
  }

  /** Resolves when the first line is written: what stands behind a line that says `closed` would count for nothing. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /** From now on what this returns is signed: the last durable record of the writer. */
  follow(durable: () => ChainHead): void {
    this.#durable = durable
  }

  /** Signs that segments are about to be removed. Rejects with the system's error; then they must not be. */
  async remove(removed: readonly RemovedSegment[]): Promise<void> {
    await this.#inTurn(() => this.#append({ removed }))
  }

  /** Signs what there is to sign. Never rejects. */
  sign(): Promise<void> {
    return this.#attempt(() => this.#signNews())
  }

  /**
   * Signs the last record, and writes the anchors. Never rejects.
   *
   * @param isEnd whether the writer has written all: what is found behind it is not its own then
   */
  async close(isEnd: boolean): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    await this.#attempt(async () => {
      this.#look()
      if (isEnd || this.#news) await this.#append(isEnd ? { closed: true } : {})
    })
    const { last } = this.#file
    if (last !== undefined) await Promise.all(this.#anchors.map((anchor) => anchor.write(last, true)))
    await this.#file.close().catch(() => undefined)
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await this.#inTurn(work)
      if (this.#failing) this.#parts.recorder.note('info', 'audit_manifest_writable')
      this.#failing = false
      this.trouble = undefined
      this.#begun.resolve(undefined)
    } catch (cause) {
      this.trouble = cause as Error
      if (!this.#failing) this.#parts.recorder.note('error', 'audit_manifest_unwritable', { cause })
      this.#failing = true
    }
  }

  #wind(): void {
    const { after = systemAfter } = this.#parts
    this.#cancel = after(PERIOD, () => {
      this.#wind()
      void this.sign()
    })
  }

  /** Later lines are signed in a file of the same name: a verification of it finds what is missing there. */
  #tellDisplaced(cause: DisplacedError): void {
    this.#displaced += 1
    this.#news = true
    this.#parts.displaced?.()
    this.#parts.recorder.note('error', 'audit_file_displaced', { detail: cause.message })
  }

  async #signNews(): Promise<void> {
    await this.#file.look().catch((thrown: unknown) => {
      if (!(thrown instanceof DisplacedError)) throw thrown
      this.#tellDisplaced(thrown)
    })
    this.#look()
    if (this.#news) await this.#append()
    const { last } = this.#file
    if (last !== undefined) await Promise.all(this.#anchors.map((anchor) => anchor.write(last)))
  }

  #look(): void {
    const { seq, hash } = this.#durable()
    if (hash === this.#head.hash) return
    this.#head = { writer: this.end.writer, seq, hash }
    this.#news = true
  }

  async #append(more: Pick<ManifestNews, 'removed' | 'closed'> = {}): Promise<void> {
    const { folder, clock, durable } = this.#parts
    if (!durable) this.#synced = await syncSegments(folder, this.end.writer, this.#synced, clock.now())
    const time = new Date(clock.now()).toISOString()
    this.#news = false
    try {
      // Until a record of this start is signed, the next one must know where those begin.
      const begins = this.#head.seq === this.end.head.seq ? this.end.number : undefined
      await this.#file.append({ time, head: this.#head, begins, ...more })
    } catch (error) {
      this.#news = true
      if (error instanceof DisplacedError) this.#tellDisplaced(error)
      throw error
    }
  }
}
