/** Removes whole days of the trail when their retention has ended (C12.4.7). Only the process that signs does it. */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { AuditTrail } from '../../../base/contracts/records/audit.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { hasCode } from '../../../base/kernel/thrown.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import { FORMER_FOLDER, formerFolder } from '../format/former.ts'
import { chunksOf, eachLine } from '../format/lines.ts'
import type { RemovedSegment } from '../format/manifest.ts'
import type { ChainHead } from '../format/record.ts'
import { chainedHash, readOpening, readRecordLine } from '../format/record-line.ts'
import { type Segment, Segments } from '../format/segments.ts'
import { segmentName } from '../format/segment.ts'
import type { ManifestSigner } from './signer.ts'

interface RetentionParts {
  readonly folder: string
  /** How long records are kept. */
  readonly days: number
  readonly clock: Clock
  readonly trail: Pick<AuditTrail, 'require'>
  readonly signer: Pick<ManifestSigner, 'remove' | 'end'>
  readonly recorder: Pick<Recorder, 'note'>
}

/** Days that are removed within 24 hours of monotonic time: a clock that jumps must not erase the trail. */
const MOST_DAYS = 2
const BEGINNING: ChainHead = { seq: 0, hash: '' }

export class Retention {
  readonly #parts: RetentionParts
  /** When days were removed, in monotonic milliseconds. */
  readonly #removals = new Map<string, number>()

  constructor(parts: RetentionParts) {
    this.#parts = parts
  }

  /** Removes the oldest days that are due. Never rejects; what fails is logged, and tried again the next time. */
  async run(): Promise<void> {
    const { folder, days, clock, recorder } = this.#parts
    try {
      const isOld = (day: string): boolean => clock.now() - (Date.parse(day) + DAY_MS) >= days * DAY_MS
      await this.#removeFormer(isOld)
      const listed = new Segments([folder])
      const kept = this.#own(listed).at(-1)?.day
      // The last day has the segment that may be written to.
      const isDue = (day: string): boolean => day !== kept && day !== listed.days().at(-1) && isOld(day)
      await this.#removeSegments(listed, isDue)
      for (const day of listed.days()) if (isDue(day)) await this.#removeEmpty(day)
    } catch (cause) {
      recorder.note('error', 'audit_retention_failed', { cause })
    }
  }

  #mayRemove(day: string): boolean {
    const since = this.#parts.clock.monotonic() - DAY_MS
    for (const [each, time] of this.#removals) if (time <= since) this.#removals.delete(each)
    return this.#removals.has(day) || this.#removals.size < MOST_DAYS
  }

  /** The segments that the writer of the trail has made, by their names, in the order of their numbers. */
  #own(listed: Segments): readonly Segment[] {
    const { writer } = this.#parts.signer.end
    const own = listed.all().filter((segment) => segment.writer === writer)
    return own.toSorted((a, b) => a.number - b.number)
  }

  /**
   * From the first segment of the trail on, up to one that is to stay: what is removed is signed, and so must never be from the
   * middle of the chain. A clock that was wrong may have put a segment in a day long ago: that one waits for those before it.
   */
  async #removeSegments(listed: Segments, isDue: (day: string) => boolean): Promise<void> {
    const own = this.#own(listed)
    for (let at = 0; at < own.length;) {
      const day = own[at]?.day ?? ''
      if (!isDue(day) || !this.#mayRemove(day)) return
      const end = own.findIndex((segment, index) => index > at && segment.day !== day)
      await this.#remove(own.slice(at, end), (number) => nameOfLast(listed, own, number))
      this.#removals.set(day, this.#parts.clock.monotonic())
      at = end
    }
  }

  /**
   * First it is recorded and signed that the files go, then they go. Only one that leads to the record which the next one names, with
   * records of its day, is signed: no other file of that name may excuse that records are gone.
   */
  async #remove(
    segments: readonly Segment[],
    lastOf: (number: number) => ChainHead | undefined,
  ): Promise<void> {
    const { trail, signer } = this.#parts
    const removed: RemovedSegment[] = []
    for (const segment of segments) {
      const { day, writer, number } = segment
      const last = lastOf(number)
      const { records, isReached } = await readSegment(segment, last)
      await trail.require({
        event: 'audit.segment_removed',
        outcome: 'success',
        actor: { kind: 'service', via: 'schedule' },
        on: { kind: 'segment', id: segmentName({ day, writer, number }) },
        change: { records, ...(isReached && last && { last: { ...last } }) },
      })
      if (isReached && last !== undefined) removed.push({ number, ...last })
    }
    if (removed.length > 0) await signer.remove(removed)
    for (const { path, personalPath } of segments) {
      await rm(personalPath, { force: true })
      await rm(path, { force: true })
    }
  }

  /** Removes the folder of a day without segments, and what the writer has left in it. The files of others stay. */
  async #removeEmpty(day: string): Promise<void> {
    const { folder, signer } = this.#parts
    const path = join(folder, day)
    const { writer } = signer.end
    const names = await readdir(path)
    if (names.some((name) => name.startsWith(`${writer}.`) && SEGMENT.test(name))) return
    for (const name of names)
      if (name.startsWith(`${writer}.`) && BESIDE.test(name)) await rm(join(path, name), { force: true })
    await rmdir(path).catch((thrown: unknown) => {
      if (!hasCode(thrown, 'ENOTEMPTY') && !hasCode(thrown, 'EEXIST')) throw thrown
    })
  }

  /** Removes the trail of an earlier version (C12.4.8) when all of it is too old: its days under the same limit, then the rest. */
  async #removeFormer(isOld: (day: string) => boolean): Promise<void> {
    const { folder, trail, clock } = this.#parts
    const former = formerFolder(folder)
    if (former === undefined) return
    const days = new Segments([former]).days()
    if (!days.every(isOld)) return
    for (const day of days) {
      const name = `${FORMER_FOLDER}/${day}`
      if (!this.#mayRemove(name)) return
      await trail.require({
        event: 'audit.segment_removed',
        outcome: 'success',
        actor: { kind: 'service', via: 'schedule' },
        on: { kind: 'trail', id: FORMER_FOLDER },
        change: { until: day },
      })
      await rm(join(former, day), { recursive: true, force: true })
      this.#removals.set(name, clock.monotonic())
    }
    await rm(former, { recursive: true, force: true })
  }
}

const SEGMENT = /\.[1-9]\d{0,14}\.jsonl$/
/** Values whose segment is gone, and drafts of a redaction that was cut off. */
const BESIDE = /\.personal\.jsonl(?:\.new)?$/

/** The last record up to a segment, as the next one that has a record names it; undefined if none behind it does. */
function nameOfLast(listed: Segments, own: readonly Segment[], number: number): ChainHead | undefined {
  for (const segment of own) {
    const opening = segment.number > number ? listed.opening(segment) : undefined
    if (opening !== undefined) return opening.before ?? BEGINNING
  }
  return undefined
}

/**
 * Counts the lines of a segment, and follows its chain. `isReached`: whether that comes to the record, and each record up to there is
 * of the segment's day. Throws the system's error.
 */
async function readSegment(
  segment: Segment,
  last: ChainHead | undefined,
): Promise<{ readonly records: number; readonly isReached: boolean }> {
  let records = 0
  let head = readOpening(segment.path)?.before ?? BEGINNING
  // A name alone proves nothing: of a segment without a record that counts, the one before is signed.
  let isReached = false
  for (const { bytes } of chunksOf(segment.path)) {
    eachLine(bytes, undefined, (_, start, end) => {
      records += 1
      if (isReached) return
      const record = readRecordLine(bytes.toString('latin1', start, end))
      const isNext =
        record?.writer === segment.writer &&
        record.seq === head.seq + 1 &&
        record.time.startsWith(segment.day) &&
        chainedHash(head.hash, bytes, start, end) === record.hash
      if (!isNext) return
      head = { seq: record.seq, hash: record.hash }
      isReached = head.seq === last?.seq && head.hash === last.hash
    })
    // A segment may be large, and the process has other work.
    await nextTurn()
  }
  return { records, isReached }
}
