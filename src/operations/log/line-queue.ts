import { after as systemAfter, type After } from '../../kernel/clock.ts'
import type { LogWriter } from './log-writer.ts'

export interface LineQueueParts {
  readonly writer: LogWriter
  /** The line, with its line feed, that tells how many lines are missing where it stands. */
  readonly gapLine: (lines: number) => string
  readonly after?: After
  /** Bytes of memory that lines may wait in. */
  readonly limit?: number
}

/** Bytes of one chunk: a system call for every line would cost more than the line. */
const CHUNK_BYTES = 64 * 1024
const LIMIT = 8 * 1024 ** 2
/** Bytes that a character of a line, as its length counts them, may take in UTF-8. */
const WIDEST = 3
/** Milliseconds between two tries at an writer that fails. */
const RETRY = 1000
/** Milliseconds until the second try at a pipe that is full: its reader is probably at work. Doubled up to RETRY. */
const FIRST_RETRY = 2
/** Milliseconds that the end of the process waits for the log. */
const END = 1000
/** Milliseconds between two tries at the end. */
const END_RETRY = 10

/** Lines as the bytes that they will be. `bytes` is never moved: a part of it may be on its way to the writer. */
interface Chunk {
  readonly bytes: Buffer
  /** How much of it is filled. */
  length: number
}

const newChunk = (size: number): Chunk => ({ bytes: Buffer.allocUnsafeSlow(size), length: 0 })

/**
 * Lines that wait to be written. Memory is bounded (T5.11): beyond the limit whole lines are dropped, counted, and, as
 * soon as there is room again, told in a line that stands where they are missing. An writer that fails is tried again
 * each second. One write is under way at a time, so that the order is that of the lines, also at the end.
 */
export class LineQueue {
  readonly #writer: LogWriter
  readonly #gapLine: (lines: number) => string
  readonly #after: After
  readonly #limit: number
  /** Never empty: the last is being filled, the first is being written. */
  readonly #chunks: [Chunk, ...Chunk[]] = [newChunk(CHUNK_BYTES)]
  #last: Chunk = this.#chunks[0]
  /** Kept, so that a log that flows allocates nothing. */
  #spare: Chunk | undefined
  /** Of all pages. */
  #bytes = CHUNK_BYTES
  /** How much of the first chunk is written. */
  #start = 0
  /** How much of it is on its way. */
  #underWay = 0
  /** Also while a failed writer is left alone. */
  #busy = false
  #pumping = false
  /** Whether a chunk that is not full is to be written too. */
  #wanted = false
  #cancelRetry: (() => void) | undefined
  #pause = FIRST_RETRY
  /** Dropped, and not yet told. */
  #gap = 0
  #dropped = 0
  /** By performance.now(), once the end has begun. */
  #deadline: number | undefined
  #ended: (() => void) | undefined

  constructor({ writer, gapLine, after = systemAfter, limit = LIMIT }: LineQueueParts) {
    this.#writer = writer
    this.#gapLine = gapLine
    this.#after = after
    this.#limit = limit
  }

  /** How many lines have been dropped since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes whole lines. */
  write(lines: string): void {
    if (this.#gap > 0 && !this.#putGapLine()) this.lose(countLines(lines))
    else if (!this.#put(lines)) this.lose(countLines(lines))
  }

  /** So many lines are missing here: dropped by this queue, or by whoever was to bring them. */
  lose(lines: number): void {
    this.#gap += lines
    this.#dropped += lines
  }

  /** Has all that waits written, and waits for nothing. */
  flush(): void {
    if (this.#gap > 0) this.#putGapLine()
    this.#wanted = true
    this.#pump()
  }

  /** Resolves when all is written, after a second at most. */
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

  /** The same where nothing can be awaited any more: the process ends in this turn. */
  endNow(): void {
    this.#deadline ??= performance.now() + END
    this.#cancelRetry?.()
    this.#busy = true
    while (this.#finishSome() === 'again' && performance.now() < this.#deadline) sleep(END_RETRY)
  }

  #put(lines: string): boolean {
    const most = lines.length * WIDEST
    if (most > this.#last.bytes.length - this.#last.length && !this.#addChunk(lines, most)) return false
    this.#last.length += this.#last.bytes.write(lines, this.#last.length)
    return true
  }

  /** False if there is no room for another chunk. */
  #addChunk(lines: string, most: number): boolean {
    const size = most > CHUNK_BYTES ? Buffer.byteLength(lines) : CHUNK_BYTES
    if (this.#bytes + size > this.#limit) return false
    this.#last = this.#takeChunk(size)
    this.#chunks.push(this.#last)
    this.#pump()
    return true
  }

  /** Not before half of the room is free: else every other line would tell of the one that was dropped before it. */
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
    while (!this.#busy && (this.#chunks.length > 1 || (this.#wanted && !this.#isEmpty()))) {
      this.#busy = true
      // What is asked for meanwhile is asked for again.
      if (this.#chunks.length === 1) this.#wanted = false
      const [chunk] = this.#chunks
      this.#underWay = chunk.length - this.#start
      this.#writer.write(chunk.bytes.subarray(this.#start, chunk.length), this.#written)
    }
    this.#pumping = false
    if (this.#isEmpty()) this.#ended?.()
  }

  readonly #written = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#busy = false
    if (bytes < this.#underWay || this.#deadline !== undefined) this.#wanted = true
    this.#underWay = 0
    if (error !== null) {
      this.#retryAfter(error)
      return
    }
    this.#pause = FIRST_RETRY
    this.#advance(bytes)
    if (this.#gap > 0 && this.#putGapLine()) this.#wanted = true
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
    // Nobody is there to read it, and nobody will come in time.
    if (error.code === 'EPIPE' && this.#deadline !== undefined) this.#ended?.()
    this.#busy = true
    this.#wanted = true
    const full = error.code === 'EAGAIN'
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

  /** Its reader took the beginning along: the next one is to begin with a whole line. */
  #skipTornLine(): void {
    const [{ bytes, length }] = this.#chunks
    if (this.#start === 0 || bytes[this.#start - 1] === LINE_FEED) return
    const end = bytes.indexOf(LINE_FEED, this.#start)
    this.lose(1)
    this.#advance((end === -1 ? length : end + 1) - this.#start)
  }

  /** One try at the end. What was on its way goes first, or nothing does: the order is kept. */
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
      return (error as NodeJS.ErrnoException).code === 'EPIPE' ? 'done' : 'again'
    }
  }
}

const LINE_FEED = 0x0a

function countLines(lines: string): number {
  let count = 0
  for (let at = lines.indexOf('\n'); at !== -1; at = lines.indexOf('\n', at + 1)) count += 1
  return count
}

/** Blocks the whole thread. */
const sleep = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
