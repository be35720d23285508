/** Reads the files of a trail, which are files of lines. It blocks: the reading is done in a thread. */
import { Buffer } from 'node:buffer'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { hasCode } from '../../../base/kernel/thrown.ts'

/** Bytes that are read at once. A longer line is no record. */
const CHUNK = 1024 * 1024
const LINE_END = 0x0a

/** Whole lines of a file. It is valid until the next one is asked for. */
export interface Chunk {
  readonly bytes: Buffer
  /** Where it begins in the file. */
  readonly offset: number
}

interface LineRange {
  /** Where in the file to begin: where a line does. Default: at its beginning. */
  readonly start?: number
  /** `open`: the text behind the last line end is a line too. */
  readonly end?: 'closed' | 'open'
}

/** Buffers that nobody reads into. A new one for each file would keep the garbage collector busy. */
const spare: Buffer[] = []

/**
 * The whole lines of a file, in pieces of up to 1 MiB, each ending with a line end. The part behind the last line end
 * is left out: a writer may be about to write its end. So is a line of more than 1 MiB. Nothing if the file is gone.
 */
export function* chunksOf(path: string, { start = 0, end = 'closed' }: LineRange = {}): Generator<Chunk> {
  const file = openOrMissing(path)
  if (file === undefined) return
  const into = spare.pop() ?? Buffer.allocUnsafe(CHUNK)
  try {
    let held = 0
    let offset = start
    for (;;) {
      const read = readSync(file, into, held, into.length - held, offset + held)
      if (read === 0) {
        if (end === 'open' && held > 0)
          yield { bytes: into.fill(LINE_END, held).subarray(0, held + 1), offset }
        return
      }
      const filled = held + read
      const whole = into.subarray(0, filled).lastIndexOf(LINE_END) + 1
      if (whole > 0) yield { bytes: into.subarray(0, whole), offset }
      const used = whole > 0 || filled < into.length ? whole : filled
      into.copyWithin(0, used, filled)
      held = filled - used
      offset += used
    }
  } finally {
    closeSync(file)
    spare.push(into)
  }
}

function openOrMissing(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}

/** Called with the bounds of a line in `bytes`, without its line end. */
export type LineVisitor = (bytes: Buffer, start: number, end: number) => void

/** Visits each line that contains the needle; every line, if there is none. */
export function eachLine(bytes: Buffer, needle: Buffer | undefined, visit: LineVisitor): void {
  for (let from = 0; from < bytes.length;) {
    const at = needle === undefined ? from : bytes.indexOf(needle, from)
    if (at < 0) return
    const start = needle === undefined ? from : bytes.lastIndexOf(LINE_END, at) + 1
    const end = bytes.indexOf(LINE_END, at)
    visit(bytes, start, end)
    from = end + 1
  }
}

interface LineReading extends LineRange {
  /** Only the lines that contain it. */
  readonly needle?: Buffer
  /** Called with the bytes that were read since the last call. */
  readonly progress?: (bytes: number) => void
}

/** Visits the lines of a file. Returns where the last of them ends. */
export function readLines(path: string, visit: LineVisitor, reading: LineReading = {}): number {
  let read = reading.start ?? 0
  for (const { bytes, offset } of chunksOf(path, reading)) {
    eachLine(bytes, reading.needle, visit)
    read = offset + bytes.length
    reading.progress?.(bytes.length)
  }
  return read
}

const WINDOW = 512 * 1024
/** Files that are open at once. */
const MOST_FILES = 32

interface OpenFile {
  readonly descriptor: number
  readonly size: number
  bytes: Buffer
  offset: number
}

/** Reads small parts of many files. The last part of each is kept, because the next one often lies in it. `close` it. */
export class FileWindows {
  readonly #files = new Map<string, OpenFile>()

  /**
   * The bytes from `offset` on: at least `least` of them, unless the file ends before. They are valid until the next
   * call. Empty if the file is gone.
   *
   * @param window bytes that are read where the kept part does not do
   */
  read(path: string, offset: number, least: number, window = WINDOW): Buffer {
    const file = this.#open(path)
    if (file === undefined) return Buffer.alloc(0)
    const inside = offset - file.offset
    const needed = Math.min(least, file.size - offset)
    if (inside < 0 || inside + needed > file.bytes.length) {
      const buffer = Buffer.allocUnsafe(Math.max(least, window))
      file.bytes = buffer.subarray(0, readSync(file.descriptor, buffer, 0, buffer.length, offset))
      file.offset = offset
    }
    return file.bytes.subarray(offset - file.offset)
  }

  /** The size of a file in bytes when it was opened; 0 if it is gone. */
  size(path: string): number {
    return this.#open(path)?.size ?? 0
  }

  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor)
    this.#files.clear()
  }

  #open(path: string): OpenFile | undefined {
    const known = this.#files.get(path)
    // Put last: the first one is closed when there are too many.
    if (known !== undefined) this.#files.delete(path)
    const file = known ?? openWindow(path)
    if (file === undefined) return undefined
    const [oldest] = this.#files
    if (this.#files.size >= MOST_FILES && oldest !== undefined) {
      closeSync(oldest[1].descriptor)
      this.#files.delete(oldest[0])
    }
    this.#files.set(path, file)
    return file
  }
}

function openWindow(path: string): OpenFile | undefined {
  const descriptor = openOrMissing(path)
  return descriptor === undefined
    ? undefined
    : { descriptor, size: fstatSync(descriptor).size, bytes: Buffer.alloc(0), offset: 0 }
}
