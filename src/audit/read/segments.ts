/** Finds the segments of one trail or of several: `YYYY-MM-DD/{writer}.{n}.jsonl` (C12.4.1). */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode, reasonInWords } from '../../kernel/thrown.ts'
import { PUBLIC_KEY_FILE } from '../keys.ts'
import { MANIFEST_FILE } from '../manifest/manifest.ts'
import { besideOf } from '../segment.ts'
import { type Opening, readOpening } from './record-line.ts'

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
const SEGMENT = /^(.+)\.(\d+)\.jsonl$/
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

/**
 * Segments that `lastOf` finds of a writer, at most: 128 MiB of lines. An intent waits for its outcome as long as its call
 * takes, so it stands near the end; the last segment may have just begun.
 */
const LAST = 2

/** Segments of the given folders, read from the disk day by day when they are asked for. Its methods throw the system's errors. */
export class Segments {
  readonly #folders: readonly string[]
  readonly #byDay = new Map<string, readonly Segment[]>()
  readonly #openings = new Map<Segment, Opening | undefined>()
  #days: readonly string[] | undefined

  constructor(folders: readonly string[]) {
    this.#folders = [...new Set(folders)]
  }

  /** Every day that has a folder, in order. */
  days(): readonly string[] {
    this.#days ??= [...new Set(this.#folders.flatMap((folder) => readdirSync(folder)))]
      .filter((name) => DAY.test(name))
      .toSorted()
    return this.#days
  }

  /** Those of one day: by writer, then in the order in which they were written. */
  of(day: string): readonly Segment[] {
    const known = this.#byDay.get(day)
    if (known !== undefined) return known
    const found = this.#folders.flatMap((folder) => segmentsIn(join(folder, day), day)).toSorted(inOrder)
    this.#byDay.set(day, found)
    return found
  }

  all(): readonly Segment[] {
    return this.days().flatMap((day) => this.of(day))
  }

  /** Those of one writer on the next day that the trail has, in order. */
  nextOf(writer: string, day: string): readonly Segment[] {
    const days = this.days()
    const next = days[days.indexOf(day) + 1]
    return next === undefined ? [] : this.of(next).filter((segment) => segment.writer === writer)
  }

  /** The newest segments of some writers, by day: where the intents stand that they have left open when they ended. */
  lastOf(writers: readonly string[]): ReadonlyMap<string, readonly Segment[]> {
    return Map.groupBy(
      writers.flatMap((writer) => this.#lastOf(writer)),
      ({ day }) => day,
    )
  }

  /** Looks from the last day back: all that a writer has written stands in the days of its last segments. */
  #lastOf(writer: string): readonly Segment[] {
    const found: Segment[] = []
    for (const day of this.days().toReversed()) {
      // The name of a writer begins with the day of its start: `20260331T…`.
      if (found.length >= LAST || day.replaceAll('-', '') < writer.slice(0, 8)) break
      found.unshift(...this.of(day).filter((segment) => segment.writer === writer))
    }
    return found.slice(-LAST)
  }

  opening(segment: Segment): Opening | undefined {
    if (!this.#openings.has(segment)) this.#openings.set(segment, readOpening(segment.path))
    return this.#openings.get(segment)
  }

  /**
   * The `seq` of the last record that counts. After a failed write the writer begins another segment, whose first record
   * names the last durable one; what stands behind that was written again (C12.4.3).
   */
  lastSeq({ writer, day, number }: Segment): number {
    const sameDay = this.of(day).filter((each) => each.writer === writer && each.number > number)
    const later = [...sameDay, ...this.nextOf(writer, day)]
    return Math.min(...later.map((segment) => this.opening(segment)?.before?.seq ?? Infinity))
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

/** Bytes of a file; 0 if it is gone. */
export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
