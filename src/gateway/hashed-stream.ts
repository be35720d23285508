import { Readable } from 'node:stream'
import type { BodyHash } from '../contracts/audit.ts'
import { Fault } from '../kernel/faults.ts'

/** What has passed. */
export interface Passed {
  readonly bytes: number
  /** The HMAC of these bytes, base64url. */
  readonly body: string
  /** Whether that was all. */
  readonly whole: boolean
}

/**
 * The client's streamed body as its backend reads it: it is hashed on its way (C12.2.2). It asks for nothing before it
 * is read itself, and no faster. It never destroys the client's stream, which belongs to `server/`.
 */
export class HashedStream extends Readable {
  readonly #source: Readable
  readonly #hash: BodyHash
  readonly #ended: (passed: Passed) => void
  #bytes = 0
  #listening = false
  #over = false

  /** @param ended called once, at the end of the body or of this stream */
  constructor(source: Readable, hash: BodyHash, ended: (passed: Passed) => void) {
    super()
    this.#source = source
    this.#hash = hash
    this.#ended = ended
    // Its backend listens for itself, while it reads. A client may leave before and after.
    this.on('error', () => undefined)
  }

  override _read(): void {
    if (!this.#listening) this.#listen()
    this.#source.resume()
  }

  #listen(): void {
    this.#listening = true
    const source = this.#source
    if (source.destroyed || source.readableEnded) this.#broken()
    else
      source.on('data', this.#take).on('end', this.#end).on('error', this.#broken).on('close', this.#broken)
  }

  readonly #take = (piece: Buffer): void => {
    this.#bytes += piece.length
    this.#hash.update(piece)
    if (!this.push(piece)) this.#source.pause()
  }

  readonly #end = (): void => {
    this.#tell(true)
    this.push(null)
  }

  readonly #broken = (): void => {
    if (!this.#over) this.destroy(this.#source.errored ?? new Fault('client_gone'))
  }

  /** The exchange is over: what nobody has begun to read will not be read. */
  stop(): void {
    if (!this.#listening) this.#tell(false)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const source = this.#source
    source.off('data', this.#take).off('end', this.#end).off('error', this.#broken).off('close', this.#broken)
    if (!source.readableEnded) source.pause()
    this.#tell(false)
    done(error)
  }

  #tell(whole: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#ended({ bytes: this.#bytes, body: this.#hash.digest(), whole })
  }
}
