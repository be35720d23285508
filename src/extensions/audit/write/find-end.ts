/** Finds where the writer of a trail goes on at a start: behind the last record of its chain (C12.4.4). */
import { Buffer } from 'node:buffer'
import { open } from 'node:fs/promises'
import { readLines } from '../format/lines.ts'
import type { SignedHead } from '../format/manifest.ts'
import type { ChainHead } from '../format/record.ts'
import { chainedHash, type Opening, readRecordLine } from '../format/record-line.ts'
import { endOf, type Segment, Segments } from '../format/segments.ts'

/** The end of a trail's chain on the disk. */
export interface ChainEnd {
  readonly head: ChainHead
  /** The number of a segment that the next one counts on from. */
  readonly number: number
}

/** The facts that the last line of a manifest has about the segments behind its head. */
interface SignedEnd {
  /** The writer has ended behind the head: then nothing behind it counts. */
  readonly isClosed?: boolean | undefined
  /** The highest number that its start has found, if the head is where that began: records behind it are in later segments. */
  readonly begins?: number | undefined
}

/** Beyond this, numbers are not counted on from: nobody can make the largest number be taken. */
const MOST_SEGMENTS = 1_000_000_000

/**
 * Finds the end of a chain behind the last record that was signed. Records behind that count that follow it, hash by hash; they are
 * made durable, so that a power cut does not take away what is signed next. Rejects with the system's error.
 */
export async function findEnd(
  folder: string,
  signed: SignedHead,
  { isClosed = false, begins = signed.seq === 0 ? 0 : undefined }: SignedEnd,
): Promise<ChainEnd> {
  const listed = new Segments([folder])
  const segments = listed
    .all()
    .filter(({ writer }) => writer === signed.writer)
    .toSorted((a, b) => a.number - b.number)
  const number = lastNumber(segments)
  if (isClosed) return { head: { seq: signed.seq, hash: signed.hash }, number }
  const walk = new ChainWalk(signed)
  // A start counts on from the last number, so those beyond were put there.
  const behind =
    begins === undefined
      ? await fromHead(listed, segments, signed)
      : segments.filter((segment) => segment.number > begins && segment.number <= number)
  for (const segment of behind) {
    walk.follow(segment, listed.opening(segment))
    await sync(segment)
  }
  return { head: walk.head, number }
}

/** The number that the next segment counts on from: a writer goes past those that are taken. */
function lastNumber(segments: readonly Segment[]): number {
  const numbers = new Set(segments.map(({ number }) => number))
  let last = segments.findLast(({ number }) => number < MOST_SEGMENTS)?.number ?? 0
  while (numbers.has(last + 1)) last += 1
  return last
}

/**
 * The segments from the one on that has the signed record; none if no segment has it. One beyond the last number is looked at only
 * then: a copy that was put there must not hide what follows the record.
 */
async function fromHead(
  listed: Segments,
  segments: readonly Segment[],
  signed: SignedHead,
): Promise<readonly Segment[]> {
  const last = lastNumber(segments)
  const [near = [], far = []] = [true, false].map((isNear) =>
    segments.filter(({ number }) => number <= last === isNear).toReversed(),
  )
  for (const segment of [...near, ...far])
    if (await holds(listed, segment, signed)) return segments.slice(segments.indexOf(segment))
  return []
}

/**
 * Whether a segment has a record. One that ends before it is not read: where a copy of the trail is older than its manifest, no
 * segment has the record.
 */
async function holds(listed: Segments, segment: Segment, { seq, hash }: ChainHead): Promise<boolean> {
  const opening = listed.opening(segment)
  if (opening === undefined || (opening.before?.seq ?? 0) >= seq) return false
  const end = await endOf(segment)
  if (end !== undefined && end.seq < seq) return false
  let found = false
  const needle = Buffer.from(`"seq":${seq},`)
  readLines(segment.path, (...line) => (found ||= recordIn(...line)?.hash === hash), { needle })
  return found
}

const recordIn = (bytes: Buffer, start: number, end: number): ReturnType<typeof readRecordLine> =>
  readRecordLine(bytes.toString('latin1', start, end))

/** How many days have their segments looked at: the writer has segments of two if it has written at midnight. */
const DAYS = 2

/**
 * Makes durable what stands in the segments of a trail from a number on. Resolves with the last number that follows from that one:
 * a file that somebody has given a far number does not count. Days that a clock has left behind which was ahead are looked at
 * besides. Rejects with the system's error.
 *
 * @param now milliseconds since the epoch
 */
export async function syncSegments(
  folder: string,
  writer: string,
  from: number,
  now: number,
): Promise<number> {
  const listed = new Segments([folder])
  const days = listed.days()
  const today = new Date(now).toISOString().slice(0, 'YYYY-MM-DD'.length)
  const later = days.filter((day) => day > today).length
  const segments = days
    .slice(-DAYS - later)
    .flatMap((day) => listed.of(day))
    .filter((each) => each.writer === writer && each.number >= from)
  for (const segment of segments) await sync(segment)
  const numbers = new Set(segments.map(({ number }) => number))
  let last = from
  while (numbers.has(last + 1)) last += 1
  return last
}

async function sync({ path }: Segment): Promise<void> {
  await using file = await open(path, 'r')
  await file.datasync()
}

class ChainWalk {
  readonly #writer: string
  /** Records that were followed, by `seq`, from the signed one on. */
  readonly #hashes = new Map<number, string>()
  /** The writer has ended with the signed record: the next start would have signed a line before it wrote one. */
  #isClosed = false
  head: ChainHead

  constructor({ writer, seq, hash }: SignedHead) {
    this.#writer = writer
    this.head = { seq, hash }
    this.#hashes.set(seq, hash)
  }

  /** Records behind the one that the opening names, in the segments before, were written again in this one. */
  follow({ path }: Segment, opening: Opening | undefined): void {
    if (opening !== undefined) this.#goBack(opening.before ?? BEGINNING)
    let isOver = false
    readLines(path, (bytes, start, end) => {
      if (isOver || this.#isClosed) return
      const record = recordIn(bytes, start, end)
      // Those that are signed.
      if (record !== undefined && record.seq <= this.head.seq && record.writer === this.#writer) {
        this.#isClosed = record.event === 'writer.closed' && record.hash === this.head.hash
        return
      }
      const isNext =
        record?.writer === this.#writer &&
        record.seq === this.head.seq + 1 &&
        chainedHash(this.head.hash, bytes, start, end) === record.hash
      // The writer has ended, or what follows is torn or is not its own.
      isOver = !isNext || record.event === 'writer.closed'
      if (!isNext) return
      this.head = { seq: record.seq, hash: record.hash }
      this.#hashes.set(record.seq, record.hash)
    })
  }

  #goBack(before: ChainHead): void {
    if (before.seq >= this.head.seq || this.#hashes.get(before.seq) !== before.hash) return
    for (let { seq } = this.head; seq > before.seq; seq -= 1) this.#hashes.delete(seq)
    this.head = { ...before }
  }
}

const BEGINNING: ChainHead = { seq: 0, hash: '' }
