import { Buffer } from 'node:buffer'
import { fstatSync, write, writeSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { hasCode, reasonInWords } from '../../../base/kernel/thrown.ts'

/** Writes bytes of the log. A caller makes one write at a time. */
export interface LogWriter {
  /** Writes all bytes or some. Calls `done`, perhaps synchronously, with an error or with the number written. */
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void
  /** The same, synchronously, for a process that ends. Returns the number written. Throws the system's error. */
  writeNow(bytes: Buffer): number
  /** Whether the write under way is complete. For a process that ends: its `done` will not be called any more. */
  isWritten(): boolean
}

/** Makes the line, with its line feed, that says how many lines are missing at its position. */
export type GapLine = (lines: number) => string

/** The size of one chunk, in bytes. Lines are written by the chunk, because a system call costs more than making a line. */
const CHUNK_BYTES = 64 * 1024
const LIMIT = 8 * 1024 ** 2
/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const UTF8_BYTES = 3
/** The time between two attempts at a writer that fails, in milliseconds. */
const RETRY = 1000
/** The time until the second attempt at a full pipe, in milliseconds: its reader is probably at work. Doubled up to RETRY. */
const FIRST_RETRY = 2
/** How long the process waits for the log at most when it ends, in milliseconds. */
const END = 1000
/** The time between two attempts when the process ends, in milliseconds. */
const END_RETRY = 10

const LINE_FEED = 0x0a

/** Encoded lines. `bytes` is never reallocated: the writer may be reading a part of it. */
interface Chunk {
  readonly bytes: Buffer
  /** How many bytes are filled. */
  length: number
}

const newChunk = (size: number): Chunk => ({ bytes: Buffer.allocUnsafeSlow(size), length: 0 })

/**
 * Lines that wait to be written. Memory is bounded (T5.11): beyond the limit whole lines are dropped and counted. When
 * there is space again, a line in their place says how many are missing. A writer that fails is tried again each second.
 * One write is under way at a time, which keeps the order of the lines.
 */
export class LineQueue {
  readonly #writer: LogWriter
  readonly #gapLine: GapLine
  readonly #after: After
  readonly #limit: number
  /** Never empty. The first is being written, the last is being filled. */
  readonly #chunks: [Chunk, ...Chunk[]] = [newChunk(CHUNK_BYTES)]
  #last: Chunk = this.#chunks[0]
  /** A written chunk is kept for reuse, so that a steady log allocates nothing. */
  #spare: Chunk | undefined
  /** The bytes of all chunks. */
  #bytes = CHUNK_BYTES
  /** How many bytes of the first chunk are written. */
  #start = 0
  /** How many bytes the write under way has. */
  #underWay = 0
  /** True during a write, and during the pause after one that failed. */
  #busy = false
  #pumping = false
  /** Whether a chunk that is not full shall be written too. */
  #flushing = false
  #cancelRetry: (() => void) | undefined
  #pause = FIRST_RETRY
  /** Lines dropped that no gap line has reported yet. */
  #gap = 0
  #dropped = 0
  /** Why the last write failed; undefined if it did not, or if the reader only was slow. */
  #failure: string | undefined
  /** When the wait for the log ends, in the time of performance.now(). Set once the process ends. */
  #deadline: number | undefined
  #ended: (() => void) | undefined

  /** @param options `limit`: the most bytes of memory that waiting lines may take */
  constructor(
    writer: LogWriter,
    gapLine: GapLine,
    { after = systemAfter, limit = LIMIT }: { readonly after?: After; readonly limit?: number } = {},
  ) {
    this.#writer = writer
    this.#gapLine = gapLine
    this.#after = after
    this.#limit = limit
  }

  get dropped(): number {
    return this.#dropped
  }

  /** Why lines do not arrive, in words; undefined if they do. Known from the first line that could not be written. */
  get trouble(): string | undefined {
    return this.#failure ?? (this.#gap > 0 ? 'its reader is too slow, and lines are dropped' : undefined)
  }

  /** Takes whole lines. Never waits, never throws. */
  write(lines: string): void {
    if (this.#gap > 0 && !this.#putGapLine()) this.lose(countLines(lines))
    else if (!this.#put(lines)) this.lose(countLines(lines))
  }

  /** Counts lines as missing at this position. This queue dropped them, or the process that was to hand them in did. */
  lose(lines: number): void {
    this.#gap += lines
    this.#dropped += lines
  }

  /** Does not wait. */
  flush(): void {
    if (this.#gap > 0) this.#putGapLine()
    this.#flushing = true
    this.#pump()
  }

  /** Resolves when everything is written, or after one second. */
  async end(): Promise<void> {
    this.#deadline ??= performance.now() + END
    this.#cancelRetry?.()
    this.flush()
    if (this.#isEmpty()) return
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, (this.#deadline ?? 0) - performance.now())
      this.#ended = () => {
        clearTimeout(late)
        resolve()
      }
    })
  }

  /** The same in this turn of the event loop: the process ends. */
  endNow(): void {
    this.#deadline ??= performance.now() + END
    this.#cancelRetry?.()
    this.#busy = true
    while (this.#finishSome() === 'again' && performance.now() < this.#deadline) sleep(END_RETRY)
  }

  #put(lines: string): boolean {
    const most = lines.length * UTF8_BYTES
    if (most > this.#last.bytes.length - this.#last.length && !this.#addChunk(lines, most)) return false
    this.#last.length += this.#last.bytes.write(lines, this.#last.length)
    return true
  }

  /** Returns false if another chunk would exceed the limit. */
  #addChunk(lines: string, most: number): boolean {
    const size = most > CHUNK_BYTES ? Buffer.byteLength(lines) : CHUNK_BYTES
    if (this.#bytes + size > this.#limit) return false
    this.#last = this.#takeChunk(size)
    this.#chunks.push(this.#last)
    this.#pump()
    return true
  }

  /** Waits until half of the limit is free. Otherwise every second line could be a gap line. */
  #putGapLine(): boolean {
    if (this.#bytes > this.#limit / 2) return false
    const line = this.#gapLine(this.#gap)
    this.#gap = 0
    return this.#put(line)
  }

  #isEmpty(): boolean {
    return this.#chunks.length === 1 && this.#start === this.#last.length
  }

  #pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    while (!this.#busy && (this.#chunks.length > 1 || (this.#flushing && !this.#isEmpty()))) {
      this.#busy = true
      // A flush that comes during the write sets it again.
      if (this.#chunks.length === 1) this.#flushing = false
      const [chunk] = this.#chunks
      this.#underWay = chunk.length - this.#start
      this.#writer.write(chunk.bytes.subarray(this.#start, chunk.length), this.#written)
    }
    this.#pumping = false
    if (this.#isEmpty()) this.#ended?.()
  }

  readonly #written = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#busy = false
    if (bytes < this.#underWay || this.#deadline !== undefined) this.#flushing = true
    this.#underWay = 0
    if (error !== null) {
      this.#retryAfter(error)
      return
    }
    this.#pause = FIRST_RETRY
    this.#failure = undefined
    this.#advance(bytes)
    if (this.#gap > 0 && this.#putGapLine()) this.#flushing = true
    this.#pump()
  }

  #advance(bytes: number): void {
    this.#start += bytes
    const [first] = this.#chunks
    if (this.#start < first.length) return
    this.#start = 0
    first.length = 0
    if (first !== this.#last) this.#chunks.shift()
    else if (first.bytes.length === CHUNK_BYTES) return
    else this.#last = this.#chunks[0] = this.#takeChunk(CHUNK_BYTES)
    this.#bytes -= first.bytes.length
    if (first.bytes.length === CHUNK_BYTES) this.#spare = first
  }

  #takeChunk(size: number): Chunk {
    const spare = size === CHUNK_BYTES ? this.#spare : undefined
    if (spare !== undefined) this.#spare = undefined
    this.#bytes += size
    return spare ?? newChunk(size)
  }

  #retryAfter(error: NodeJS.ErrnoException): void {
    if (error.code === 'EPIPE') this.#skipTornLine()
    // The reader is gone, and another will not come before the end.
    if (error.code === 'EPIPE' && this.#deadline !== undefined) this.#ended?.()
    this.#busy = true
    this.#flushing = true
    const full = error.code === 'EAGAIN'
    this.#failure = full ? undefined : `it cannot be written (${reasonOf(error)})`
    const pause = this.#deadline !== undefined ? END_RETRY : full ? this.#pause : RETRY
    if (full) this.#pause = Math.min(RETRY, this.#pause * 2)
    const cancel = this.#after(pause, () => this.#retry())
    this.#cancelRetry = () => {
      cancel()
      this.#cancelRetry = undefined
      this.#busy = false
    }
  }

  #retry(): void {
    this.#cancelRetry = undefined
    this.#busy = false
    this.#pump()
  }

  /** The reader that went away has read the beginning of a line. The next reader shall begin with a whole line. */
  #skipTornLine(): void {
    const [{ bytes, length }] = this.#chunks
    if (this.#start === 0 || bytes[this.#start - 1] === LINE_FEED) return
    const end = bytes.indexOf(LINE_FEED, this.#start)
    this.lose(1)
    this.#advance((end === -1 ? length : end + 1) - this.#start)
  }

  /** One attempt when the process ends. Nothing is written before the write under way is complete: the order is kept. */
  #finishSome(): 'done' | 'again' {
    if (this.#underWay > 0) {
      if (!this.#writer.isWritten()) return 'again'
      this.#advance(this.#underWay)
      this.#underWay = 0
    }
    try {
      while (!this.#isEmpty()) {
        const [chunk] = this.#chunks
        this.#advance(this.#writer.writeNow(chunk.bytes.subarray(this.#start, chunk.length)))
        if (this.#gap > 0) this.#putGapLine()
      }
      return 'done'
    } catch (error) {
      return hasCode(error, 'EPIPE') ? 'done' : 'again'
    }
  }
}

const reasonOf = (error: NodeJS.ErrnoException): string =>
  error.code === 'EPIPE' ? 'EPIPE: its reader has gone' : reasonInWords(error)

function countLines(lines: string): number {
  let count = 0
  for (let at = lines.indexOf('\n'); at !== -1; at = lines.indexOf('\n', at + 1)) count += 1
  return count
}

const sleep = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const STANDARD_OUTPUT = 1

export function openLogWriter(): LogWriter {
  const stats = fstatSync(STANDARD_OUTPUT)
  return stats.isFIFO() || stats.isSocket() ? openPipe() : openFile(stats.isFile())
}

/** An undocumented part of node's stream for a pipe. A test pins it. */
interface PipeStream {
  readonly _handle?: { setBlocking?(blocking: boolean): number }
}

/**
 * A pipe, in non-blocking mode. A blocking write would wait for a reader that does not read, and a waiting thread of
 * libuv's pool keeps the process from ending. A full pipe fails with EAGAIN instead. The flag is set before each write:
 * all processes that have the pipe share it, and a worker that ends resets it.
 */
function openPipe(): LogWriter {
  const { _handle: handle } = process.stdout as unknown as PipeStream
  const writeNow = (bytes: Buffer): number => {
    handle?.setBlocking?.(false)
    return writeSync(STANDARD_OUTPUT, bytes)
  }
  return {
    write: (bytes, done) => {
      let written = 0
      try {
        written = writeNow(bytes)
      } catch (error) {
        done(error as NodeJS.ErrnoException, 0)
        return
      }
      done(null, written)
    },
    writeNow,
    isWritten: () => true,
  }
}

/** A file or a device. A slow disk is waited for by a thread of libuv's pool, not by the event loop. */
function openFile(isRegular: boolean): LogWriter {
  let expected = 0
  const sizeNow = (): number => fstatSync(STANDARD_OUTPUT).size
  return {
    write: (bytes, done) => {
      if (isRegular) expected = sizeNow() + bytes.length
      write(STANDARD_OUTPUT, bytes, (error, written) => done(error, written))
    },
    writeNow: (bytes) => writeSync(STANDARD_OUTPUT, bytes),
    isWritten: () => isRegular && sizeNow() >= expected,
  }
}
