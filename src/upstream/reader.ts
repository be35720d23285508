import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ResponseHead } from './response-head.ts'

/** Bytes up to which a body is handed over whole, as one Buffer; longer ones stream. */
export const WHOLE_BODY_LIMIT = 64 * 1024

/** Milliseconds that pieces of a body are gathered for: a client of an upstream that trickles sees what there is. */
const GATHERING = 1000

export interface UpstreamResponse {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  /** Whole if it fitted, else a stream that fails if the upstream does. */
  readonly body: Buffer | Readable
}

export type UpstreamCallback = (error: Error | null, response?: UpstreamResponse) => void

/** Where a response comes from. */
export interface UpstreamSource {
  abort(reason: Error): void
  pause(): void
  resume(): void
}

const EMPTY = Buffer.alloc(0)

/** Of a call that still waits for its connection. */
export const NOT_SENT = 'not_sent'

/** Why a call is given up whose body nobody reads on: its connection is not drained. */
class NotWanted extends Error {
  override readonly name = 'NotWanted'
}

class BodyStream extends Readable {
  readonly #wanted: () => void

  constructor(wanted: () => void, destroyed: () => void) {
    super({ highWaterMark: WHOLE_BODY_LIMIT })
    this.#wanted = wanted
    this.once('close', destroyed)
    // Whoever reads listens for itself; with nobody left, an error would end the process.
    this.on('error', () => undefined)
  }

  override _read(): void {
    this.#wanted()
  }
}

/**
 * Takes one upstream response: a body that fits is one Buffer, so that no stream is made for most calls, whatever their
 * framing. `eager: false` is for opaque answers (event streams, downloads): streamed at once unless a short length is
 * declared.
 */
export class UpstreamReader {
  readonly #eager: boolean
  readonly #finished: () => void
  #cancelling: (() => void) | undefined
  #done = false
  #callback: UpstreamCallback | undefined
  #source: UpstreamSource | undefined
  #head: ResponseHead | undefined
  /** The first piece: of most bodies the only one. */
  #piece: Buffer | undefined
  #more: Buffer[] | undefined
  #size = 0
  /** Runs from the second piece on. */
  #gathering: NodeJS.Timeout | undefined
  #stream: BodyStream | undefined

  /** @param finished called once, when the exchange is over, whatever its end */
  constructor(eager: boolean, callback: UpstreamCallback, finished: () => void) {
    this.#eager = eager
    this.#callback = callback
    this.#finished = finished
  }

  /** Whether it was answered to the end, or failed. */
  get isOver(): boolean {
    return this.#done
  }

  /** How far the call is: not sent, or the status that was answered; undefined in between. */
  get progress(): number | typeof NOT_SENT | undefined {
    return this.#source === undefined ? NOT_SENT : this.#head?.status
  }

  /** Called if the call is cancelled while it waits for its connection. */
  whenCancelled(listener: () => void): void {
    this.#cancelling = listener
  }

  /** Ends the call: at once for whoever waits, and on the wire if there is a wire. */
  cancel(reason: Error): void {
    if (this.#done) return
    if (this.#source === undefined) {
      this.#cancelling?.()
      this.fail(reason)
    } else this.#source.abort(reason)
  }

  /** The call has its connection. */
  begin(source: UpstreamSource): void {
    this.#source = source
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
      this.#gathering ??= setTimeout(() => this.#beginStream(), GATHERING)
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
    this.#stream?.destroy(error instanceof NotWanted ? undefined : error)
    const callback = this.#callback
    this.#callback = undefined
    callback?.(error)
  }

  #wholeBody(): Buffer {
    const piece = this.#piece ?? EMPTY
    return this.#more === undefined ? piece : Buffer.concat([piece, ...this.#more], this.#size)
  }

  #beginStream(): void {
    clearTimeout(this.#gathering)
    const source = this.#source
    if (source === undefined) return
    // When this response has ended, the connection is another call's.
    const stream = new BodyStream(
      () => {
        if (!this.#done) source.resume()
      },
      () => {
        if (!this.#done) source.abort(new NotWanted('the body was not read to its end'))
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
    clearTimeout(this.#gathering)
    this.#finished()
  }
}
