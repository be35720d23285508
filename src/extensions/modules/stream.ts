import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import { accountOfNow } from '../../base/config/modules/blame.ts'
import { type PieceSource, readableOf } from '../../base/http/body/pieces.ts'
import type { After } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'

export interface StreamRules {
  /** How long a stream may pause between two pieces while somebody waits for them, in milliseconds. */
  readonly idle: number
  readonly after: After
}

/**
 * A module's stream as the gateway reads it: always of bytes (Readable.from makes one of objects), and bounded in time.
 * It fails where the module's does, with a fault, and lets go of it when it is closed itself.
 */
export class ModuleStream extends Readable {
  readonly #source: Readable
  readonly #rules: StreamRules
  /** Runs work on the account of the call that it answers: later reads, and a stop, would otherwise be on nobody's. */
  readonly #onAccount = AsyncLocalStorage.snapshot()
  readonly #begun = Promise.withResolvers<undefined>()
  #cancelIdle: (() => void) | undefined
  #listening = false

  /** @throws Fault upstream_broken for a stream that was read, or has failed, already: it would look empty */
  constructor(source: Readable, rules: StreamRules) {
    super()
    this.#source = source
    this.#rules = rules
    // Never removed: a stream that fails when nobody listens any more would end the process.
    source.on('error', (cause: unknown) => this.#fail('failed', cause))
    // The reader has its own listener.
    this.on('error', () => undefined)
    this.#begun.promise.catch(() => undefined)
    if (!source.readable) throw broken('answered a stream that had ended or failed before', source.errored)
  }

  /** Resolves with its first piece or its end; rejects with the fault of one that fails before either. */
  begin(): Promise<undefined> {
    this.read(0)
    return this.#begun.promise
  }

  override _read(): void {
    this.#cancelIdle ??= this.#rules.after(this.#rules.idle, () => this.#late())
    this.#onAccount(() => {
      if (!this.#listening) this.#listen()
      this.#source.resume()
    })
  }

  #listen(): void {
    this.#listening = true
    this.#source
      .on('data', (chunk: unknown) => this.#take(chunk))
      .once('end', () => {
        this.#calm()
        this.push(null)
        this.#begun.resolve(undefined)
      })
      .once('close', () => {
        if (!this.#source.readableEnded) this.#fail('closed the stream before its end')
      })
  }

  #take(chunk: unknown): void {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      this.#fail(`streamed a ${typeof chunk}; expected text or bytes`)
      return
    }
    this.#calm()
    if (!this.push(chunk)) this.#source.pause()
    this.#begun.resolve(undefined)
  }

  #calm(): void {
    this.#cancelIdle?.()
    this.#cancelIdle = undefined
  }

  #late(): void {
    this.destroy(
      new Fault('upstream_timeout', { detail: `the module streamed nothing for ${this.#rules.idle} ms` }),
    )
  }

  #fail(what: string, cause?: unknown): void {
    this.destroy(cause instanceof Fault ? cause : broken(what, cause))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#calm()
    this.#begun.reject(error ?? broken('answered a stream that nobody read'))
    try {
      this.#onAccount(() => this.#source.destroy())
    } catch {
      // its own `destroy`: what it throws changes nothing for the client
    }
    done(error)
  }
}

/** How much is logged about a module's mistake, in characters. */
const LONGEST_DETAIL = 200

/** A module's mistake, for the log; the client gets a 500. */
export const broken = (detail: string, cause?: unknown): Fault =>
  new Fault('upstream_broken', { detail: `the module ${detail.slice(0, LONGEST_DETAIL)}`, cause })

/**
 * Another side's body as a module reads it. The events of a socket come in the context of the socket. Here they come in
 * that of the module's call, so that a listener of the module's that throws fails this call and not the process. It gets
 * nothing more then. To be made in the context of the call, by the module's own code.
 */
export function accountedStream(source: PieceSource): Readable {
  const onAccount = accountOfNow(() => stream.destroy())
  const stream: Readable = readableOf({
    read: (sink) =>
      source.read({
        piece: (bytes) =>
          onAccount(() => {
            if (!stream.destroyed) sink.piece(bytes)
          }),
        end: (last) => onAccount(() => sink.end(last)),
        fail: (error) => onAccount(() => sink.fail(error)),
      }),
    pause: () => source.pause(),
    resume: () => source.resume(),
    cancel: () => source.cancel(),
  })
  return stream
}
