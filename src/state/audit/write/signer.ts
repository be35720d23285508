/** Signs the heads of all writers, each second with news (C12.4.4). One process does, under the lock of the folder. */
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { type After, after as systemAfter, type Clock } from '../../../base/kernel/clock.ts'
import { oneAtATime } from '../../../base/kernel/in-turn.ts'
import { type AnchorPlan, AnchorSink } from '../format/anchors.ts'
import { type AnnouncedWriter, AnnouncementFiles } from '../format/announcement.ts'
import type { AuditKeys } from '../format/keys.ts'
import {
  ManifestFile,
  type ManifestLine,
  type ManifestNews,
  type RemovedSegment,
  type SignedHead,
} from '../format/manifest.ts'
import { findEnds, type FoundEnd, isWrittenSince, type Segment, syncSegments } from '../format/segments.ts'
import { DisplacedError } from '../format/segment.ts'

export interface SignerParts {
  readonly folder: string
  readonly keys: AuditKeys
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly anchors: readonly AnchorPlan[]
  /**
   * Reported records are durable. Otherwise they are made so before they are signed: a power cut must not look like an
   * attack.
   */
  readonly durable: boolean
  /** How long processes of a service that was killed may still write, in milliseconds: they answer what they have begun. */
  readonly linger?: number | undefined
  /** Whether a writer is of this service. */
  readonly isOurs?: ((writer: string) => boolean) | undefined
  /** The head of this process, if it has a trail of its own. */
  readonly own?: () => SignedHead | undefined
  /** Called when an anchor could not be written. */
  readonly anchorFailed?: (() => void) | undefined
  /** Called when the manifest was removed, moved or changed by somebody else. */
  readonly displaced?: (() => void) | undefined
  /** Called with the writers that were there before this process signed, before their ends are. Never rejects. */
  readonly leftBehind?: ((writers: readonly string[]) => Promise<void>) | undefined
  readonly after?: After
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
/** Milliseconds that the times of files may differ from those of the manifest. */
const SLACK = 5000
/** Names of writers in one line of the log. */
const MOST_TOLD = 10

export class ManifestSigner {
  readonly #parts: SignerParts
  readonly #file: ManifestFile
  readonly #anchors: readonly AnchorSink[]
  readonly #files: AnnouncementFiles
  /** The heads of the processes that write, by writer. */
  readonly #heads = new Map<string, SignedHead>()
  /** Writers whose process has ended, and whose end is not read yet. */
  readonly #ended = new Set<string>()
  /** Writers that write no more, and are left out when their last head is signed. */
  readonly #leaving = new Set<string>()
  /** Writers that a line has announced, and that have not left. */
  readonly #announced = new Set<string>()
  /** Writers of a service before this one, whose processes may still write. */
  readonly #lingering = new Set<string>()
  /**
   * Writers of a service that waits for the end of this one, and of commands: what they have written is read, until they have
   * ended. One that was killed is read until this process ends: nothing tells it from one that waits.
   */
  readonly #beside = new Set<string>()
  #lingerUntil = -Infinity
  #news = false
  #failing = false
  #displaced = 0
  /** One line at a time. */
  readonly #inTurn = oneAtATime()
  #cancel: (() => void) | undefined

  private constructor(parts: SignerParts, file: ManifestFile) {
    this.#parts = parts
    this.#file = file
    this.#files = new AnnouncementFiles(parts)
    this.#anchors = parts.anchors.map((plan) => new AnchorSink(plan, parts))
  }

  /**
   * Goes on with the manifest, and signs what processes have left behind that ended without a last line. Rejects with
   * ManifestError, or with the system's error.
   */
  static async open(parts: SignerParts): Promise<ManifestSigner> {
    const signer = new ManifestSigner(parts, await ManifestFile.open(parts.folder, parts.keys))
    await signer.#findLost()
    signer.#wind()
    return signer
  }

  get state(): SignerState {
    const written = this.#anchors.map(({ writtenAt }) => writtenAt)
    const anchoredAt = written.length === 0 ? undefined : Math.min(...written)
    const signedAt = this.#file.last?.time
    return { signing: !this.#failing, displaced: this.#displaced, signedAt, anchoredAt }
  }

  /** The writers that may still write. */
  get writers(): ReadonlySet<string> {
    const own = this.#parts.own?.()
    return new Set([...this.#heads.keys(), ...(own === undefined ? [] : [own.writer])])
  }

  /** A process reports its last durable record. */
  report(head: SignedHead): void {
    if (this.#heads.get(head.writer)?.hash === head.hash) return
    this.#heads.set(head.writer, head)
    this.#news = true
  }

  /** Announces a writer of this process, before its first record. Rejects as `remove`. */
  async announce(writer: string): Promise<AnnouncedWriter> {
    const { n, hash } = await this.#inTurn(() => this.#append({ announced: [{ writer }] }))
    return { writer, announcement: { line: n, hash } }
  }

  /** A process has ended. Its records are read from the disk, because it may have reported less. */
  ended(writer: string): void {
    this.#beside.delete(writer)
    this.#ended.add(writer)
  }

  /** Signs that segments are about to be removed. Rejects with the system's error; then they must not be. */
  async remove(removed: readonly RemovedSegment[]): Promise<void> {
    await this.#inTurn(() => this.#append({ removed }))
  }

  /** Signs what there is to sign. Never rejects. */
  async sign(): Promise<void> {
    try {
      await this.#inTurn(() => this.#signNews())
      if (this.#failing) this.#parts.recorder.note('info', 'audit_manifest_writable')
      this.#failing = false
    } catch (cause) {
      if (!this.#failing) this.#parts.recorder.note('error', 'audit_manifest_unwritable', { cause })
      this.#failing = true
    }
  }

  /** Signs the last heads, and writes the anchors. Never rejects. */
  async close(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    await this.sign()
    const { last } = this.#file
    if (last !== undefined) await Promise.all(this.#anchors.map((anchor) => anchor.write(last, true)))
    await this.#file.close().catch(() => undefined)
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
    const own = this.#parts.own?.()
    if (own !== undefined && own.seq > 0) this.report(own)
    await this.#readEnded()
    if (this.#news || (await this.#files.awaiting(this.#announced)).length > 0) await this.#append()
    for (const writer of this.#leaving) {
      // It stays as long as its file does: otherwise it would be announced once more.
      if (!(await this.#files.takenUp(writer))) continue
      this.#leaving.delete(writer)
      this.#heads.delete(writer)
      this.#announced.delete(writer)
    }
    const { last } = this.#file
    if (last !== undefined) await Promise.all(this.#anchors.map((anchor) => anchor.write(last)))
  }

  /** Each line announces whom it may: so those who were not are known from the first one on. */
  async #append({
    removed,
    announced: own = [],
  }: Pick<ManifestNews, 'removed' | 'announced'> = {}): Promise<ManifestLine> {
    const { folder, clock, durable } = this.#parts
    const awaiting = await this.#files.awaiting(this.#announced)
    const announced = [...own, ...awaiting]
    const fresh = announced.filter(({ writer }) => !this.#heads.has(writer))
    const heads = [...this.#heads.values(), ...fresh.map(({ writer }) => ({ writer, seq: 0, hash: '' }))]
    if (!durable) await syncSegments(folder, clock.now(), new Set(heads.map(({ writer }) => writer)))
    this.#news = false
    try {
      const time = new Date(clock.now()).toISOString()
      const line = await this.#file.append({ time, heads, removed, announced })
      for (const { writer } of announced) this.#announced.add(writer)
      for (const { writer } of awaiting) this.#beside.add(writer)
      for (const head of heads) if (!this.#heads.has(head.writer)) this.#heads.set(head.writer, head)
      for (const { writer } of awaiting) await this.#files.takenUp(writer)
      return line
    } catch (error) {
      this.#news = true
      if (error instanceof DisplacedError) this.#tellDisplaced(error)
      throw error
    }
  }

  /** Takes up the ends of processes that have ended. */
  async #readEnded(): Promise<void> {
    const { folder, clock, isOurs } = this.#parts
    for (const writer of this.#beside) if (isOurs?.(writer) === true) this.#beside.delete(writer)
    for (const writer of [...this.#lingering, ...this.#beside]) this.#ended.add(writer)
    if (clock.monotonic() >= this.#lingerUntil) this.#lingering.clear()
    if (this.#ended.size === 0) return
    const ended = new Set(this.#ended)
    const ends = await findEnds(folder, clock.now(), ({ writer }) => ended.has(writer))
    // A power cut must not take away what is signed.
    if (this.#beside.size > 0) await syncSegments(folder, clock.now(), this.#beside)
    for (const writer of ended) {
      this.#ended.delete(writer)
      this.#takeEnd(
        ends.find((end) => end.writer === writer),
        writer,
      )
    }
  }

  /** An end that the process has reported itself was not only found. */
  #takeEnd(end: FoundEnd | undefined, writer: string): void {
    if (end?.closed === true) for (const living of [this.#lingering, this.#beside]) living.delete(writer)
    if (!this.#lingering.has(writer) && !this.#beside.has(writer)) this.#leaving.add(writer)
    if (end !== undefined) this.report({ writer, seq: end.seq, hash: end.hash, found: true })
  }

  /** Finds the records that were written behind the last line of the manifest. */
  async #findLost(): Promise<void> {
    const { folder, clock } = this.#parts
    const { last } = this.#file
    const since = last === undefined ? -Infinity : Date.parse(last.time) - SLACK
    const signed = new Map(last?.heads.map((head) => [head.writer, head]))
    const wanted = (segment: Segment): boolean | Promise<boolean> =>
      signed.has(segment.writer) || isWrittenSince(segment, since)
    const ends = await this.#withoutForeign(
      await findEnds(folder, clock.now(), wanted),
      new Set(signed.keys()),
    )
    const writers = [...new Set([...signed.keys(), ...ends.map(({ writer }) => writer)])]
    await this.#parts.leftBehind?.(writers)
    this.#lingerUntil = clock.monotonic() + (this.#parts.linger ?? 0)
    for (const writer of writers) {
      const head = signed.get(writer)
      if (head !== undefined) {
        this.#heads.set(writer, head)
        this.#announced.add(writer)
      }
      if (this.#parts.isOurs?.(writer) === true) continue
      this.#lingering.add(writer)
      this.#takeEnd(
        ends.find((end) => end.writer === writer),
        writer,
      )
    }
    await this.sign()
  }

  /**
   * Without those of writers that nobody has announced: they are never signed. A trail that announced nobody yet is taken as
   * it is found, but for writers that name an announcement: its manifest is gone then.
   */
  async #withoutForeign(
    ends: readonly FoundEnd[],
    signed: ReadonlySet<string>,
  ): Promise<readonly FoundEnd[]> {
    const isAnnouncing = this.#file.last?.announced !== undefined
    const awaiting = new Set((await this.#files.awaiting(this.#announced)).map(({ writer }) => writer))
    const isKnown = ({ writer, names }: FoundEnd): boolean =>
      signed.has(writer) || awaiting.has(writer) || (!isAnnouncing && !names)
    const unknown = ends.filter((end) => !isKnown(end))
    // Writers that left a moment before the last line are not foreign.
    const end = unknown.length === 0 ? '' : await this.#file.end()
    const foreign = unknown.filter(({ writer }) => !end.includes(`"writer":${JSON.stringify(writer)}`))
    if (foreign.length > 0)
      this.#parts.recorder.note('error', 'audit_foreign_writers', {
        writers: foreign.slice(0, MOST_TOLD).map(({ writer }) => writer),
      })
    return ends.filter(isKnown)
  }
}
