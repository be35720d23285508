import { timerMs } from '../kernel/after.ts'
import { Fault } from '../kernel/faults.ts'
import { UpstreamConnection, type ConnectionOwner, type ConnectionRules } from './connection.ts'
import type { UpstreamRequest } from './request.ts'
import type { UpstreamReader } from './reader.ts'

export interface ConnectionQueueRules extends ConnectionRules {
  /** Connections at a time. */
  readonly most: number
}

interface Entry {
  readonly request: UpstreamRequest
  readonly reader: UpstreamReader
}

interface Waiting extends Entry {
  readonly late: NodeJS.Timeout
}

/**
 * Connections of one kind, of which there are only so many, and the calls that wait for one.
 *
 * Bytes behind an answer may come a moment after it, and would be read as the answer to the next call (T2.8). So between
 * an answer and the next call over its connection everything that has arrived is read: a connection is free from the
 * end of its turn of the event loop on, and a call is given to a free one at the end of its own turn, which is a later
 * one. What came unasked, or the end of the connection, is then known, and the call goes another way.
 */
export class ConnectionQueue implements ConnectionOwner {
  readonly #rules: ConnectionQueueRules
  /** For connections of one call. */
  readonly #once: ConnectionQueueRules
  #isOnce = false
  /** Told of bytes that belong to no answer. */
  readonly #strayed: () => void
  readonly #open = new Set<UpstreamConnection>()
  /** The one used last is used next: those that are not needed fall out of use, and are closed. */
  readonly #free: UpstreamConnection[] = []
  /** Answered in this turn. */
  #resting: UpstreamConnection[] = []
  /** Calls that get a free connection at the end of this turn, or of the next. */
  #due: Entry[] = []
  readonly #waiting = new Set<Waiting>()
  #isTurning = false
  #closed = false

  constructor(rules: ConnectionQueueRules, strayed: () => void) {
    this.#rules = rules
    this.#once = { ...rules, keep: 0 }
    this.#strayed = strayed
  }

  send(request: UpstreamRequest, reader: UpstreamReader): void {
    const spare = this.#free.length + this.#resting.length - this.#due.length
    if (spare <= 0 || this.#waiting.size > 0) {
      this.#sendNow(request, reader)
      return
    }
    this.#due.push({ request, reader })
    this.#atEndOfTurn()
  }

  freed(connection: UpstreamConnection): void {
    if (this.#isOnce) {
      connection.close()
      return
    }
    this.#resting.push(connection)
    this.#atEndOfTurn()
  }

  closed(connection: UpstreamConnection): void {
    this.#open.delete(connection)
    const at = this.#free.indexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
    const next = this.#closed ? undefined : this.#next()
    if (next !== undefined) this.#connect(next.request, next.reader)
  }

  strayed(): void {
    this.#strayed()
  }

  /** Whether each call shall have a connection of its own from now on. Those that no call is under way on are closed. */
  useOnce(once: boolean): void {
    this.#isOnce = once
    if (once) for (const connection of [...this.#free, ...this.#resting]) connection.close()
  }

  close(): void {
    this.#closed = true
    const closed = new Fault('upstream_unreachable', { detail: 'the backend was closed' })
    for (const { reader } of [...this.#waiting, ...this.#due]) reader.cancel(closed)
    for (const connection of this.#open) connection.close()
  }

  #atEndOfTurn(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    setImmediate(this.#turn)
  }

  readonly #turn = (): void => {
    this.#isTurning = false
    this.#serveDue()
    this.#release()
    if (this.#free.length > 0 && this.#waiting.size > 0) this.#atEndOfTurn()
  }

  /** Those who wait longer first. */
  #serveDue(): void {
    for (let free = this.#free.length; free > 0 && this.#waiting.size > 0; free -= 1)
      this.#serve(this.#next())
    if (this.#due.length === 0) return
    const due = this.#due
    this.#due = []
    for (const entry of due) this.#serve(entry)
    if (this.#due.length > 0) this.#atEndOfTurn()
  }

  #serve(entry: Entry | undefined): void {
    if (entry === undefined || entry.reader.isOver) return
    const free = this.#free.pop()
    if (free !== undefined) free.send(entry.request, entry.reader)
    else if (this.#due.length < this.#resting.length) this.#due.push(entry)
    else this.#sendNow(entry.request, entry.reader)
  }

  #release(): void {
    if (this.#resting.length === 0) return
    for (const connection of this.#resting) if (connection.isFree) this.#free.push(connection)
    this.#resting = []
  }

  #sendNow(request: UpstreamRequest, reader: UpstreamReader): void {
    if (this.#closed) reader.fail(new Fault('upstream_unreachable', { detail: 'the backend was closed' }))
    else if (this.#open.size < this.#rules.most) this.#connect(request, reader)
    else this.#queue(request, reader)
  }

  #connect(request: UpstreamRequest, reader: UpstreamReader): void {
    try {
      const connection = new UpstreamConnection(this.#isOnce ? this.#once : this.#rules, this)
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
      timerMs(this.#rules.timeouts.firstByte),
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
