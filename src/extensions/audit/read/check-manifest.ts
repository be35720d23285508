/** Checks a manifest: its chain, its signatures, its anchors (C12.4.4, C12.4.5). */
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import type { AnchorAt } from '../format/anchors.ts'
import {
  isSignedLine,
  MANIFEST_FILE,
  type ManifestLine,
  readManifestLine,
  type RemovedSegment,
  type SignedHead,
} from '../format/manifest.ts'
import { readLines } from '../format/lines.ts'
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
  /** The name of the trail; undefined if the manifest has no line. */
  readonly writer: string | undefined
  /** The heads that were signed, in the order of their `seq`; of a head with a lower one than one before it, both are here. */
  readonly heads: readonly HeadAt[]
  /** The records that were read from the disk at a start, since their process had been killed. */
  readonly found: readonly FoundRecords[]
  /** The lines at which the writer has ended, by the `seq` of its last record then. */
  readonly ends: ReadonlyMap<number, EndAt>
  /** Whether the writer has ended with the last line. */
  readonly isClosed: boolean
  /** By their number. */
  readonly removed: ReadonlyMap<number, RemovedSegment>
  /** The time of the last line. */
  readonly signedUntil: string | undefined
  /** The time of the last line that an anchor holds. */
  readonly anchoredUntil: string | undefined
  /** Bytes behind the last line: a power cut may leave them. */
  readonly torn: number
  /** The length of all lines, in bytes. */
  readonly length: number
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
  // Before it is read: the line of a start that comes meanwhile is not torn.
  const size = sizeOf(path)
  const read = readLines(path, (bytes, start, end) => check.line(bytes.toString('utf8', start, end)))
  return check.end(Math.max(0, size - read), read)
}

/** A head, and where it was signed. */
export interface HeadAt {
  readonly seq: number
  readonly hash: string
  /** The line of the manifest, and its time. */
  readonly line: number
  readonly time: string
  readonly found: boolean
}

/** Records from behind one `seq` to another. */
interface FoundRecords {
  readonly after: number
  readonly until: number
}

/** A line that says that the writer has ended. */
export interface EndAt {
  readonly line: number
  readonly time: string
  /** The highest number of a segment that the first start behind it has found; undefined if there was none. */
  begins: number | undefined
  /** The same number of the last start behind it that no record was made before; undefined if it has not begun again. */
  until: number | undefined
}

/** Heads that are kept. Of more every second one is dropped: what is found is then placed less exactly. */
const MOST_HEADS = 4096

/** The heads that a manifest has signed. */
class SignedHeads {
  #list: HeadAt[] = []
  readonly found: FoundRecords[] = []

  add({ seq, hash, found }: SignedHead, line: number, time: string): void {
    const heads = this.#list
    const last = heads.at(-1)
    if (seq === 0 || (last?.seq === seq && last.hash === hash)) return
    if (found === true) this.found.push({ after: last?.seq ?? 0, until: seq })
    heads.push({ seq, hash, line, time, found: found === true })
    if (heads.length > MOST_HEADS) this.#list = heads.filter((_, at) => (heads.length - at) % 2 === 1)
  }

  get inOrder(): readonly HeadAt[] {
    return this.#list.toSorted((a, b) => a.seq - b.seq)
  }
}

class ManifestCheck {
  readonly #parts: ManifestCheckParts
  /** By the line that they hold. A trail that was cut back and went on has several of one line. */
  readonly #anchors: Map<number, AnchorAt[]>
  readonly #heads = new SignedHeads()
  readonly #ends = new Map<number, EndAt>()
  /** The end that the line before says. */
  #end: EndAt | undefined
  readonly #removed = new Map<number, RemovedSegment>()
  #writer: string | undefined
  #at = 0
  #last: ManifestLine | undefined
  /** Whether a line was changed since the last one whose signature was checked. */
  #broken = false
  #anchored: ManifestLine | undefined
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
    if (line.n === 1) this.#beginning = line
    this.#takeHead(line)
    for (const segment of line.removed ?? []) this.#removed.set(segment.number, segment)
    const anchors = this.#anchors.get(line.n)
    if (anchors === undefined) return
    this.#anchors.delete(line.n)
    const other = anchors.find(({ hash }) => hash !== line.hash)
    if (other === undefined) this.#anchored = line
    else this.#find(`this is not the line that the anchor in ${other.file}, line ${other.at}, holds`)
  }

  #takeHead({ head, closed, time, begins = 0 }: ManifestLine): void {
    this.#writer ??= head.writer
    if (head.writer !== this.#writer) this.#find(`this line is of another trail, ${head.writer}`)
    this.#heads.add(head, this.#at, time)
    if (this.#end !== undefined) {
      this.#end.begins ??= begins
      this.#end.until = begins
    }
    const known = this.#ends.get(head.seq)
    this.#end =
      closed === true ? { line: this.#at, time, begins: known?.begins, until: undefined } : undefined
    if (this.#end !== undefined) this.#ends.set(head.seq, this.#end)
  }

  end(torn: number, length: number): CheckedManifest {
    const { key } = this.#parts
    if (this.#last !== undefined && !this.#broken && !isSignedLine(this.#last, key))
      this.#find('this line, and so all before it, was not signed with the key of the trail')
    for (const anchor of [...this.#anchors.values()].flat().slice(0, 1)) this.#missing(anchor)
    return {
      lines: this.#at,
      writer: this.#writer,
      heads: this.#heads.inOrder,
      found: this.#heads.found,
      ends: this.#ends,
      isClosed: this.#last?.closed === true,
      removed: this.#removed,
      signedUntil: this.#last?.time,
      anchoredUntil: this.#anchored?.time,
      torn,
      length,
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
