import { Buffer } from 'node:buffer'
import type { PieceSink, PieceSource } from '../../base/http/body/pieces.ts'
import { type After, after as systemAfter } from '../../base/kernel/clock.ts'
import type { UpstreamRequest } from './request.ts'
import type { ResponseHead } from './response-head.ts'
import type { UpstreamCallback } from '../../base/contracts/calls/backend.ts'

/** Up to how many bytes the body of an eager request's success is handed over as one Buffer; longer ones are streams. */
export const WHOLE_BODY_LIMIT = 256 * 1024
/** The same for other answers: refusals, downloads. */
export const SHORT_BODY_LIMIT = 64 * 1024

/** How long pieces of a body are collected, in milliseconds. Then they are streamed: the upstream is slow. */
const COLLECTING = 1000

/** The connection over which a response comes. */
export interface UpstreamSource {
  /** Ends the call, and the connection with it. */
  abort(reason: Error): void
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
}

const EMPTY = Buffer.alloc(0)

/** The progress of a call before anything of it was written to a connection. */
export const NOT_SENT = 'not_sent'

/** The reason to end a call whose body its reader cancelled: a connection is closed rather than drained. */
class BodyNotRead extends Error {
  override readonly name = 'BodyNotRead'
}

/** A body under way: given to its reader as it comes, or kept until the reader is there and goes on. */
class BodyPieces implements PieceSource {
  /** The connection, until the response is whole. After that it may serve another call, and must not be touched. */
  #source: UpstreamSource | undefined
  #sink: PieceSink | undefined
  #isPaused = true
  #isOver = false
  #error: Error | undefined
  #kept: Buffer[] = []
  #size = 0

  constructor(source: UpstreamSource) {
    this.#source = source
  }

  push(piece: Buffer): void {
    if (this.#isOver) return
    if (!this.#isPaused) {
      this.#sink?.piece(piece)
      return
    }
    this.#kept.push(piece)
    this.#size += piece.length
    if (this.#size >= SHORT_BODY_LIMIT) this.#source?.pause()
  }

  /** The response is whole. */
  finish(): void {
    this.#source = undefined
    if (this.#kept.length === 0 && this.#sink !== undefined) this.#end()
  }

  break(error: Error): void {
    this.#source = undefined
    if (this.#isOver) return
    this.#isOver = true
    this.#kept = []
    if (this.#sink === undefined) this.#error = error
    else this.#sink.fail(error)
  }

  read(sink: PieceSink): void {
    this.#sink = sink
    if (this.#error === undefined) this.resume()
    else sink.fail(this.#error)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (this.#sink === undefined || this.#isOver || !this.#isPaused) return
    this.#isPaused = false
    const kept = this.#kept
    this.#kept = []
    for (const [at, piece] of kept.entries()) {
      if (this.#mustStop()) {
        this.#kept = kept.slice(at)
        return
      }
      this.#size -= piece.length
      this.#sink.piece(piece)
    }
    if (this.#mustStop()) return
    if (this.#source === undefined) this.#end()
    else this.#source.resume()
  }

  /** While pieces are given, their reader may pause or let go. */
  #mustStop(): boolean {
    return this.#isPaused || this.#isOver
  }

  cancel(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#kept = []
    this.#source?.abort(new BodyNotRead('the body was not read to its end'))
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#sink?.end()
  }
}

/**
 * Takes one response and hands it to the callback. A body that is not long is one Buffer, whatever its framing.
 * `eager: false` is for event streams and downloads: they come in pieces at once unless a short length is declared.
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
  /** The part of a body that has come, with space for more behind it. */
  #collected: Buffer | undefined
  #size = 0
  /** Stops the timer of `COLLECTING`. */
  #stopTimer: (() => void) | undefined
  #pieces: BodyPieces | undefined

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
    if (isLong) this.#beginPieces()
  }

  body(bytes: Buffer, start: number, end: number): void {
    if (this.#pieces === undefined && this.#makeSpace(end - start)) {
      this.#collected?.set(bytes.subarray(start, end), this.#size)
      this.#size += end - start
      return
    }
    if (this.#pieces === undefined) this.#beginPieces()
    this.#pieces?.push(copyOf(bytes.subarray(start, end)))
  }

  /** What has come so far does not end the response. */
  unfinished(): void {
    if (this.#collected !== undefined) this.#stopTimer ??= this.#after(COLLECTING, () => this.#beginPieces())
  }

  get #limit(): number {
    const isWhole = this.#request.eager && isSuccess(this.#head?.status ?? 0)
    return isWhole ? WHOLE_BODY_LIMIT : SHORT_BODY_LIMIT
  }

  /**
   * Space for all of a body whose length was declared is taken with its first piece. Otherwise it is doubled when it is too
   * small: a body in chunks of a byte each must not be a list of as many Buffers.
   *
   * @returns false if the body is too long, or no room is left
   */
  #makeSpace(size: number): boolean {
    const length = this.#head?.framing
    const needed = typeof length === 'number' ? length : this.#size + size
    const before = this.#collected
    const space = before?.length ?? 0
    if (needed <= space) return true
    if (needed > this.#limit) return false
    const more = Math.max(needed, Math.min(2 * space, this.#limit))
    if (this.#request.hold?.(more - space) === false) return false
    const collected = Buffer.allocUnsafe(more)
    if (before !== undefined) collected.set(before)
    this.#collected = collected
    return true
  }

  /** What is collected is not held any longer. */
  #letGo(): void {
    if (this.#collected !== undefined) this.#request.hold?.(-this.#collected.length)
    this.#collected = undefined
  }

  end(): void {
    this.#finish()
    if (this.#pieces === undefined) this.#answer(this.#wholeBody())
    else this.#pieces.finish()
  }

  fail(error: Error): void {
    this.#finish()
    this.#pieces?.break(error)
    this.#letGo()
    const callback = this.#callback
    this.#callback = undefined
    callback?.(error)
  }

  #wholeBody(): Buffer {
    const collected = this.#collected ?? EMPTY
    return collected.length === this.#size ? collected : collected.subarray(0, this.#size)
  }

  #beginPieces(): void {
    this.#stopTimer?.()
    if (this.#source === undefined) return
    const pieces = new BodyPieces(this.#source)
    this.#pieces = pieces
    // A slow client has its time for each of them (T5.3).
    const body = this.#wholeBody()
    for (let at = 0; at < body.length; at += SHORT_BODY_LIMIT)
      pieces.push(body.subarray(at, at + SHORT_BODY_LIMIT))
    this.#letGo()
    this.#answer(pieces)
  }

  #answer(body: Buffer | PieceSource): void {
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
