/** Checks a manifest: its chain, its signatures, its anchors (C12.4.4, C12.4.5). */
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import type { AnchorAt } from '../format/anchors.ts'
import type { Announcement } from '../format/announcement.ts'
import {
  isSignedLine,
  MANIFEST_FILE,
  type ManifestLine,
  readManifestLine,
  type RemovedSegment,
  type SignedHead,
} from '../format/manifest.ts'
import { type LineVisitor, readLines } from '../format/lines.ts'
import { sizeOf } from '../format/segments.ts'

/** Something that cannot have come about by a crash or a power cut. */
export interface Finding {
  /** The file, below the folder of the trail. */
  readonly file: string
  /** 1 for the first. Absent where the whole file is meant. */
  readonly line?: number
  /** What is wrong, in a sentence without a full stop. */
  readonly what: string
}

/** Findings that are shown one by one. The others are counted. */
const MOST_FINDINGS = 1000

export class TrailFindings {
  readonly list: Finding[] = []
  count = 0

  add(file: string, line: number | undefined, what: string): void {
    this.count += 1
    if (this.list.length < MOST_FINDINGS) this.list.push({ file, ...(line !== undefined && { line }), what })
  }
}

/** `record 5`, `records 5 to 7`. */
export const recordsFrom = (first: number, last: number): string =>
  first >= last ? `record ${first}` : `records ${first} to ${last}`

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
  /** The length of all lines, in bytes. */
  readonly length: number
  /** The writers that were announced. */
  readonly announced: ReadonlyMap<string, Announcement>
  /** The number of the first line of a version that announces writers. */
  readonly firstAnnouncing: number | undefined
  /** Whether a writer was announced, and left before the last line: it wrote nothing behind its last head. */
  readonly hasLeft: (writer: string) => boolean
  /** The first line, if it is the beginning of the trail. */
  readonly beginning: Pick<ManifestLine, 'hash' | 'time'> | undefined
}

interface ManifestCheckParts {
  readonly folder: string
  readonly key: KeyObject
  /** The anchors that were signed with the key. */
  readonly anchors: readonly AnchorAt[]
  readonly findings: TrailFindings
}

/** Throws the system's error. */
export function checkManifest(parts: ManifestCheckParts): CheckedManifest {
  const check = new ManifestCheck(parts)
  const path = join(parts.folder, MANIFEST_FILE)
  const read = readLines(path, (bytes, start, end) => check.line(bytes.toString('utf8', start, end)))
  return check.end(Math.max(0, sizeOf(path) - read), read)
}

/** The writers that a running service has announced since the manifest was checked. Throws the system's error. */
export function announcedBehind(
  { folder, key }: Pick<ManifestCheckParts, 'folder' | 'key'>,
  { length }: CheckedManifest,
): ReadonlyMap<string, Announcement> {
  const found = new Map<string, Announcement>()
  const visit: LineVisitor = (bytes, start, end) => {
    const line = readManifestLine(bytes.toString('utf8', start, end))
    if (line === undefined || !isSignedLine(line, key)) return
    for (const [writer, announcement] of announcementsIn(line)) found.set(writer, announcement)
  }
  readLines(join(folder, MANIFEST_FILE), visit, { start: length })
  return found
}

/** The announcements in a line, by writer. */
const announcementsIn = ({
  n,
  hash: own,
  announced = [],
}: ManifestLine): readonly (readonly [string, Announcement])[] =>
  announced.map(({ writer, hash }) => [writer, hash === undefined ? { line: n, hash: own } : { hash }])

/** A head, and where it was signed. */
export interface HeadAt {
  readonly seq: number
  readonly hash: string
  /** The line of the manifest, and its time. */
  readonly line: number
  readonly time: string
  readonly found: boolean
}

/** Heads of one writer that are kept. Of more every second one is dropped: what is found is then placed less exactly. */
const MOST_HEADS = 4096

/** The heads of all writers that a manifest has signed. */
class SignedHeads {
  readonly #byWriter = new Map<string, HeadAt[]>()

  get writers(): Iterable<string> {
    return this.#byWriter.keys()
  }

  add({ writer, seq, hash, found }: SignedHead, line: number, time: string): void {
    const heads = this.#byWriter.get(writer) ?? []
    const last = heads.at(-1)
    if (last?.seq === seq && last.hash === hash) return
    heads.push({ seq, hash, line, time, found: found === true })
    const kept = heads.length > MOST_HEADS ? heads.filter((_, at) => (heads.length - at) % 2 === 1) : heads
    this.#byWriter.set(writer, kept)
  }

  /** In the order of their `seq`; of a head with a lower one than one before it, both are here. */
  of(writer: string): readonly HeadAt[] {
    return this.#byWriter.get(writer)?.toSorted((a, b) => a.seq - b.seq) ?? []
  }
}

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
