/** Reads small parts of many files: the last part of each is kept, since the next one often lies in it. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { hasCode } from '../../kernel/thrown.ts'

const WINDOW = 512 * 1024
/** Files that are open at once. */
const MOST_FILES = 32

interface OpenFile {
  readonly descriptor: number
  readonly size: number
  bytes: Buffer
  offset: number
}

/** Windows on files. `close` it. */
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
    if (inside < 0 || inside + needed > file.bytes.length) move(file, offset, Math.max(least, window))
    return file.bytes.subarray(offset - file.offset)
  }

  /** Bytes of a file when it was opened; 0 if it is gone. */
  size(path: string): number {
    return this.#open(path)?.size ?? 0
  }

  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor)
    this.#files.clear()
  }

  #open(path: string): OpenFile | undefined {
    const known = this.#files.get(path)
    if (known !== undefined) {
      // Put last: the first one is closed when there are too many.
      this.#files.delete(path)
      this.#files.set(path, known)
      return known
    }
    const opened = openFile(path)
    if (opened !== undefined) this.#keep(path, opened)
    return opened
  }

  #keep(path: string, opened: OpenFile): void {
    const [oldest] = this.#files
    if (this.#files.size >= MOST_FILES && oldest !== undefined) {
      closeSync(oldest[1].descriptor)
      this.#files.delete(oldest[0])
    }
    this.#files.set(path, opened)
  }
}

function move(file: OpenFile, offset: number, length: number): void {
  const buffer = Buffer.allocUnsafe(length)
  file.bytes = buffer.subarray(0, readSync(file.descriptor, buffer, 0, length, offset))
  file.offset = offset
}

function openFile(path: string): OpenFile | undefined {
  try {
    const descriptor = openSync(path, 'r')
    return { descriptor, size: fstatSync(descriptor).size, bytes: Buffer.alloc(0), offset: 0 }
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}
