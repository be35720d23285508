import type { UpstreamAddress, UpstreamTls } from './socket.ts'
import type { UpstreamTimeouts } from './connection.ts'
import type { UpstreamRequest } from './request.ts'
import { ConnectionQueue } from './connection-queue.ts'
import { UpstreamReader, type UpstreamCallback } from './reader.ts'

export interface PoolRules {
  readonly timeouts: UpstreamTimeouts
  readonly maxConnections: number
  /** Milliseconds that a connection is used at most. */
  readonly connectionAge: number
  /** Over TLS, whether an answer that only the end of the connection delimits counts as whole. */
  readonly closeDelimited: 'cut' | 'accept'
  readonly tls: UpstreamTls
}

/** Of the connections that may stand, so many may stand for second attempts. */
const FRESH_SHARE = 1 / 8

/** Milliseconds that a connection is kept unused: less than upstreams usually do (node: 5 s, nginx: 75 s). */
const KEEP = 4000

/** Milliseconds that each call has a connection of its own after bytes came that belong to no answer. */
const DISTRUST = 10 * 60_000

/** Told when every call begins to get a connection of its own (true), and when they share them again. */
export type TrustChanged = (distrusted: boolean) => void

/**
 * The connections to one target of an upstream. Further attempts at a call go over connections that nobody keeps: an
 * upstream that closes kept ones just as they are used would fail any number of attempts in a row, if each took another
 * kept one (T5.1). So do all calls for a while after bytes came that belong to no answer: an upstream that sends such
 * bytes may do so later than anybody can wait for, and the next call would read them as its answer (T2.8).
 */
export class UpstreamPool {
  readonly #kept: ConnectionQueue
  readonly #fresh: ConnectionQueue
  readonly #trustChanged: TrustChanged
  /** performance.now(). 0: it is trusted. */
  #distrustedUntil = 0
  #inFlight = 0

  constructor(address: UpstreamAddress, rules: PoolRules, trustChanged: TrustChanged = () => undefined) {
    const { timeouts, tls, maxConnections, connectionAge: age, closeDelimited } = rules
    const acceptsCloseDelimited = closeDelimited === 'accept'
    const common = { address, timeouts, tls, age, acceptsCloseDelimited }
    this.#kept = new ConnectionQueue({ ...common, most: maxConnections, keep: KEEP }, this.#strayed)
    const fresh = Math.ceil(maxConnections * FRESH_SHARE)
    this.#fresh = new ConnectionQueue({ ...common, most: fresh, keep: 0 }, this.#strayed)
    this.#trustChanged = trustChanged
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Sends; the callback is called exactly once. Answers the reader, by which the call can be cancelled. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    if (this.#distrustedUntil > 0 && performance.now() > this.#distrustedUntil) this.#trust()
    this.#inFlight += 1
    const reader = new UpstreamReader(request.eager, callback, this.#finished)
    const lane = request.fresh ? this.#fresh : this.#kept
    lane.send(request, reader)
    return reader
  }

  readonly #finished = (): void => {
    this.#inFlight -= 1
  }

  readonly #strayed = (): void => {
    const isNew = this.#distrustedUntil === 0
    this.#distrustedUntil = performance.now() + DISTRUST
    this.#kept.useOnce(true)
    if (isNew) this.#trustChanged(true)
  }

  #trust(): void {
    this.#distrustedUntil = 0
    this.#kept.useOnce(false)
    this.#trustChanged(false)
  }

  /** Waits for nobody: whoever still reads is cut. Drain first. */
  close(): Promise<void> {
    this.#kept.close()
    this.#fresh.close()
    return Promise.resolve()
  }
}
