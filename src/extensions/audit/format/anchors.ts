/**
 * Anchors (C12.4.5): the end of the manifest, written to where whoever owns the disk cannot reach. Without them everything
 * could be cut back to an earlier moment.
 */
import { accessSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { type ManifestLine, TRAIL_VERSION } from './manifest.ts'
import { type LineVisitor, readLines } from './lines.ts'

/** Where the anchors of a trail go, and how often, in milliseconds. */
export type AnchorPlan =
  | { readonly to: 'log'; readonly every: number }
  | { readonly to: 'file'; readonly file: string; readonly every: number }

/** The members of an anchor. */
interface Anchor {
  /** The version of the trail's files: another one has other lines, which only its own version verifies. */
  readonly v: number
  readonly line: number
  readonly signed: string
  readonly hash: string
  readonly signature: string
}

const ANCHOR_EVENT = 'audit_anchor'

const anchorOf = ({ n, time, hash, signature }: ManifestLine): Anchor => ({
  v: TRAIL_VERSION,
  line: n,
  signed: time,
  hash,
  signature,
})

interface AnchorParts {
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
  readonly anchorFailed?: (() => void) | undefined
}

/** One anchor: each line is written at most once, and not more often than planned. */
export class AnchorSink {
  readonly #plan: AnchorPlan
  readonly #parts: AnchorParts
  #written = 0
  /** When the next line may be written, by the clock's monotonic time. */
  #next = -Infinity
  /** When it last wrote a line, milliseconds since the epoch; 0: not yet. */
  writtenAt = 0

  constructor(plan: AnchorPlan, parts: AnchorParts) {
    this.#plan = plan
    this.#parts = parts
  }

  /** Writes the line, if it is time. `now`: in any case. Never rejects; what fails is counted, and tried again. */
  async write(line: ManifestLine, now = false): Promise<void> {
    const time = this.#parts.clock.monotonic()
    if (line.n === this.#written || (!now && time < this.#next)) return
    this.#next = time + this.#plan.every
    try {
      await this.#send(anchorOf(line))
      this.#written = line.n
      this.writtenAt = this.#parts.clock.now()
    } catch (cause) {
      this.#parts.anchorFailed?.()
      this.#parts.recorder.note('error', 'audit_anchor_failed', { cause })
    }
  }

  async #send(anchor: Anchor): Promise<void> {
    if (this.#plan.to === 'log') this.#parts.recorder.note('info', ANCHOR_EVENT, { ...anchor })
    else await appendFile(this.#plan.file, `${JSON.stringify(anchor)}\n`, { mode: 0o600, flush: true })
  }
}

/** An anchor, and where it is. */
export interface AnchorAt extends Anchor {
  readonly file: string
  readonly at: number
}

const isAnchor = (value: unknown): value is Anchor => {
  const { v, line, signed, hash, signature } = value as Partial<Record<keyof Anchor, unknown>>
  return (
    v === TRAIL_VERSION &&
    Number.isSafeInteger(line) &&
    typeof signed === 'string' &&
    typeof hash === 'string' &&
    typeof signature === 'string'
  )
}

/** Every anchor of a file; lines that are none are passed over. Throws the system's error if the file cannot be read. */
export function readAnchors(file: string): readonly AnchorAt[] {
  accessSync(file)
  const anchors: AnchorAt[] = []
  let at = 0
  const visit: LineVisitor = (bytes, start, end) => {
    at += 1
    const line = bytes.subarray(start, end)
    const anchor = line.includes(SIGNATURE) ? anchorIn(line.toString()) : undefined
    if (anchor !== undefined) anchors.push({ ...anchor, file, at })
  }
  // A log of months fits no string.
  readLines(file, visit, { end: 'open' })
  return anchors
}

const SIGNATURE = '"signature"'

/** A log may put a time or a name before each line. */
function anchorIn(text: string): Anchor | undefined {
  const start = text.indexOf('{')
  if (start === -1) return undefined
  try {
    const value = JSON.parse(text.slice(start)) as { readonly event?: unknown } | null
    if (value === null || typeof value !== 'object') return undefined
    const { event } = value
    return (event === undefined || event === ANCHOR_EVENT) && isAnchor(value) ? value : undefined
  } catch {
    return undefined
  }
}
