import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ResponseHead } from './response-head.ts'

/** Bytes up to which a body is handed over as one Buffer; longer ones are streams. */
export const WHOLE_BODY_LIMIT = 64 * 1024

/** Milliseconds for which pieces of a short body are collected. Then what has come is streamed: the upstream is slow. */
const COLLECTING = 1000

export interface UpstreamResponse {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  /** Whole if it is short, else a stream, which fails if the upstream breaks off. */
  readonly body: Buffer | Readable
}

/** Called exactly once. */
export type UpstreamCallback = (error: Error | null, response?: UpstreamResponse) => void

/** The connection over which a response comes. */
export interface UpstreamSource {
  /** Ends the call, and the connection with it. */
  abort(reason: Error): void
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
}

const EMPTY = Buffer.alloc(0)

/** The progress of a call of which nothing was written to a connection. */
export const NOT_SENT = 'not_sent'

/** The reason to end a call whose body its reader destroyed: a connection is closed rather than drained. */
class BodyNotRead extends Error {
  override readonly name = 'BodyNotRead'
}

class BodyStream extends Readable {
  readonly #wanted: () => void

  constructor(wanted: () => void, destroyed: () => void) {
    super({ highWaterMark: WHOLE_BODY_LIMIT })
    this.#wanted = wanted
    this.once('close', destroyed)
    // Readers have listeners of their own. Without any listener an error would end the process.
    this.on('error', () => undefined)
  }

  override _read(): void {
    this.#wanted()
  }
}

/**
 * Takes one response and hands it to the callback. A short body is one Buffer, so that most calls need no stream, whatever
 * their framing. `eager: false` is for event streams and downloads: they stream at once unless a short length is declared.
 */
export class UpstreamReader {
  readonly #eager: boolean
  readonly #finished: () => void
  #cancelling: (() => void) | undefined
  #done = false
  #callback: UpstreamCallback | undefined
  #source: UpstreamSource | undefined
  #isSent = false
  #head: ResponseHead | undefined
  /** The first piece; most bodies have only this one. */
  #piece: Buffer | undefined
  #more: Buffer[] | undefined
  #size = 0
  /** The timer of `COLLECTING`, from the second piece on. */
  #collecting: NodeJS.Timeout | undefined
  #stream: BodyStream | undefined

  /** @param finished called once, when the call is over, whether it failed or not */
  constructor(eager: boolean, callback: UpstreamCallback, finished: () => void) {
    this.#eager = eager
    this.#callback = callback
    this.#finished = finished
  }

  /** Whether the answer is whole, or the call failed. */
  get isOver(): boolean {
    return this.#done
  }

  /** `NOT_SENT`, the status that was answered, or undefined in between. */
  get progress(): number | typeof NOT_SENT | undefined {
    return this.#head?.status ?? (this.#isSent ? undefined : NOT_SENT)
  }

  /** Sets what is called if the call is cancelled while it waits for its connection. */
  whenCancelled(listener: () => void): void {
    this.#cancelling = listener
  }

  /** Ends the call with this error. If it has a connection, the connection is closed. */
  cancel(reason: Error): void {
    if (this.#done) return
    if (this.#source === undefined) {
      this.#cancelling?.()
      this.fail(reason)
    } else this.#source.abort(reason)
  }

  begin(source: UpstreamSource): void {
    this.#source = source
  }

  /** The request, or its beginning, was written. */
  sent(): void {
    this.#isSent = true
  }

  head(head: ResponseHead): void {
    this.#head = head
    const { status, framing } = head
    const isLong = typeof framing === 'number' ? framing > WHOLE_BODY_LIMIT : !this.#eager && status < 300
    if (isLong) this.#beginStream()
  }

  body(bytes: Buffer, start: number, end: number): void {
    const piece = Buffer.allocUnsafe(end - start)
    piece.set(bytes.subarray(start, end))
    if (this.#stream) {
      if (!this.#stream.push(piece)) this.#source?.pause()
      return
    }
    this.#size += piece.length
    if (this.#piece === undefined) this.#piece = piece
    else {
      ;(this.#more ??= []).push(piece)
      this.#collecting ??= setTimeout(() => this.#beginStream(), COLLECTING)
    }
    if (this.#size > WHOLE_BODY_LIMIT) this.#beginStream()
  }

  end(): void {
    this.#finish()
    if (this.#stream) this.#stream.push(null)
    else this.#answer(this.#wholeBody())
  }

  fail(error: Error): void {
    this.#finish()
    this.#stream?.destroy(error instanceof BodyNotRead ? undefined : error)
    const callback = this.#callback
    this.#callback = undefined
    callback?.(error)
  }

  #wholeBody(): Buffer {
    const piece = this.#piece ?? EMPTY
    return this.#more === undefined ? piece : Buffer.concat([piece, ...this.#more], this.#size)
  }

  #beginStream(): void {
    clearTimeout(this.#collecting)
    const source = this.#source
    if (source === undefined) return
    // After the end of this response the connection may serve another call, and must not be touched.
    const stream = new BodyStream(
      () => {
        if (!this.#done) source.resume()
      },
      () => {
        if (!this.#done) source.abort(new BodyNotRead('the body was not read to its end'))
      },
    )
    this.#stream = stream
    let wanted = true
    for (const piece of [this.#piece ?? EMPTY, ...(this.#more ?? [])])
      if (piece.length > 0) wanted = stream.push(piece)
    if (!wanted) source.pause()
    this.#piece = this.#more = undefined
    this.#answer(stream)
  }

  #answer(body: Buffer | Readable): void {
    const callback = this.#callback
    this.#callback = undefined
    const { status = 0, headers = {} } = this.#head ?? {}
    callback?.(null, { statusCode: status, headers, body })
  }

  #finish(): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#collecting)
    this.#finished()
  }
}
