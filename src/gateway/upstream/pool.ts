import { setImmediate } from 'node:timers'
import { type After, after as systemAfter, type Clock, systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { type ConnectionOwner, type PooledConnection, UpstreamConnection } from './connection.ts'
import { UpstreamReader } from './reader.ts'
import type { UpstreamRequest, UpstreamTimeouts } from './request.ts'
import { isTls, socketOpener, type UpstreamAddress, type UpstreamTls } from './socket.ts'
import type { UpstreamCallback } from '../../base/contracts/calls/backend.ts'

/** @param singleUse whether it is to be closed after one call @throws where no socket can be made */
type OpenConnection = (owner: ConnectionOwner, singleUse: boolean) => PooledConnection

export interface ConnectionCounts {
  readonly active: number
  readonly idle: number
  readonly waiting: number
}

interface ConnectionQueueRules {
  readonly open: OpenConnection
  readonly maxConnections: number
  /** How long a call waits for a connection, in milliseconds, unless it says its own. */
  readonly maxWait: number
  /** Called when the upstream sent bytes that belong to no response. */
  readonly strayBytes: () => void
}

interface Call {
  readonly request: UpstreamRequest
  readonly reader: UpstreamReader
}

interface WaitingCall extends Call {
  readonly cancelTimer: () => void
}

const closedFault = (): Fault => new Fault('upstream_unreachable', { detail: 'the backend was closed' })

/**
 * A limited number of connections, and the calls that wait for one.
 *
 * Bytes behind an answer may arrive a moment after it and would be read as the answer to the next call (T2.8). So before
 * a connection gets its next call, everything that has arrived over it is read: it becomes free at the end of the turn of
 * the event loop in which its answer ended, and gets a call at the end of a later turn. Stray bytes, or the end of the
 * connection, are known by then, and the call takes another connection.
 */
export class ConnectionQueue implements ConnectionOwner {
  readonly #rules: ConnectionQueueRules
  readonly #after: After
  #isSingleUse = false
  readonly #open = new Set<PooledConnection>()
  /** The one used last is used next, so that connections that are not needed time out. */
  readonly #free: PooledConnection[] = []
  /** Connections whose answer ended in this turn. */
  #resting: PooledConnection[] = []
  /** Calls that get a free connection at the end of this turn, or of the next. */
  #assigned: Call[] = []
  /** Calls for which every connection is taken, oldest first. */
  readonly #waiting = new Set<WaitingCall>()
  #isTurnScheduled = false
  #isClosed = false

  constructor(rules: ConnectionQueueRules, after: After = systemAfter) {
    this.#rules = rules
    this.#after = after
  }

  get counts(): ConnectionCounts {
    const idle = this.#free.length + this.#resting.length
    return { active: this.#open.size - idle, idle, waiting: this.#waiting.size }
  }

  /** Sends a request over a free or new connection, or as soon as there is one. Failures go to the reader. */
  send(request: UpstreamRequest, reader: UpstreamReader): void {
    const available = this.#free.length + this.#resting.length - this.#assigned.length
    if (available <= 0 || this.#waiting.size > 0) {
      this.#connectOrWait({ request, reader })
      return
    }
    this.#assigned.push({ request, reader })
    this.#scheduleTurn()
  }

  freed(connection: PooledConnection): void {
    if (this.#isSingleUse) {
      connection.close()
      return
    }
    this.#resting.push(connection)
    this.#scheduleTurn()
  }

  closed(connection: PooledConnection): void {
    this.#open.delete(connection)
    const at = this.#free.indexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
    const next = this.#isClosed ? undefined : this.#takeWaiting()
    if (next !== undefined) this.#connect(next)
  }

  strayBytes(): void {
    this.#rules.strayBytes()
  }

  /** Sets whether each call gets a connection of its own from now on. If so, connections without a call are closed. */
  setSingleUse(singleUse: boolean): void {
    this.#isSingleUse = singleUse
    if (singleUse) for (const connection of [...this.#free, ...this.#resting]) connection.close()
  }

  /** Ends all connections and calls at once. */
  close(): void {
    this.#isClosed = true
    for (const { reader } of [...this.#waiting, ...this.#assigned]) reader.cancel(closedFault())
    for (const connection of this.#open) connection.close()
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return
    this.#isTurnScheduled = true
    setImmediate(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    this.#isTurnScheduled = false
    this.#serveCalls()
    this.#releaseResting()
    if (this.#free.length > 0 && this.#waiting.size > 0) this.#scheduleTurn()
  }

  /** Waiting calls come before assigned ones. */
  #serveCalls(): void {
    for (let free = this.#free.length; free > 0 && this.#waiting.size > 0; free -= 1)
      this.#serve(this.#takeWaiting())
    if (this.#assigned.length === 0) return
    const assigned = this.#assigned
    this.#assigned = []
    for (const call of assigned) this.#serve(call)
    if (this.#assigned.length > 0) this.#scheduleTurn()
  }

  #serve(call: Call | undefined): void {
    if (call === undefined || call.reader.isOver) return
    const free = this.#free.pop()
    if (free !== undefined) free.send(call.request, call.reader)
    else if (this.#assigned.length < this.#resting.length) this.#assigned.push(call)
    else this.#connectOrWait(call)
  }

  #releaseResting(): void {
    if (this.#resting.length === 0) return
    for (const connection of this.#resting) if (connection.isFree) this.#free.push(connection)
    this.#resting = []
  }

  #connectOrWait(call: Call): void {
    if (this.#isClosed) call.reader.fail(closedFault())
    else if (this.#open.size < this.#rules.maxConnections) this.#connect(call)
    else this.#wait(call)
  }

  #connect({ request, reader }: Call): void {
    try {
      const connection = this.#rules.open(this, this.#isSingleUse)
      this.#open.add(connection)
      connection.send(request, reader)
    } catch (error) {
      reader.fail(new Fault('upstream_unreachable', { cause: error, detail: 'no socket could be opened' }))
    }
  }

  /** Lets a call wait for a connection, but not for ever (T5.4). */
  #wait({ request, reader }: Call): void {
    const detail = 'no connection to the upstream became free in time'
    const cancelTimer = this.#after(request.timeouts?.firstByte ?? this.#rules.maxWait, () =>
      reader.cancel(new Fault('upstream_timeout', { detail })),
    )
    const waiting = { request, reader, cancelTimer }
    this.#waiting.add(waiting)
    reader.whenCancelled(() => {
      cancelTimer()
      this.#waiting.delete(waiting)
    })
  }

  #takeWaiting(): WaitingCall | undefined {
    for (const waiting of this.#waiting) {
      this.#waiting.delete(waiting)
      waiting.cancelTimer()
      return waiting
    }
    return undefined
  }
}

export interface PoolRules {
  readonly timeouts: UpstreamTimeouts
  readonly maxConnections: number
  /** How long a connection is used at most, in milliseconds. */
  readonly connectionAge: number
  /** Over TLS, what becomes of a response that only the end of the connection delimits. */
  readonly closeDelimited: 'cut' | 'accept'
  readonly tls: UpstreamTls
}

/** Connections for further attempts, as a share of `maxConnections`, which they come on top of. */
const FRESH_SHARE = 1 / 8

/** How long an unused connection is kept, in milliseconds: less than upstreams usually do (node: 5 s, nginx: 75 s). */
const KEEP = 4000

/** How long each call gets a connection of its own after stray bytes came, in milliseconds. */
const DISTRUST = 10 * 60_000

/** Called when from now on each call gets a connection of its own (true), or that calls share connections again. */
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
  readonly #after: After
  /** Until when the upstream is distrusted, in monotonic milliseconds. 0: it is trusted. */
  #distrustedUntil = 0
  #inFlight = 0
  #isRetired = false

  constructor(
    address: UpstreamAddress,
    rules: PoolRules,
    trustChanged: TrustChanged = () => undefined,
    clock: Clock = systemClock,
    after: After = systemAfter,
  ) {
    this.#trustChanged = trustChanged
    this.#clock = clock
    this.#after = after
    const connection = {
      open: socketOpener(address, rules.tls, clock),
      host: address.host,
      timeouts: rules.timeouts,
      age: rules.connectionAge,
      acceptsCloseDelimited: !isTls(address) || rules.closeDelimited === 'accept',
    }
    const queue = (maxConnections: number, keep: number): ConnectionQueue =>
      new ConnectionQueue(
        {
          open: (owner, singleUse) =>
            new UpstreamConnection({ ...connection, keep: singleUse ? 0 : keep }, owner, clock, after),
          maxConnections,
          maxWait: rules.timeouts.firstByte,
          strayBytes: this.#onStrayBytes,
        },
        after,
      )
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
    const reader = new UpstreamReader(request, callback, this.#onFinished, this.#after)
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
    this.#kept.setSingleUse(this.#isRetired)
    this.#trustChanged(false)
  }

  /** Keeps no connections from now on. Calls under way end as they would, and further ones use a connection each. */
  retire(): void {
    this.#isRetired = true
    this.#kept.setSingleUse(true)
  }

  /** Ends every call and connection at once. Drain before. */
  close(): Promise<void> {
    this.#kept.close()
    this.#fresh.close()
    return Promise.resolve()
  }
}
