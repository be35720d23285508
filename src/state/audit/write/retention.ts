/** Removes whole days of the trail when their retention has ended (C12.4.7). Only the process that signs does it. */
import { createReadStream } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AuditTrail } from '../../../base/contracts/records/audit.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import type { RemovedSegment } from '../format/manifest.ts'
import { endOf, type Segment, Segments } from '../format/segments.ts'
import { segmentName } from '../format/segment.ts'
import type { ManifestSigner } from './signer.ts'

interface RetentionParts {
  readonly folder: string
  /** How long records are kept. */
  readonly days: number
  readonly clock: Clock
  readonly trail: Pick<AuditTrail, 'require'>
  readonly signer: Pick<ManifestSigner, 'remove' | 'writers'>
  readonly recorder: Pick<Recorder, 'note'>
}

/** Days that are removed within 24 hours of monotonic time: a clock that jumps must not erase the trail. */
const MOST_DAYS = 2
const LINE_FEED = 0x0a

export class Retention {
  readonly #parts: RetentionParts
  /** When days were removed, in monotonic milliseconds. */
  #removals: number[] = []

  constructor(parts: RetentionParts) {
    this.#parts = parts
  }

  /** Removes the oldest days that are due. Never rejects; what fails is logged, and tried again the next time. */
  async run(): Promise<void> {
    const { folder, days, clock, recorder } = this.#parts
    try {
      const segments = new Segments([folder])
      for (const day of segments.days()) {
        if (clock.now() - (Date.parse(day) + DAY_MS) < days * DAY_MS || !this.#mayRemove()) return
        if (this.#isInUse(segments.of(day))) return
        await this.#removeDay(day, segments.of(day))
        this.#removals.push(clock.monotonic())
      }
    } catch (cause) {
      recorder.note('error', 'audit_retention_failed', { cause })
    }
  }

  #mayRemove(): boolean {
    const since = this.#parts.clock.monotonic() - DAY_MS
    this.#removals = this.#removals.filter((time) => time > since)
    return this.#removals.length < MOST_DAYS
  }

  /** A process that has written nothing since may still write to its last segment. */
  #isInUse(segments: readonly Segment[]): boolean {
    return segments.some(({ writer }) => this.#parts.signer.writers.has(writer))
  }

  /** First it is recorded and signed that the files go, then they go. */
  async #removeDay(day: string, segments: readonly Segment[]): Promise<void> {
    const { folder, trail, signer } = this.#parts
    const removed: RemovedSegment[] = []
    for (const segment of segments) {
      const end = await endOf(segment)
      const { writer, number } = segment
      const { seq, hash } = end ?? { seq: 0, hash: '' }
      await trail.require({
        event: 'audit.segment_removed',
        outcome: 'success',
        actor: { kind: 'service', via: 'schedule' },
        on: { kind: 'segment', id: segmentName({ day, writer, number }) },
        change: { records: await countLines(segment.path), last: { seq, hash } },
      })
      removed.push({ writer, number, seq, hash })
    }
    await signer.remove(removed)
    for (const { path, personalPath } of segments) {
      await rm(personalPath, { force: true })
      await rm(path, { force: true })
    }
    await rmdir(join(folder, day))
  }
}

async function countLines(path: string): Promise<number> {
  let lines = 0
  for await (const bytes of createReadStream(path) as AsyncIterable<Buffer>)
    for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines += 1
  return lines
}
