import { Readable } from 'node:stream'
import { accountOfNow } from '../../config/modules/blame.ts'

/**
 * Another side's stream as a module reads it. The events of a socket come in the context of the socket. Here they come
 * in that of the module's call, so that a listener of the module's that throws fails this call and not the process. It gets
 * nothing more then.
 */
export class AccountedStream extends Readable {
  readonly #source: Readable
  readonly #onAccount = accountOfNow(() => this.destroy())
  readonly #letGo: (source: Readable) => void
  #listening = false

  /**
   * To be made by the module's own code, so that its context is the call's.
   * @param letGo called when this side is closed
   */
  constructor(source: Readable, letGo: (source: Readable) => void) {
    super()
    this.#source = source
    this.#letGo = letGo
    // Whoever reads listens for itself.
    this.on('error', () => undefined)
    source.on('error', (error) => this.#onAccount(() => this.destroy(error)))
  }

  override _read(): void {
    if (!this.#listening) this.#listen()
    this.#source.resume()
  }

  #listen(): void {
    this.#listening = true
    this.#source
      .on('data', (piece: unknown) => this.#onAccount(() => this.#take(piece)))
      .once('end', () => this.#onAccount(() => this.push(null)))
      .once('close', () => this.#onAccount(() => this.#closed()))
  }

  #take(piece: unknown): void {
    if (this.destroyed) return
    if (!this.push(piece)) this.#source.pause()
  }

  #closed(): void {
    if (!this.#source.readableEnded) this.destroy(this.#source.errored ?? new Error('the sender broke off'))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#letGo(this.#source)
    done(error)
  }
}
