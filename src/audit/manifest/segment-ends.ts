/** The ends of segments on the disk: of processes that have ended before they could tell their heads (C12.4.4). */
import { open, stat } from 'node:fs/promises'
import { readOpening, readRecordLine } from '../read/record-line.ts'
import { type Segment, Segments } from '../read/segments.ts'
import type { SignedHead } from './manifest.ts'

/** Bytes in which the last record is looked for. */
const TAIL = 256 * 1024
const HASH = /^[A-Za-z0-9_-]{43}$/

/** The last record of a writer on the disk. */
export interface FoundEnd extends SignedHead {
  /** The writer has said that it writes no more. */
  readonly closed: boolean
  /** Its segment names an announcement. */
  readonly names: boolean
}

/** The last whole record of a segment; undefined if there is none. Rejects with the system's error. */
export async function endOf({
  path,
  writer,
}: Pick<Segment, 'path' | 'writer'>): Promise<Omit<FoundEnd, 'names'> | undefined> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  const start = Math.max(0, size - TAIL)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  const tail = buffer.toString('latin1', 0, bytesRead)
  const lines = tail.slice(0, Math.max(0, tail.lastIndexOf('\n'))).split('\n')
  for (const line of lines.toReversed()) {
    const record = readRecordLine(line)
    if (record?.writer !== writer || !HASH.test(record.hash)) continue
    return {
      writer,
      seq: record.seq,
      hash: record.hash,
      found: true,
      closed: record.event === 'writer.closed',
    }
  }
  return undefined
}

/** The last records of the writers that `wanted` chooses, by the newest segments of each. Files that cannot be read are left out. */
export async function findEnds(
  folder: string,
  now: number,
  wanted: (segment: Segment) => boolean | Promise<boolean>,
): Promise<readonly FoundEnd[]> {
  const ends = new Map<string, FoundEnd>()
  for (const segment of lastSegments(folder, now)) {
    const end = (await wanted(segment)) ? await endOf(segment).catch(() => undefined) : undefined
    const known = end && ends.get(end.writer)
    if (end === undefined || end.seq <= (known?.seq ?? 0)) continue
    ends.set(end.writer, { ...end, names: readOpening(segment.path)?.announced !== undefined })
  }
  return [...ends.values()]
}

/** Whether the file was written at that time or later, in milliseconds since the epoch. */
export async function isWrittenSince({ path }: Segment, time: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && found.mtimeMs >= time
}

/** Days of which the segments are looked at: a process that has written at midnight has segments in two. */
const DAYS = 2

/**
 * The segments of the last days, at a time in milliseconds since the epoch. Later ones, which a clock that was ahead has
 * left behind, are not counted: the last ones that are written now would be missing.
 */
function lastSegments(folder: string, now: number): readonly Segment[] {
  const segments = new Segments([folder])
  const days = segments.days()
  const today = new Date(now).toISOString().slice(0, 'YYYY-MM-DD'.length)
  const later = days.filter((day) => day > today).length
  return days.slice(-DAYS - later).flatMap((day) => segments.of(day))
}

/** Makes durable what these writers have written. Rejects with the system's error. */
export async function syncSegments(folder: string, now: number, writers: ReadonlySet<string>): Promise<void> {
  for (const { writer, path } of lastSegments(folder, now)) {
    if (!writers.has(writer)) continue
    await using file = await open(path, 'r')
    await file.datasync()
  }
}
