import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Fault } from '../kernel/faults.ts'

export interface UploadEvents {
  /** Everything is written. */
  readonly done: () => void
  readonly failed: (error: unknown) => void
  /** It is the upstream that is waited for, or no longer. */
  readonly waiting: (forUpstream: boolean) => void
}

/**
 * Writes a streamed body to an upstream, no faster than that reads: as it is where its length was declared, which it then
 * must have, else in chunks. The stream is its owner's: it is read, and never destroyed.
 */
export class Upload {
  readonly #body: Readable
  readonly #socket: Socket
  readonly #declared: number | undefined
  readonly #events: UploadEvents
  #sent = 0

  constructor(body: Readable, declared: number | undefined, socket: Socket, events: UploadEvents) {
    this.#body = body
    this.#socket = socket
    this.#declared = declared
    this.#events = events
  }

  /** Whether it is the client that is waited for. */
  get isReading(): boolean {
    return !this.#body.isPaused()
  }

  start(): void {
    if (this.#body.destroyed || this.#body.readableEnded) {
      // Whatever it held was read by somebody else, or by nobody: it is not to look whole.
      this.#fail(this.#body.errored ?? new Fault('client_gone'))
      return
    }
    this.#socket.on('drain', this.#onDrain)
    this.#body
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
  }

  /** Reads on no more. Whoever owns the stream sees that it was not read to its end. */
  stop(): void {
    this.#socket.off('drain', this.#onDrain)
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    this.#body.pause()
    // The error listener stays: an error without one would end the process.
  }

  readonly #onData = (piece: Buffer): void => {
    this.#sent += piece.length
    if (this.#declared !== undefined && this.#sent > this.#declared) {
      this.#fail(new Fault('client_gone', { detail: 'the body is longer than was declared' }))
      return
    }
    if (!this.#write(piece)) {
      this.#body.pause()
      this.#events.waiting(true)
    }
  }

  #write(piece: Buffer): boolean {
    if (this.#declared !== undefined || piece.length === 0) return this.#socket.write(piece)
    this.#socket.cork()
    this.#socket.write(`${piece.length.toString(16)}\r\n`, 'latin1')
    this.#socket.write(piece)
    const goesOn = this.#socket.write('\r\n', 'latin1')
    this.#socket.uncork()
    return goesOn
  }

  readonly #onDrain = (): void => {
    this.#events.waiting(false)
    this.#body.resume()
  }

  readonly #onEnd = (): void => {
    if (this.#declared !== undefined && this.#sent !== this.#declared) {
      this.#fail(new Fault('client_gone', { detail: 'the body is shorter than was declared' }))
      return
    }
    this.stop()
    if (this.#declared === undefined) this.#socket.write('0\r\n\r\n', 'latin1')
    this.#events.done()
  }

  readonly #onError = (error: unknown): void => this.#fail(error)

  readonly #onClose = (): void => {
    if (!this.#body.readableEnded) this.#fail(this.#body.errored ?? new Fault('client_gone'))
  }

  #fail(error: unknown): void {
    this.stop()
    this.#events.failed(error)
  }
}
