import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { type After, after as systemAfter } from '../kernel/clock.ts'
import type { UpstreamRequest } from './request.ts'
import type { ResponseHead } from './response-head.ts'

/** Bytes up to which the body of an eager request's success is handed over as one Buffer; longer ones are streams. */
export const WHOLE_BODY_LIMIT = 256 * 1024
/** The same for other answers: refusals, downloads. */
export const SHORT_BODY_LIMIT = 64 * 1024

/** Milliseconds for which pieces of a body are collected. Then what has come is streamed: the upstream is slow. */
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
    super({ highWaterMark: SHORT_BODY_LIMIT })
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
 * Takes one response and hands it to the callback. A body that is not long is one Buffer, so that most calls need no
 * stream, whatever their framing. `eager: false` is for event streams and downloads: they stream at once unless a short
 * length is declared.
 */
export class UpstreamReader {
  readonly #request: Pick<UpstreamRequest, 'eager' | 'hold'>
  readonly #finished: () => void
  readonly #after: After
  #cancelling: (() => void) | undefined
  #done = false
  #callback: UpstreamCallback | undefined
  #source: UpstreamSource | undefined
  #isSent = false
  #head: ResponseHead | undefined
  /** What has come of a body whose length was declared, with room for the rest; else its first piece. */
  #piece: Buffer | undefined
  /** Further pieces of a body whose length was not declared. */
  #more: Buffer[] | undefined
  #size = 0
  /** Of `COLLECTING`. */
  #stopTimer: (() => void) | undefined
  #stream: BodyStream | undefined

  /** @param finished called once, when the call is over, whether it failed or not */
  constructor(
    request: Pick<UpstreamRequest, 'eager' | 'hold'>,
    callback: UpstreamCallback,
    finished: () => void,
    after: After = systemAfter,
  ) {
    this.#request = request
    this.#callback = callback
    this.#finished = finished
    this.#after = after
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
    const isLong =
      typeof framing === 'number' ? framing > this.#limit : !this.#request.eager && isSuccess(status)
    if (isLong) this.#beginStream()
  }

  body(bytes: Buffer, start: number, end: number): void {
    if (this.#stream === undefined && this.#hasRoom(end - start)) {
      this.#collect(bytes.subarray(start, end))
      return
    }
    if (this.#stream === undefined) this.#beginStream()
    if (this.#stream?.push(copyOf(bytes.subarray(start, end))) === false) this.#source?.pause()
  }

  /** What has come so far does not end the response. */
  unfinished(): void {
    if (this.#piece !== undefined) this.#stopTimer ??= this.#after(COLLECTING, () => this.#beginStream())
  }

  get #limit(): number {
    const isWhole = this.#request.eager && isSuccess(this.#head?.status ?? 0)
    return isWhole ? WHOLE_BODY_LIMIT : SHORT_BODY_LIMIT
  }

  /** Room for all of a body whose length was declared is taken with its first piece. */
  #hasRoom(size: number): boolean {
    const { hold } = this.#request
    const length = this.#head?.framing
    if (typeof length === 'number') return this.#size > 0 || hold === undefined || hold(length)
    return this.#size + size <= this.#limit && (hold === undefined || hold(size))
  }

  #collect(bytes: Buffer): void {
    const length = this.#head?.framing
    if (typeof length === 'number') {
      this.#piece ??= Buffer.allocUnsafe(length)
      this.#piece.set(bytes, this.#size)
    } else if (this.#piece === undefined) this.#piece = copyOf(bytes)
    else (this.#more ??= []).push(copyOf(bytes))
    this.#size += bytes.length
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
    this.#stopTimer?.()
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
    const first = this.#more === undefined ? this.#piece?.subarray(0, this.#size) : this.#piece
    for (const piece of [first ?? EMPTY, ...(this.#more ?? [])])
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
    this.#stopTimer?.()
    this.#finished()
  }
}

const isSuccess = (status: number): boolean => status < 300

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(bytes.length)
  copy.set(bytes)
  return copy
}
