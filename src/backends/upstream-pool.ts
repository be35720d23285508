import { Fault } from '../kernel/faults.ts'
import type { UpstreamAddress } from './upstream-address.ts'
import {
  UpstreamConnection,
  type ConnectionOwner,
  type UpstreamRequest,
  type UpstreamTimeouts,
} from './upstream-connection.ts'
import { UpstreamReader, type UpstreamCallback } from './upstream-reader.ts'
import type { UpstreamTls } from './upstream-socket.ts'

export interface PoolRules {
  readonly timeouts: UpstreamTimeouts
  readonly maxConnections: number
  readonly tls: UpstreamTls
}

/** Of the connections that may stand, so many may stand for second attempts. */
const FRESH_SHARE = 1 / 8

/** Milliseconds that a connection is kept unused: less than upstreams usually do (node: 5 s, nginx: 75 s). */
const KEEP = 4000

/**
 * The connections to one target of an upstream. Further attempts at a call go over connections that nobody keeps: an
 * upstream that closes kept ones just as they are used would fail any number of attempts in a row, if each took another
 * kept one (T5.1).
 */
export class UpstreamPool {
  readonly #kept: Lane
  readonly #fresh: Lane
  #inFlight = 0

  constructor(address: UpstreamAddress, rules: PoolRules) {
    const { maxConnections } = rules
    this.#kept = new Lane(address, rules, maxConnections, KEEP)
    this.#fresh = new Lane(address, rules, Math.ceil(maxConnections * FRESH_SHARE), 0)
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Sends; the callback is called exactly once. Answers the reader, by which the call can be cancelled. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    this.#inFlight += 1
    const reader = new UpstreamReader(request.eager, callback, this.#finished)
    const lane = request.fresh ? this.#fresh : this.#kept
    lane.send(request, reader)
    return reader
  }

  readonly #finished = (): void => {
    this.#inFlight -= 1
  }

  /** Waits for nobody: whoever still reads is cut. Drain first. */
  close(): Promise<void> {
    this.#kept.close()
    this.#fresh.close()
    return Promise.resolve()
  }
}

interface Waiting {
  readonly request: UpstreamRequest
  readonly reader: UpstreamReader
  readonly late: NodeJS.Timeout
}

/** Connections of one kind, of which there are only so many, and the calls that wait for one. */
class Lane implements ConnectionOwner {
  readonly #address: UpstreamAddress
  readonly #rules: PoolRules
  readonly #most: number
  readonly #keep: number
  readonly #open = new Set<UpstreamConnection>()
  /** The one used last is used next: those that are not needed fall out of use, and are closed. */
  readonly #free: UpstreamConnection[] = []
  readonly #waiting = new Set<Waiting>()
  #closed = false

  constructor(address: UpstreamAddress, rules: PoolRules, most: number, keep: number) {
    this.#address = address
    this.#rules = rules
    this.#most = most
    this.#keep = keep
  }

  send(request: UpstreamRequest, reader: UpstreamReader): void {
    const free = this.#free.pop()
    if (free !== undefined) free.send(request, reader)
    else if (this.#closed)
      reader.fail(new Fault('upstream_unreachable', { detail: 'the backend was closed' }))
    else if (this.#open.size < this.#most) this.#connect(request, reader)
    else this.#queue(request, reader)
  }

  freed(connection: UpstreamConnection): void {
    const next = this.#next()
    if (next === undefined) this.#free.push(connection)
    else connection.send(next.request, next.reader)
  }

  closed(connection: UpstreamConnection): void {
    this.#open.delete(connection)
    const at = this.#free.indexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
    const next = this.#closed ? undefined : this.#next()
    if (next !== undefined) this.#connect(next.request, next.reader)
  }

  close(): void {
    this.#closed = true
    for (const { reader } of this.#waiting)
      reader.cancel(new Fault('upstream_unreachable', { detail: 'the backend was closed' }))
    for (const connection of this.#open) connection.close()
  }

  #connect(request: UpstreamRequest, reader: UpstreamReader): void {
    const { timeouts, tls } = this.#rules
    const rules = { address: this.#address, timeouts, tls, keep: this.#keep }
    try {
      const connection = new UpstreamConnection(rules, this)
      this.#open.add(connection)
      connection.send(request, reader)
    } catch (error) {
      // Node throws at once for what it cannot make a socket of.
      reader.fail(new Fault('upstream_unreachable', { cause: error, detail: 'no socket could be opened' }))
    }
  }

  /** A call waits for a connection as long as it would for the first byte (T5.4). */
  #queue(request: UpstreamRequest, reader: UpstreamReader): void {
    const detail = 'no connection to the upstream came free in time'
    const late = setTimeout(
      () => reader.cancel(new Fault('upstream_timeout', { detail })),
      this.#rules.timeouts.firstByte,
    )
    const waiting = { request, reader, late }
    this.#waiting.add(waiting)
    reader.whenCancelled(() => {
      clearTimeout(late)
      this.#waiting.delete(waiting)
    })
  }

  #next(): Waiting | undefined {
    for (const waiting of this.#waiting) {
      this.#waiting.delete(waiting)
      clearTimeout(waiting.late)
      return waiting
    }
    return undefined
  }
}
