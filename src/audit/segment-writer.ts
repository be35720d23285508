/** Writes the lines of one writer to its segment (C12.4.1). */
import { closeSync, fdatasyncSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { chainHash, lineOf, type PreparedRecord } from './record.ts'

export interface SegmentWriterParts {
  readonly folder: string
  readonly writer: string
  /** The day of the first record, `2026-11-22`. */
  readonly day: string
}

/** Opens a segment with its file of personal values, both for this writer alone (mode 0600). Throws the system's error. */
export class SegmentWriter {
  readonly #lines: number
  readonly #personal: number
  #hash = ''

  constructor({ folder, writer, day }: SegmentWriterParts) {
    mkdirSync(join(folder, day), { recursive: true, mode: 0o700 })
    this.#lines = openSync(join(folder, day, `${writer}.1.jsonl`), 'ax', 0o600)
    this.#personal = openSync(join(folder, day, `${writer}.1.personal.jsonl`), 'ax', 0o600)
  }

  write({ text, personal }: PreparedRecord): void {
    const recordHash = chainHash(this.#hash, text)
    if (personal.length > 0)
      writeSync(this.#personal, personal.map((value) => `${JSON.stringify(value)}\n`).join(''))
    writeSync(this.#lines, lineOf(text, recordHash))
    this.#hash = recordHash
  }

  sync(): void {
    fdatasyncSync(this.#personal)
    fdatasyncSync(this.#lines)
  }

  close(): void {
    closeSync(this.#personal)
    closeSync(this.#lines)
  }
}
