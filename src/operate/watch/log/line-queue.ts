import { Buffer } from 'node:buffer'
import { fstatSync, write, writeSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { reasonInWords } from '../../../base/kernel/thrown.ts'

/** Writes bytes of the log: all or some. */
export interface LogWriter {
  /** Does not wait, or the process ends. Returns the number written. Throws the system's error. */
  write(bytes: Buffer): number
  /** For what may take long: the queue writes so while the process lives, one write at a time. */
  readonly slow?: {
    write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void
    /** Whether the write under way is complete. For a process that ends: its `done` will not be called any more. */
    isWritten(): boolean
  }
}

/** Makes the line, with its line feed, that says how many lines are missing at its position. */
export type GapLine = (lines: number) => string

/** How many characters of lines are written together: a system call costs more than making a line. A pipe holds as much. */
const CHUNK = 64 * 1024
const LIMIT = 8 * 1024 ** 2
/** The time between two attempts at a writer that fails, in milliseconds. */
const RETRY = 1000
/** The time until the second attempt at a full pipe, in milliseconds: its reader is probably at work. Doubled up to RETRY. */
const FIRST_RETRY = 2
/** How long the process waits for the log at most when it ends, in milliseconds. */
const END = 1000
/** The time between two attempts when the process ends, in milliseconds. */
const END_RETRY = 10

/**
 * Lines that wait to be written, in their order. Memory is bounded (T5.11): beyond the limit whole lines are dropped and
 * counted. When there is space again, a line in their place says how many are missing.
 */
export class LineQueue {
  readonly #writer: LogWriter
  readonly #gapLine: GapLine
  readonly #after: After
  readonly #limit: number
  /** Lines that are no chunk yet. */
  #lines = ''
  /** The first is being written: what is written of it is taken off. */
  readonly #chunks: Buffer[] = []
  /** The bytes of all chunks. */
  #bytes = 0
  #underWay = false
  /** Set during the pause after a write that failed. */
  #cancelRetry: (() => void) | undefined
  #pause = FIRST_RETRY
  /** Lines dropped that no gap line has reported yet. */
  #gap = 0
  #dropped = 0
  /** Why the last write failed; undefined if it did not. */
  #failure: NodeJS.ErrnoException | undefined

  /** @param options `limit`: the most bytes that wait */
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
    if (this.#failure !== undefined && this.#failure.code !== 'EAGAIN')
      return `it cannot be written (${reasonOf(this.#failure)})`
    return this.#gap > 0 ? 'its reader is too slow, and lines are dropped' : undefined
  }

  /** Takes whole lines. Never waits, never throws. */
  write(lines: string): void {
    if (this.#gap > 0) this.#putGapLine()
    const together = this.#lines.length + lines.length
    if (this.#gap > 0 || this.#bytes + together > this.#limit) this.lose(lines.split('\n').length - 1)
    else {
      if (together > CHUNK) this.flush()
      this.#lines += lines
    }
  }

  /** Counts lines as missing at this position. This queue dropped them, or the process that was to hand them in did. */
  lose(lines: number): void {
    this.#gap += lines
    this.#dropped += lines
  }

  /** Begins to write everything that waits. */
  flush(): void {
    this.#closeChunk()
    this.#pump()
  }

  /** Writes everything in this turn of the event loop, in one second at most: the process ends. */
  endNow(): void {
    const deadline = performance.now() + END
    for (;;) {
      // Nothing is written before the write under way is complete: the order is kept.
      if (this.#underWay && this.#writer.slow?.isWritten() === true) {
        this.#underWay = false
        this.#advance(this.#chunks[0]?.length ?? 0)
      }
      if (!this.#underWay) this.#writeAll()
      // Where the reader has gone, another will not come before the end.
      const isOver = !this.#underWay && (this.#failure === undefined || this.#failure.code === 'EPIPE')
      if (isOver || performance.now() > deadline) return
      sleep(END_RETRY)
    }
  }

  /** Waits until half of the limit is free. Otherwise every second line could be a gap line. */
  #putGapLine(): void {
    if (this.#bytes > this.#limit / 2) return
    this.#lines += this.#gapLine(this.#gap)
    this.#gap = 0
  }

  #closeChunk(): void {
    if (this.#gap > 0) this.#putGapLine()
    if (this.#lines === '') return
    const chunk = Buffer.from(this.#lines)
    this.#lines = ''
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
  }

  #pump(): void {
    if (this.#underWay || this.#cancelRetry !== undefined) return
    const { slow } = this.#writer
    const [chunk] = this.#chunks
    if (slow === undefined) this.#writeAll()
    else if (chunk !== undefined) {
      this.#underWay = true
      slow.write(chunk, this.#written)
    }
  }

  readonly #written = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#underWay = false
    if (error === null) this.#advance(bytes)
    else this.#retryAfter(error)
    // Lines that are no chunk yet wait for more.
    if (this.#gap > 0) this.flush()
    else this.#pump()
  }

  #writeAll(): void {
    try {
      for (;;) {
        this.#closeChunk()
        const [chunk] = this.#chunks
        if (chunk === undefined) return
        this.#advance(this.#writer.write(chunk))
      }
    } catch (error) {
      this.#retryAfter(error as NodeJS.ErrnoException)
    }
  }

  #advance(bytes: number): void {
    this.#pause = FIRST_RETRY
    this.#failure = undefined
    this.#bytes -= bytes
    const rest = this.#chunks.shift()?.subarray(bytes)
    if (rest !== undefined && rest.length > 0) this.#chunks.unshift(rest)
  }

  #retryAfter(error: NodeJS.ErrnoException): void {
    this.#failure = error
    const isFull = error.code === 'EAGAIN'
    this.#cancelRetry?.()
    this.#cancelRetry = this.#after(isFull ? this.#pause : RETRY, () => {
      this.#cancelRetry = undefined
      this.flush()
    })
    if (isFull) this.#pause = Math.min(RETRY, this.#pause * 2)
  }
}

const reasonOf = (error: NodeJS.ErrnoException): string =>
  error.code === 'EPIPE' ? 'EPIPE: its reader has gone' : reasonInWords(error)

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
  return {
    write: (bytes) => {
      handle?.setBlocking?.(false)
      return writeSync(STANDARD_OUTPUT, bytes)
    },
  }
}

/** A file or a device. A slow disk is waited for by a thread of libuv's pool, not by the event loop. */
function openFile(isRegular: boolean): LogWriter {
  let expected = 0
  const sizeNow = (): number => fstatSync(STANDARD_OUTPUT).size
  return {
    write: (bytes) => writeSync(STANDARD_OUTPUT, bytes),
    slow: {
      write: (bytes, done) => {
        if (isRegular) expected = sizeNow() + bytes.length
        write(STANDARD_OUTPUT, bytes, done)
      },
      isWritten: () => isRegular && sizeNow() >= expected,
    },
  }
}
