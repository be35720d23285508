/** Checks a manifest: its chain, its signatures, its anchors (C12.4.4, C12.4.5). */
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import type { Announcement } from '../announcement.ts'
import { chunkBuffer, chunksOf, eachLine } from '../find/chunks.ts'
import { sizeOf } from '../find/segments.ts'
import {
  isSignedLine,
  MANIFEST_FILE,
  type ManifestLine,
  readManifestLine,
  type RemovedSegment,
} from '../manifest/manifest.ts'
import type { Findings } from './findings.ts'
import type { AnchorAt } from './read-anchors.ts'
import { SignedHeads } from './signed-heads.ts'

export interface CheckedManifest {
  readonly lines: number
  readonly heads: SignedHeads
  /** By writer and number: `{writer}.{n}`. */
  readonly removed: ReadonlyMap<string, RemovedSegment>
  /** The time of the last line. */
  readonly signedUntil: string | undefined
  /** The time of the last line that an anchor holds. */
  readonly anchoredUntil: string | undefined
  /** Bytes behind the last line: a power cut may leave them. */
  readonly torn: number
  /** Bytes of all lines. */
  readonly length: number
  /** The writers that were announced. */
  readonly announced: ReadonlyMap<string, Announcement>
  /** The first line of a version that announces writers: where it stands. */
  readonly firstAnnouncing: number | undefined
  /** Whether a writer was announced, and left before the last line: it wrote nothing behind its last head. */
  readonly hasLeft: (writer: string) => boolean
  /** The first line, if it is the beginning of the trail. */
  readonly beginning: Pick<ManifestLine, 'hash' | 'time'> | undefined
}

export interface ManifestCheckParts {
  readonly folder: string
  readonly key: KeyObject
  /** Those that were signed with the key. */
  readonly anchors: readonly AnchorAt[]
  readonly findings: Findings
}

export function checkManifest(parts: ManifestCheckParts): CheckedManifest {
  const check = new ManifestCheck(parts)
  const path = join(parts.folder, MANIFEST_FILE)
  let read = 0
  for (const { bytes, offset } of chunksOf(path, chunkBuffer())) {
    eachLine(bytes, undefined, (start, end) => check.line(bytes.toString('utf8', start, end)))
    read = offset + bytes.length
  }
  return check.end(Math.max(0, sizeOf(path) - read), read)
}

/** The announcements in a line, by writer. */
export const announcementsIn = ({
  n,
  hash: own,
  announced = [],
}: ManifestLine): readonly (readonly [string, Announcement])[] =>
  announced.map(({ writer, hash }) => [writer, hash === undefined ? { line: n, hash: own } : { hash }])

class ManifestCheck {
  readonly #parts: ManifestCheckParts
  /** By the line that they hold. A trail that was cut back and went on has several of one line. */
  readonly #anchors: Map<number, AnchorAt[]>
  readonly #heads = new SignedHeads()
  readonly #removed = new Map<string, RemovedSegment>()
  #at = 0
  #last: ManifestLine | undefined
  /** Whether a line was changed since the last one whose signature was checked. */
  #broken = false
  #anchored: ManifestLine | undefined
  readonly #announced = new Map<string, Announcement>()
  #firstAnnouncing: number | undefined
  /** The last line that has a head of each writer, and the last of all. */
  readonly #lastOf = new Map<string, number>()
  #taken = 0
  #beginning: ManifestLine | undefined

  constructor(parts: ManifestCheckParts) {
    this.#parts = parts
    this.#anchors = Map.groupBy(parts.anchors, ({ line }) => line)
  }

  line(text: string): void {
    this.#at += 1
    const line = readManifestLine(text)
    if (line === undefined) {
      this.#find('this line was changed')
      this.#broken = true
      return
    }
    this.#checkPlace(line)
    // The signature of a line vouches for all before it, so that of the last one would do: unless something is wrong.
    if (this.#broken && !isSignedLine(line, this.#parts.key)) {
      this.#find('this line was not signed with the key of the trail')
      return
    }
    this.#take(line)
  }

  #checkPlace(line: ManifestLine): void {
    const { n, hash: before } = this.#last ?? { n: 0, hash: '' }
    if (line.n === n + 1 && line.before === before) return
    if (!this.#broken) {
      if (line.n > n + 1) this.#find(`${linesFrom(n + 1, line.n - 1)} missing before this one`)
      else this.#find(`this line does not follow the line before it, which was changed or put there`)
    }
    this.#broken = true
  }

  #take(line: ManifestLine): void {
    this.#last = line
    this.#taken = this.#at
    if (line.n === 1) this.#beginning = line
    if (line.announced !== undefined) this.#firstAnnouncing ??= this.#at
    for (const [writer, announcement] of announcementsIn(line))
      if (this.#announced.has(writer)) this.#find(`the writer ${writer} is announced a second time`)
      else this.#announced.set(writer, announcement)
    for (const head of line.heads) {
      this.#lastOf.set(head.writer, this.#at)
      if (head.seq > 0) this.#heads.add(head, this.#at, line.time)
    }
    for (const segment of line.removed ?? [])
      this.#removed.set(`${segment.writer}.${segment.number}`, segment)
    const anchors = this.#anchors.get(line.n)
    if (anchors === undefined) return
    this.#anchors.delete(line.n)
    const other = anchors.find(({ hash }) => hash !== line.hash)
    if (other === undefined) this.#anchored = line
    else this.#find(`this is not the line that the anchor in ${other.file}, line ${other.at}, holds`)
  }

  end(torn: number, length: number): CheckedManifest {
    const { key } = this.#parts
    if (this.#last !== undefined && !this.#broken && !isSignedLine(this.#last, key))
      this.#find('this line, and so all before it, was not signed with the key of the trail')
    for (const anchor of [...this.#anchors.values()].flat().slice(0, 1)) this.#missing(anchor)
    return {
      lines: this.#at,
      heads: this.#heads,
      removed: this.#removed,
      signedUntil: this.#last?.time,
      anchoredUntil: this.#anchored?.time,
      torn,
      length,
      announced: this.#announced,
      firstAnnouncing: this.#firstAnnouncing,
      hasLeft: (writer) => this.#announced.has(writer) && this.#lastOf.get(writer) !== this.#taken,
      beginning: this.#beginning,
    }
  }

  #missing({ line, signed, file, at }: AnchorAt): void {
    const known = this.#last === undefined ? 'is empty' : `ends at ${this.#last.time}`
    const what = `the trail was cut back: it ${known}, but the anchor in ${file}, line ${at}, holds line ${line}, signed at ${signed}`
    this.#parts.findings.add(MANIFEST_FILE, Math.max(1, this.#at), what)
  }

  #find(what: string): void {
    this.#parts.findings.add(MANIFEST_FILE, this.#at, what)
  }
}

const linesFrom = (first: number, last: number): string =>
  first === last ? `line ${first} is` : `lines ${first} to ${last} are`
