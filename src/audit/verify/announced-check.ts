/** Judges whether every writer was announced (C12.4.4, C12.4.6). What nobody announced was put there by somebody else. */
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { type Announcement, foundAnnouncements, namedAnnouncement } from '../announcement.ts'
import { chunkBuffer, chunksOf, eachLine } from '../find/chunks.ts'
import { firstLine, type Segment } from '../find/segments.ts'
import { isSignedLine, MANIFEST_FILE, readManifestLine } from '../manifest/manifest.ts'
import type { Findings } from './findings.ts'
import { announcementsIn, type CheckedManifest } from './manifest-check.ts'
import { readRecordLine } from './record-line.ts'
import { nameOf } from './writer-check.ts'

export interface AnnouncedCheckParts {
  readonly folder: string
  readonly key: KeyObject
  readonly manifest: CheckedManifest
  /** Of each writer, in the order of their numbers. */
  readonly segments: ReadonlyMap<string, readonly Segment[]>
  readonly findings: Findings
}

/** Called when the segments are listed: what was announced until then is found here. Throws the system's error. */
export function checkAnnounced({ folder, key, manifest, segments, findings }: AnnouncedCheckParts): void {
  const known = new Map<string, Announcement>()
  // In this order: a file is taken up into the manifest, and removed then.
  for (const { writer, hash } of foundAnnouncements(folder, key))
    if (hash !== undefined) known.set(writer, { hash })
    else
      findings.add(
        `announced/${writer}.json`,
        undefined,
        'this announcement was not signed with the key of the trail, or is of another writer',
      )
  for (const [writer, announcement] of announcedBehind(folder, manifest, key)) known.set(writer, announcement)
  for (const [writer, announcement] of manifest.announced) known.set(writer, announcement)
  for (const [writer, own] of segments) {
    const found = wrong(writer, own, known.get(writer), manifest)
    const [first] = own
    if (found !== undefined && first !== undefined) findings.add(nameOf(first), 1, found)
  }
}

const FOREIGN =
  'nobody has announced this writer: its records were put there, or the manifest was removed or replaced'

/** What is wrong with the announcement of a writer. */
function wrong(
  writer: string,
  segments: readonly Segment[],
  expected: Announcement | undefined,
  { firstAnnouncing, heads }: CheckedManifest,
): string | undefined {
  const first = segments.map(({ path }) => firstLine(path)).find((text) => readRecordLine(text) !== undefined)
  if (first === undefined) return undefined
  const named = namedAnnouncement(first)
  if (named !== undefined && expected !== undefined)
    return named.hash === expected.hash && named.line === expected.line
      ? undefined
      : 'this writer names another announcement than its own'
  if (named !== undefined) return FOREIGN
  if (expected !== undefined) return 'this writer was announced, but its records name no announcement'
  // Of a version that announced nobody: it signed what its processes told, and what it found.
  const isOlder =
    firstAnnouncing === undefined ||
    heads.of(writer).some(({ found, line }) => !found || line <= firstAnnouncing)
  return isOlder ? undefined : FOREIGN
}

/** What a service that is running has announced since the manifest was read. */
function announcedBehind(
  folder: string,
  { length }: CheckedManifest,
  key: KeyObject,
): readonly (readonly [string, Announcement])[] {
  const found: (readonly [string, Announcement])[] = []
  for (const { bytes } of chunksOf(join(folder, MANIFEST_FILE), chunkBuffer(), 'closed', length))
    eachLine(bytes, undefined, (start, end) => {
      const line = readManifestLine(bytes.toString('utf8', start, end))
      if (line !== undefined && isSignedLine(line, key)) found.push(...announcementsIn(line))
    })
  return found
}
