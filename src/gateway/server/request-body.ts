import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { isLost } from '../../base/http/body/read-body.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'

/** The body of a request that has none. It ends at once when it is read (C7.4). */
export class NoBody extends Readable {
  override _read(): void {
    this.push(null)
  }
}

/**
 * The body of a request, for a door to read. Not node's own IncomingMessage, because destroying that one (as a broken
 * `for await` does) destroys the connection, and with it the answer that says why; and because only the first read
 * may ask a waiting client to go on (RFC 9110 §10.1.1), which therefore happens after C4's checks.
 *
 * A body that ends early fails with Fault `client_gone`; one that broke, with the fault given to `break`.
 */
export class IncomingBody extends Readable {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #watch: SlowBodies
  readonly #expectsContinue: boolean
  #broken: Fault | undefined
  #started = false
  /** Bytes that have arrived since reading began. */
  received = 0

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    watch: SlowBodies,
    expectsContinue: boolean,
  ) {
    super({ highWaterMark: request.readableHighWaterMark })
    this.#request = request
    this.#response = response
    this.#watch = watch
    this.#expectsContinue = expectsContinue
  }

  /** Whether every byte was read. If not, the connection cannot be used again. */
  get readToEnd(): boolean {
    return this.readableEnded
  }

  /** True while we do not read on, so that the client cannot send. */
  get heldUp(): boolean {
    return this.#request.isPaused()
  }

  /** True if the client has reset the connection while we did not read: node notices that only when it reads on. */
  get isLost(): boolean {
    return this.heldUp && isLost(this.#request.socket)
  }

  /** The rest will not come, or cannot be read. A reader gets the fault now, or when it begins to read. */
  break(fault: Fault): void {
    this.#broken = fault
    if (this.#started) this.destroy(fault)
  }

  override _read(): void {
    if (!this.#started) this.#start()
    else this.#request.resume()
  }

  #start(): void {
    this.#started = true
    if (this.#broken !== undefined || this.#request.destroyed) {
      this.destroy(this.#broken ?? new Fault('client_gone'))
      return
    }
    this.#watch.add(this)
    if (this.#expectsContinue && !this.#response.headersSent) this.#response.writeContinue()
    this.#request
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onGone)
      .on('close', this.#onGone)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.received += chunk.length
    if (!this.push(chunk)) this.#request.pause()
  }

  readonly #onEnd = (): void => {
    this.#watch.delete(this)
    this.push(null)
  }

  readonly #onGone = (cause?: unknown): void => {
    if (!this.#request.complete) this.destroy(new Fault('client_gone', { cause }))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#watch.delete(this)
    this.#request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onGone)
    // The error listener stays, because an error without a listener would end the process.
    if (!this.#request.complete) this.#request.pause()
    // As with node's own requests, an error is emitted only if somebody listens.
    done(this.listenerCount('error') > 0 ? error : null)
  }
}

/** How often slow bodies (T5.3) and, by node, late heads are looked for. */
export const CHECK_INTERVAL_MS = 1000

interface SlowBodyLimits {
  /** After how long the rate of a body is checked, in milliseconds. */
  readonly request: number
  /** The lowest rate of a body, in bytes per second on average. */
  readonly bodyRate: number
}

/**
 * Ends bodies that are sent so slowly that they only hold a connection (T5.3). Node's `requestTimeout` would cut a long,
 * fast upload too. A body counts only while it is read, and not while we do not read on. Node does not notice then that the
 * client has reset the connection; it is noticed here.
 */
export class SlowBodies {
  readonly #since = new Map<IncomingBody, number>()
  readonly #limits: SlowBodyLimits
  readonly #clock: Clock

  constructor(limits: SlowBodyLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  add(body: IncomingBody): void {
    this.#since.set(body, this.#clock.monotonic())
  }

  delete(body: IncomingBody): void {
    this.#since.delete(body)
  }

  /** Fails bodies that are too slow with Fault `request_timeout`, and bodies whose client is gone with `client_gone`. */
  sweep(): void {
    const now = this.#clock.monotonic()
    for (const [body, since] of this.#since) {
      if (body.isLost) {
        body.break(new Fault('client_gone', { detail: 'the client left while its body was not read on' }))
        continue
      }
      const elapsed = now - since
      const due = (elapsed / 1000) * this.#limits.bodyRate
      if (elapsed < this.#limits.request || body.heldUp || body.received >= due) continue
      body.break(new Fault('request_timeout'))
    }
  }
}
