import type { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { clearImmediate, setImmediate } from 'node:timers'

/** Takes the pieces of a body. After `end` or `fail` nothing more is called. */
export interface PieceSink {
  piece(bytes: Buffer): void
  /** The body is whole. @param last its last bytes */
  end(last?: Buffer): void
  /** The body breaks off. */
  fail(error: Error): void
}

/** A body that comes in pieces, for one reader. It costs less than a stream of node's, whose pieces are events. */
export interface PieceSource {
  /** Begins to give pieces. To be called once. */
  read(sink: PieceSink): void
  /** No further pieces, until `resume`. The end may still come. */
  pause(): void
  resume(): void
  /** Nothing more is wanted, and nothing more is given. At any time, also before `read` and after the end. */
  cancel(): void
}

export const isPieces = (body: unknown): body is PieceSource =>
  typeof body === 'object' && body !== null && 'read' in body && 'cancel' in body

/** Gives other pieces in place of a source's own. An error that it throws breaks the body. */
export interface Stage {
  /** An empty Buffer gives nothing. */
  piece(bytes: Buffer): Buffer
  /** @returns the last bytes */
  end(): Buffer | undefined
}

const AS_IT_IS: Stage = { piece: (bytes) => bytes, end: () => undefined }

/** Stands between a source and its reader. */
export class Passage implements PieceSource, PieceSink {
  readonly #source: PieceSource
  readonly #stage: Stage
  readonly #over: (error: Error | undefined) => void
  #sink: PieceSink | undefined
  #isOver = false
  #error: Error | undefined

  /** @param over called once, when the body was read, has broken off (then with why) or is no longer wanted */
  constructor(
    source: PieceSource,
    stage: Stage = AS_IT_IS,
    over: (error: Error | undefined) => void = () => undefined,
  ) {
    this.#source = source
    this.#stage = stage
    this.#over = over
  }

  read(sink: PieceSink): void {
    this.#sink = sink
    if (!this.#isOver) this.#source.read(this)
    else sink.fail(this.#error ?? new Error('the body was let go before it was read'))
  }

  /** Whether it was read, has broken off or is no longer wanted. */
  get isOver(): boolean {
    return this.#isOver
  }

  pause(): void {
    this.#source.pause()
  }

  resume(): void {
    this.#source.resume()
  }

  cancel(): void {
    if (!this.#finish()) return
    this.#source.cancel()
  }

  piece(bytes: Buffer): void {
    if (this.#isOver) return
    let given: Buffer
    try {
      given = this.#stage.piece(bytes)
    } catch (thrown) {
      this.break(thrown as Error)
      return
    }
    if (given.length > 0) this.#sink?.piece(given)
  }

  end(last?: Buffer): void {
    if (last !== undefined) this.piece(last)
    if (this.#isOver) return
    let given: Buffer | undefined
    try {
      given = this.#stage.end()
    } catch (thrown) {
      this.break(thrown as Error)
      return
    }
    this.#finish()
    this.#sink?.end(given)
  }

  fail(error: Error): void {
    if (this.#finish(error)) this.#sink?.fail(error)
  }

  /** Ends both sides. */
  break(error: Error): void {
    this.#source.cancel()
    this.fail(error)
  }

  #finish(error?: Error): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#error = error
    this.#over(error)
    return true
  }
}

/** For readers of streams. */
export function readableOf(source: PieceSource): Readable {
  let isBegun = false
  const stream: Readable = new Readable({
    read() {
      if (isBegun) source.resume()
      else {
        isBegun = true
        source.read({
          piece: (bytes) => {
            if (!stream.push(bytes)) source.pause()
          },
          end: (last) => {
            if (last !== undefined) stream.push(last)
            stream.push(null)
          },
          fail: (error) => stream.destroy(error),
        })
      }
    },
    destroy(error, done) {
      source.cancel()
      done(error)
    },
  })
  // Readers have listeners of their own. Without any listener an error would end the process.
  return stream.on('error', () => undefined)
}

/** The bytes of a stream of somebody else's. */
export class StreamInPieces implements PieceSource {
  readonly stream: Readable

  constructor(stream: Readable) {
    this.stream = stream
    // One that breaks before it is read, or after it was let go, would end the process.
    stream.on('error', () => undefined)
  }

  read(sink: PieceSink): void {
    const { stream } = this
    const closed = (): void => {
      if (!stream.readableEnded)
        sink.fail(stream.errored ?? new Error('the stream was closed before its end'))
    }
    if (stream.closed) sink.fail(stream.errored ?? new Error('the stream was closed before it was read'))
    else
      stream
        .on('data', (bytes: Buffer) => sink.piece(bytes))
        .once('end', () => sink.end())
        .once('close', closed)
  }

  pause(): void {
    this.stream.pause()
  }

  resume(): void {
    this.stream.resume()
  }

  cancel(): void {
    this.stream.destroy()
  }
}

/** Bytes of one piece of a body that is at hand. */
const PIECE = 64 * 1024
/** Pieces that are given in one turn: what reads them may check each byte, and others wait. */
const AT_ONCE = 4

export class BytesInPieces implements PieceSource {
  readonly #bytes: Buffer
  #sink: PieceSink | undefined
  #at = 0
  #isPaused = false
  #turn: NodeJS.Immediate | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  read(sink: PieceSink): void {
    this.#sink = sink
    this.#give()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    if (this.#sink !== undefined) this.#turn ??= setImmediate(() => this.#give())
  }

  cancel(): void {
    this.#sink = undefined
    clearImmediate(this.#turn)
  }

  #give(): void {
    this.#turn = undefined
    for (let left = AT_ONCE; left > 0 && !this.#isPaused && this.#sink !== undefined; left -= 1) {
      const piece = this.#bytes.subarray(this.#at, this.#at + PIECE)
      this.#at += PIECE
      const sink = this.#sink
      if (this.#at < this.#bytes.length) sink.piece(piece)
      else {
        this.#sink = undefined
        sink.end(piece)
      }
    }
    if (!this.#isPaused) this.resume()
  }
}
