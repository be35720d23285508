/** Finds the segments of one trail or of several: `YYYY-MM-DD/{writer}.{n}.jsonl` (C12.4.1). */
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { PUBLIC_KEY_FILE } from '../keys.ts'
import { MANIFEST_FILE } from '../manifest/manifest.ts'
import { besideOf } from '../segment.ts'
import { reasonInWords, hasCode } from '../../kernel/thrown.ts'

export interface Segment {
  readonly day: string
  readonly writer: string
  /** 1, 2, … for each writer. */
  readonly number: number
  readonly path: string
  /** The file beside, with the personal values. */
  readonly personalPath: string
}

const DAY = /^\d{4}-\d{2}-\d{2}$/
const OF_TRAILS: ReadonlySet<string> = new Set([MANIFEST_FILE, PUBLIC_KEY_FILE])

/** Why a folder that somebody has named is not the folder of a trail; undefined if it is one. */
export function whyNoTrail(folder: string): string | undefined {
  try {
    const isTrail = readdirSync(folder).some((name) => DAY.test(name) || OF_TRAILS.has(name))
    return isTrail
      ? undefined
      : `${folder} is not the folder of an audit trail: name the one that holds its days`
  } catch (thrown) {
    return `${folder} cannot be read (${reasonInWords(thrown)})`
  }
}
const SEGMENT = /^(.+)\.(\d+)\.jsonl$/

/** Segments of the given folders, read from the disk day by day when they are asked for. */
export class Segments {
  readonly #folders: readonly string[]
  readonly #byDay = new Map<string, readonly Segment[]>()
  readonly #lastSeqs = new Map<Segment, number>()
  #days: readonly string[] | undefined

  constructor(folders: readonly string[]) {
    this.#folders = [...new Set(folders)]
  }

  /** Every day that has a folder, in order. Throws the system's error if a folder of the trail cannot be read. */
  days(): readonly string[] {
    this.#days ??= this.#listDays()
    return this.#days
  }

  #listDays(): readonly string[] {
    const names = this.#folders.flatMap((folder) => readdirSync(folder))
    return [...new Set(names.filter((name) => DAY.test(name)))].toSorted()
  }

  /** Those of one day: by writer, then in the order in which they were written. */
  of(day: string): readonly Segment[] {
    const known = this.#byDay.get(day)
    if (known !== undefined) return known
    const found = this.#folders.flatMap((folder) => segmentsIn(join(folder, day), day)).toSorted(inOrder)
    this.#byDay.set(day, found)
    return found
  }

  /**
   * The `seq` of the last record that counts. After a failed write the writer begins another segment, whose first record
   * names the last durable one; what stands behind that was written again (C12.4.3).
   */
  lastSeq(segment: Segment): number {
    const known = this.#lastSeqs.get(segment)
    if (known !== undefined) return known
    const { writer, day } = segment
    const sameDay = this.of(day).filter((each) => each.writer === writer && each.number > segment.number)
    const next = sameDay[0] ?? this.nextOf(writer, day)[0]
    const last = next === undefined ? Infinity : (seqBefore(next.path) ?? Infinity)
    this.#lastSeqs.set(segment, last)
    return last
  }

  /** Those of one writer on the next day that the trail has, in order. */
  nextOf(writer: string, day: string): readonly Segment[] {
    const next = this.#nextDay(day)
    return next === undefined ? [] : this.of(next).filter((segment) => segment.writer === writer)
  }

  #nextDay(day: string): string | undefined {
    const days = this.days()
    return days[days.indexOf(day) + 1]
  }
}

const inOrder = (a: Segment, b: Segment): number =>
  a.writer === b.writer ? a.number - b.number : a.writer < b.writer ? -1 : 1

function segmentsIn(folder: string, day: string): readonly Segment[] {
  return namesIn(folder).flatMap((name) => {
    const [, writer, number] = SEGMENT.exec(name) ?? []
    if (writer === undefined || number === undefined) return []
    const path = join(folder, name)
    return [{ day, writer, number: Number(number), path, personalPath: besideOf(path) }]
  })
}

/**
 * The files; none if this trail has no such day: another one has, or retention has just removed it. What is no file was not
 * written by this service, and to open it may wait for ever: a named pipe, or a link to one.
 */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return []
    throw thrown
  }
}

/** Bytes that the first record of a segment takes at most. */
const FIRST_LINE = 4096

/** The `seq` that the first record of a segment names as the one before. */
function seqBefore(path: string): number | undefined {
  const first = firstLine(path)
  const [, seq] = /"before":\{[^}]*"seq":(\d+)/.exec(first) ?? []
  return seq === undefined ? undefined : Number(seq)
}

/** The first record of a segment, as far as 4 KiB. Throws the system's error. */
export function firstLine(path: string): string {
  const buffer = Buffer.alloc(FIRST_LINE)
  const file = openSync(path, 'r')
  try {
    return buffer.toString('utf8', 0, readSync(file, buffer)).split('\n', 1)[0] ?? ''
  } finally {
    closeSync(file)
  }
}

/** Bytes of a file; 0 if it is gone. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
