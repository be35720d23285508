/** What a trail has of the time that a question names: an answer without rows must not look like a time without acts (C12.5). */
import { join } from 'node:path'
import type { AuditQuery, UncoveredTime } from '../../contracts/audit-query.ts'
import { MANIFEST_FILE, readManifestLine } from '../manifest/manifest.ts'
import { hasCode } from '../../kernel/thrown.ts'
import { chunkBuffer, chunksOf } from './chunks.ts'
import { firstLine, type Segments } from './segments.ts'

const TIME = /"time":"(\d{4}-\d{2}-\d{2}T[^"]+)"/
const REMOVED = ',"removed":['
const LINE_FEED = 0x0a

/**
 * What of the named time is not in the trail; undefined if none was named, or all of it is. Throws the system's error if a
 * folder cannot be read.
 *
 * @param now milliseconds since the epoch
 */
export function uncoveredOf(
  { from, until }: Pick<AuditQuery, 'from' | 'until'>,
  folders: readonly string[],
  segments: Segments,
  now: number,
): UncoveredTime | undefined {
  if (from === undefined && until === undefined) return undefined
  if (from !== undefined && from > now) return { all: true, begins: undefined, removedFrom: undefined }
  const begins = beginOf(segments)
  const first = begins === undefined ? Infinity : Date.parse(begins)
  const all = until !== undefined && until <= first
  if (!all && begins !== undefined && (from === undefined || from >= first)) return undefined
  return { all: all || begins === undefined, begins, removedFrom: earliest(folders.map(removedFrom)) }
}

/** The time of the first record that the trail has. */
function beginOf(segments: Segments): string | undefined {
  for (const day of segments.days()) {
    const begin = earliest(segments.of(day).map(({ path }) => timeOf(path)))
    if (begin !== undefined) return begin
  }
  return undefined
}

/** Undefined if the file has no record, or is gone: retention may just have removed it. */
function timeOf(path: string): string | undefined {
  try {
    return TIME.exec(firstLine(path))?.[1]
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}

const earliest = (times: readonly (string | undefined)[]): string | undefined =>
  times.filter((time) => time !== undefined).toSorted()[0]

/** When the trail was signed first, if its manifest names segments that retention has removed. */
function removedFrom(folder: string): string | undefined {
  let first: string | undefined
  for (const { bytes, offset } of chunksOf(join(folder, MANIFEST_FILE), chunkBuffer())) {
    if (offset === 0) first = readManifestLine(bytes.toString('utf8', 0, bytes.indexOf(LINE_FEED)))?.time
    if (bytes.includes(REMOVED)) return first
  }
  return undefined
}
