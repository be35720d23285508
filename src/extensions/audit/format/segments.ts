/** Finds the segments of one trail or of several: `YYYY-MM-DD/{writer}.{n}.jsonl` (C12.4.1). */
import { Buffer } from 'node:buffer'
import { readdirSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode, reasonInWords } from '../../../base/kernel/thrown.ts'
import { PUBLIC_KEY_FILE } from './keys.ts'
import { MANIFEST_FILE } from './manifest.ts'
import { besideOf } from './segment.ts'
import type { ChainHead } from './record.ts'
import { type Opening, readOpening, readRecordLine } from './record-line.ts'

export interface Segment {
  readonly day: string
  readonly writer: string
  /** 1, 2, … through the days and restarts of the trail. */
  readonly number: number
  readonly path: string
  /** The `.personal.jsonl` file next to it, with the personal values. */
  readonly personalPath: string
}

const DAY = /^\d{4}-\d{2}-\d{2}$/
/** As the writer names them: each number has one name, and is exact. */
const SEGMENT = /^(.+)\.([1-9]\d{0,14})\.jsonl$/
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

  /** The segments of one day: by writer, then in the order in which they were written. */
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

  /** The segments of one writer on the next day that the trail has, in order. */
  nextOf(writer: string, day: string): readonly Segment[] {
    const days = this.days()
    const next = days[days.indexOf(day) + 1]
    return next === undefined ? [] : this.of(next).filter((segment) => segment.writer === writer)
  }

  opening(segment: Segment): Opening | undefined {
    if (!this.#openings.has(segment)) this.#openings.set(segment, readOpening(segment.path))
    return this.#openings.get(segment)
  }

  /**
   * The `seq` of the last record that counts. After a failed write the writer begins another segment, whose first record
   * names the last durable one; the records behind that were written again (C12.4.3).
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
 * The files; none if this trail has no such day: another one has, or retention has just removed it. Other entries were not
 * written by this service, and to open one may wait for ever: a named pipe, or a link to one.
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

/** The size of a file in bytes; 0 if it is gone. */
export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Bytes in which the last record is looked for. */
const TAIL = 256 * 1024
const HASH = /^[A-Za-z0-9_-]{43}$/

/** The last whole record of a segment; undefined if there is none. Rejects with the system's error. */
export async function endOf({
  path,
  writer,
}: Pick<Segment, 'path' | 'writer'>): Promise<ChainHead | undefined> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  const start = Math.max(0, size - TAIL)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  const tail = buffer.toString('latin1', 0, bytesRead)
  const lines = tail.slice(0, Math.max(0, tail.lastIndexOf('\n'))).split('\n')
  for (const line of lines.toReversed()) {
    const record = readRecordLine(line)
    if (record?.writer === writer && HASH.test(record.hash)) return { seq: record.seq, hash: record.hash }
  }
  return undefined
}
