/** The lines of a group of records, ready to be written: numbered and chained (C12.4.1). */
import { hash } from 'node:crypto'
import type { ChainHead, RingRecord } from './record-ring.ts'

const VERSION = 1
const LINE_FEED = 0x0a
/** Bytes that a line has beside the members, the name of its writer apart; each line of a file beside has fewer. */
const AROUND = 128

/** Bytes that grow at their end. */
class Bytes {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** What is there, until it is cleared. */
  get whole(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(length = 0): void {
    this.#length = length
  }

  makeRoom(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + more))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  /** ASCII only. */
  text(text: string): void {
    this.#length += this.#bytes.write(text, this.#length, 'latin1')
  }

  copy(bytes: Buffer, start = 0, end = bytes.length): void {
    this.#length += bytes.copy(this.#bytes, this.#length, start, end)
  }
}

export class ChainLines {
  readonly #prefix: string
  /** The hash before, and the line that is being made. */
  readonly #line = new Bytes()
  readonly #lines = new Bytes()
  readonly #beside = new Bytes()
  head: ChainHead

  constructor(writer: string, head: ChainHead) {
    this.#prefix = `{"v":${VERSION},"writer":"${writer}","seq":`
    this.head = head
  }

  get lines(): Buffer {
    return this.#lines.whole
  }

  /** The lines of the file beside. */
  get beside(): Buffer {
    return this.#beside.whole
  }

  clear(): void {
    this.#lines.clear()
    this.#beside.clear()
  }

  /** Adds a record behind the head. Returns its `seq`. */
  add({ members, personal }: Pick<RingRecord, 'members' | 'personal'>): number {
    const seq = this.head.seq + 1
    const line = this.#line
    line.clear()
    line.makeRoom(members.length + this.#prefix.length + AROUND)
    line.text(this.head.hash)
    const start = line.length
    line.text(this.#prefix)
    line.text(`${seq},`)
    line.copy(members)
    const recordHash = hash('sha256', line.whole, 'base64url')
    this.#lines.makeRoom(line.length + AROUND)
    this.#lines.copy(line.whole, start, line.length - 1)
    this.#lines.text(`,"hash":"${recordHash}"}\n`)
    if (personal.length > 0) this.#addBeside(personal, seq)
    this.head = { seq, hash: recordHash }
    return seq
  }

  #addBeside(personal: Buffer, seq: number): void {
    for (let start = 0; start < personal.length;) {
      const found = personal.indexOf(LINE_FEED, start)
      const end = found === -1 ? personal.length : found
      this.#beside.makeRoom(end - start + AROUND)
      this.#beside.text(`{"seq":${seq},`)
      this.#beside.copy(personal, start, end)
      this.#beside.text('\n')
      start = end + 1
    }
  }
}
