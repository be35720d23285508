import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Fault } from '../kernel/faults.ts'

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

const EMPTY = Buffer.alloc(0)

/** What a body that Postern has no use for is replaced with; its connection is given up rather than drained. */
class NotWanted extends Error {
  override readonly name = 'NotWanted'
}

const onlyInterim = (): Fault => new Fault('upstream_timeout', { detail: 'nothing but 1xx came in time' })

class BodyStream extends Readable {
  readonly #controller: Dispatcher.DispatchController

  constructor(controller: Dispatcher.DispatchController, destroyed: () => void) {
    super({ highWaterMark: WHOLE_BODY_LIMIT })
    this.#controller = controller
    this.once('close', destroyed)
    // Whoever reads listens for itself; with nobody left, an error would end the process.
    this.on('error', () => undefined)
  }

  override _read(): void {
    this.#controller.resume()
  }
}

/**
 * Reads one upstream response off undici's dispatch interface, without the layers that `request()` adds: a body that
 * fits is one Buffer, so that no stream is made for most calls, whatever their framing. `eager: false` is for opaque
 * answers (event streams, downloads): streamed at once unless a short length is declared.
 */
export class UpstreamReader implements Dispatcher.DispatchHandler {
  readonly #eager: boolean
  readonly #patience: number
  #interim: NodeJS.Timeout | undefined
  #callback: UpstreamCallback | undefined
  #controller: Dispatcher.DispatchController | undefined
  #cancelled: Error | undefined
  #statusCode = 0
  #headers: IncomingHttpHeaders = {}
  #chunks: Buffer[] = []
  #size = 0
  /** When the second piece came. Most bodies are one. */
  #gatheringSince = 0
  #stream: BodyStream | undefined
  #finished: (() => void) | undefined

  /**
   * @param patience milliseconds from a first 1xx to the answer: undici counts any of them as one (T5.4)
   */
  constructor(eager: boolean, patience: number, callback: UpstreamCallback) {
    this.#eager = eager
    this.#patience = patience
    this.#callback = callback
  }

  get started(): boolean {
    return this.#controller !== undefined
  }

  /** Called once, when undici is done with the exchange, whatever its end. */
  onFinished(listener: () => void): void {
    this.#finished = listener
  }

  /** Ends the call: at once for whoever waits, and on the wire as soon as there is a wire. */
  cancel(reason: Error): void {
    this.#cancelled = reason
    this.#controller?.abort(reason)
    this.#settle(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#cancelled) controller.abort(this.#cancelled)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) {
      this.#interim ??= setTimeout(() => this.cancel(onlyInterim()), this.#patience)
      return
    }
    clearTimeout(this.#interim)
    this.#statusCode = statusCode
    this.#headers = headers
    const length = Number(headers['content-length'] ?? NaN)
    if (length > WHOLE_BODY_LIMIT || (!this.#eager && Number.isNaN(length) && statusCode < 300))
      this.#beginStream(controller)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#stream) {
      if (!this.#stream.push(chunk)) controller.pause()
      return
    }
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#size > WHOLE_BODY_LIMIT || this.#isTrickle()) this.#beginStream(controller)
  }

  onResponseEnd(): void {
    this.#finish()
    if (this.#stream) this.#stream.push(null)
    else this.#answer(this.#wholeBody())
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish()
    this.#stream?.destroy(error instanceof NotWanted ? undefined : error)
    this.#settle(error)
  }

  #isTrickle(): boolean {
    if (this.#chunks.length === 2) this.#gatheringSince = performance.now()
    return this.#chunks.length > 2 && performance.now() - this.#gatheringSince > GATHERING
  }

  #wholeBody(): Buffer {
    const [only = EMPTY, second] = this.#chunks
    return second === undefined ? only : Buffer.concat(this.#chunks, this.#size)
  }

  #beginStream(controller: Dispatcher.DispatchController): void {
    const stream = new BodyStream(controller, () => {
      // Undici refuses to abort what is complete.
      if (this.#finished && !controller.aborted)
        controller.abort(new NotWanted('the body was not read to its end'))
    })
    this.#stream = stream
    for (const chunk of this.#chunks) if (!stream.push(chunk)) controller.pause()
    this.#chunks = []
    this.#answer(stream)
  }

  #answer(body: Buffer | Readable): void {
    const callback = this.#callback
    this.#callback = undefined
    callback?.(null, { statusCode: this.#statusCode, headers: this.#headers, body })
  }

  #settle(error: Error): void {
    const callback = this.#callback
    this.#callback = undefined
    callback?.(error)
  }

  #finish(): void {
    clearTimeout(this.#interim)
    const finished = this.#finished
    this.#finished = undefined
    finished?.()
  }
}
