import { systemClock, type Clock } from '../kernel/clock.ts'
import { type ConnectionCounts, ConnectionQueue } from './connection-queue.ts'
import { UpstreamConnection } from './connection.ts'
import { UpstreamReader, type UpstreamCallback } from './reader.ts'
import type { UpstreamRequest, UpstreamTimeouts } from './request.ts'
import { isTls, socketOpener, type UpstreamAddress, type UpstreamTls } from './socket.ts'

export interface PoolRules {
  readonly timeouts: UpstreamTimeouts
  readonly maxConnections: number
  /** Milliseconds that a connection is used at most. */
  readonly connectionAge: number
  /** Over TLS, what becomes of a response that only the end of the connection delimits. */
  readonly closeDelimited: 'cut' | 'accept'
  readonly tls: UpstreamTls
}

/** Connections for further attempts, as a share of `maxConnections`, which they come on top of. */
const FRESH_SHARE = 1 / 8

/** Milliseconds that an unused connection is kept: less than upstreams usually do (node: 5 s, nginx: 75 s). */
const KEEP = 4000

/** Milliseconds for which each call gets a connection of its own after stray bytes came. */
const DISTRUST = 10 * 60_000

/** Told that from now on each call gets a connection of its own (true), or that calls share connections again. */
export type TrustChanged = (distrusted: boolean) => void

export const sumOfCounts = (counts: readonly ConnectionCounts[]): ConnectionCounts => ({
  active: counts.reduce((sum, { active }) => sum + active, 0),
  idle: counts.reduce((sum, { idle }) => sum + idle, 0),
  waiting: counts.reduce((sum, { waiting }) => sum + waiting, 0),
})

/**
 * The connections to one target of an upstream.
 *
 * Further attempts at a call use new connections that are not kept: an upstream that closes kept connections just as they
 * are used would fail any number of attempts in a row (T5.1). After bytes that belong to no response, all calls do so for
 * ten minutes: such an upstream may send more at any time, and the next call would read them as its answer (T2.8).
 */
export class UpstreamPool {
  readonly #kept: ConnectionQueue
  readonly #fresh: ConnectionQueue
  readonly #trustChanged: TrustChanged
  readonly #clock: Clock
  /** Monotonic milliseconds. 0: the upstream is trusted. */
  #distrustedUntil = 0
  #inFlight = 0

  constructor(
    address: UpstreamAddress,
    rules: PoolRules,
    trustChanged: TrustChanged = () => undefined,
    clock: Clock = systemClock,
  ) {
    this.#trustChanged = trustChanged
    this.#clock = clock
    const connection = {
      open: socketOpener(address, rules.tls, clock),
      host: address.host,
      timeouts: rules.timeouts,
      age: rules.connectionAge,
      acceptsCloseDelimited: !isTls(address) || rules.closeDelimited === 'accept',
    }
    const queue = (maxConnections: number, keep: number): ConnectionQueue =>
      new ConnectionQueue({
        open: (owner, singleUse) =>
          new UpstreamConnection({ ...connection, keep: singleUse ? 0 : keep }, owner),
        maxConnections,
        maxWait: rules.timeouts.firstByte,
        strayBytes: this.#onStrayBytes,
      })
    this.#kept = queue(rules.maxConnections, KEEP)
    this.#fresh = queue(Math.ceil(rules.maxConnections * FRESH_SHARE), 0)
  }

  get inFlight(): number {
    return this.#inFlight
  }

  get counts(): ConnectionCounts {
    return sumOfCounts([this.#kept.counts, this.#fresh.counts])
  }

  /** Sends a request. The callback is called exactly once. The reader that is returned can cancel the call. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    if (this.#distrustedUntil > 0 && this.#clock.monotonic() > this.#distrustedUntil) this.#trust()
    this.#inFlight += 1
    const reader = new UpstreamReader(request.eager, callback, this.#onFinished)
    const queue = request.fresh ? this.#fresh : this.#kept
    queue.send(request, reader)
    return reader
  }

  readonly #onFinished = (): void => {
    this.#inFlight -= 1
  }

  readonly #onStrayBytes = (): void => {
    const isNew = this.#distrustedUntil === 0
    this.#distrustedUntil = this.#clock.monotonic() + DISTRUST
    this.#kept.setSingleUse(true)
    if (isNew) this.#trustChanged(true)
  }

  #trust(): void {
    this.#distrustedUntil = 0
    this.#kept.setSingleUse(false)
    this.#trustChanged(false)
  }

  /** Ends every call and connection at once. Drain before. */
  close(): Promise<void> {
    this.#kept.close()
    this.#fresh.close()
    return Promise.resolve()
  }
}
