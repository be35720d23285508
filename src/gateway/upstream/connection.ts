import type { Socket } from 'node:net'
import { type After, after as systemAfter, type Clock, systemClock } from '../../base/kernel/clock.ts'
import { descriptorOf, isKeptFrom } from '../../base/files/descriptors.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { UpstreamReader } from './reader.ts'
import {
  type Upload,
  type UploadEvents,
  type UpstreamRequest,
  type UpstreamTimeouts,
  writeRequest,
} from './request.ts'
import { HeaderLineCache, isRequestTimeout, keepAfter, type ResponseHead } from './response-head.ts'
import { ResponseParser, type ResponseSink } from './response-parser.ts'
import { discardSocket, type OpenSocket } from './socket.ts'

/** What the owner of a connection sees of it. */
export interface PooledConnection {
  /** Whether it can be given a call. */
  readonly isFree: boolean
  /** Sends a request as soon as the connection is established. Only for a connection that is new or free. */
  send(request: UpstreamRequest, reader: UpstreamReader): void
  close(): void
}

export interface ConnectionOwner {
  freed(connection: PooledConnection): void
  /** The connection is closed. Called once. */
  closed(connection: PooledConnection): void
  /** The upstream sent bytes that belong to no response: the next bytes might be read as one (T2.8). */
  strayBytes(): void
}

export interface ConnectionRules {
  readonly open: OpenSocket
  /** The Host header, unless the request has one. */
  readonly host: string
  readonly timeouts: UpstreamTimeouts
  /** How long it is kept while no call uses it, in milliseconds. 0: it serves one call. */
  readonly keep: number
  /** The age after which it gets no further call, in milliseconds; up to a quarter less, at random. */
  readonly age: number
  /** Whether a response that only the end of the connection delimits counts as whole. */
  readonly acceptsCloseDelimited: boolean
}

type Phase = 'connecting' | 'waiting' | 'answering' | 'free' | 'closed'

/** Timeout message per phase. */
const TIMEOUT: Readonly<Partial<Record<Phase, string>>> = {
  connecting: 'no connection to the upstream in time',
  waiting: 'no answer from the upstream in time',
  answering: 'the upstream stopped in the middle of its answer',
}

/** The greatest share by which an age is shortened, so that connections opened together are not replaced together. */
const AGE_SPREAD = 1 / 4

const cut = (): Fault =>
  new Fault('upstream_unreachable', {
    detail: 'the upstream closed the connection before its answer was whole',
  })

/** Node does not distinguish the end that TLS authenticates from one that anybody on the way can make. */
const unauthenticatedEnd = (): Fault =>
  new Fault('upstream_broken', {
    detail:
      'the answer has neither length nor chunks, and over TLS its end does not prove that it is whole: let the upstream send one of them, or set closeDelimited: accept',
  })

/** It is not the upstream's fault (C11.1.1). */
export const tooFewDescriptors = (cause?: unknown): Fault =>
  new Fault('overloaded', {
    cause,
    retryAfter: 5,
    detail: 'too few file descriptors are left for a connection to the upstream (`ulimit -n`)',
  })

/**
 * A connection to an upstream. It serves one call at a time, the next one when the answer is whole (T2.4). Bytes that
 * arrive while no call is under way, or behind an answer, belong to no call and end the connection (T2.3).
 */
export class UpstreamConnection implements PooledConnection, ResponseSink {
  readonly #socket: Socket
  readonly #rules: ConnectionRules
  readonly #owner: ConnectionOwner
  readonly #clock: Pick<Clock, 'monotonic'>
  #phase: Phase = 'connecting'
  #isConnected = false
  #request: UpstreamRequest | undefined
  #reader: UpstreamReader | undefined
  #parser: ResponseParser | undefined
  #upload: Upload | undefined
  readonly #headerLines = new HeaderLineCache()
  #keep: number
  /** After when it gets no further call, in monotonic milliseconds. */
  readonly #oldAt: number
  #served = 0
  #isReading = true
  /** The timeouts of the call that it serves, or served last. */
  #timeouts: UpstreamTimeouts
  readonly #deadline: Deadline

  /** @throws what node throws at once where no socket can be made */
  constructor(
    rules: ConnectionRules,
    owner: ConnectionOwner,
    clock: Pick<Clock, 'monotonic'> = systemClock,
    after: After = systemAfter,
  ) {
    this.#rules = rules
    this.#owner = owner
    this.#clock = clock
    this.#deadline = new Deadline(() => this.#timeOut(), clock, after)
    this.#keep = rules.keep
    this.#timeouts = rules.timeouts
    this.#oldAt = clock.monotonic() + rules.age * (1 - Math.random() * AGE_SPREAD)
    const { socket, ready } = rules.open(this.#receive)
    this.#socket = socket
    socket
      .once(ready, () => this.#connected())
      .on('end', () => this.#ended())
      .on('error', (error) => this.#fail(error))
      .once('close', () => this.#fail(cut()))
    this.#deadline.set(rules.timeouts.connect)
  }

  get isFree(): boolean {
    return this.#phase === 'free'
  }

  send(request: UpstreamRequest, reader: UpstreamReader): void {
    this.#request = request
    this.#reader = reader
    this.#parser = new ResponseParser(this, request.method, this.#headerLines)
    this.#timeouts = request.timeouts ?? this.#rules.timeouts
    if (request.timeouts !== undefined && !this.#isConnected) this.#deadline.set(request.timeouts.connect)
    reader.begin(this)
    if (this.#isConnected) this.#write(request)
  }

  abort(reason: Error): void {
    this.#fail(reason)
  }

  pause(): void {
    this.#isReading = false
    this.#deadline.lift()
    this.#socket.pause()
  }

  resume(): void {
    if (this.#isReading || this.#phase === 'closed') return
    this.#isReading = true
    this.#deadline.set(this.#timeouts.idle)
    this.#socket.resume()
  }

  close(): void {
    this.#fail(new Fault('upstream_unreachable', { detail: 'the backend is being closed' }))
  }

  onHead(head: ResponseHead): void {
    if (this.#phase !== 'waiting') return
    this.#phase = 'answering'
    this.#keep = keepAfter(head, this.#rules.keep)
    this.#reader?.head(head)
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    this.#reader?.body(bytes, start, end)
  }

  onEnd(): void {
    this.#reader?.end()
  }

  #connected(): void {
    this.#isConnected = true
    if (isKeptFrom('upstreams', descriptorOf(this.#socket))) this.#fail(tooFewDescriptors())
    else if (this.#request) this.#write(this.#request)
  }

  #write(request: UpstreamRequest): void {
    this.#phase = 'waiting'
    this.#deadline.set(this.#timeouts.firstByte)
    const { host, keep } = this.#rules
    try {
      // After an answer to HEAD the connection is not used again: see ResponseHead.
      const keeps = keep > 0 && request.method !== 'HEAD'
      this.#upload = writeRequest(this.#socket, request, host, keeps, this.#uploadEvents)
      this.#reader?.sent()
    } catch (error) {
      this.#fail(error)
      return
    }
    if (this.#upload === undefined) return
    this.#uploadWaits(false)
    this.#upload.start()
  }

  readonly #uploadEvents: UploadEvents = {
    done: () => {
      this.#upload = undefined
      this.#uploadWaits(true)
    },
    failed: (error) => this.#fail(error),
    waiting: (forUpstream) => this.#uploadWaits(forUpstream),
  }

  /** While the client's body is awaited, the upstream cannot be late. See `#timeOut` for a begun answer. */
  #uploadWaits(forUpstream: boolean): void {
    if (this.#phase === 'answering' && this.#isReading) this.#deadline.set(this.#timeouts.idle)
    if (this.#phase !== 'waiting') return
    if (forUpstream) this.#deadline.set(this.#timeouts.firstByte)
    else this.#deadline.lift()
  }

  readonly #receive = (end: number, bytes: Uint8Array): boolean => {
    const parser = this.#parser
    if (parser === undefined || (this.#phase !== 'waiting' && this.#phase !== 'answering')) {
      if (this.#phase === 'free' && !isRequestTimeout(bytes, end)) this.#owner.strayBytes()
      this.#fail(cut())
      return false
    }
    try {
      const read = parser.receive(bytes as Buffer, 0, end)
      if (parser.ended) {
        // Where the connection ends anyway, as after HEAD, a body that came nevertheless harms nobody.
        if (read !== end && parser.persistent) this.#owner.strayBytes()
        this.#complete(read === end && parser.persistent)
      } else {
        this.#reader?.unfinished()
        if (parser.progressed && this.#phase === 'answering' && this.#isReading)
          this.#deadline.set(this.#timeouts.idle)
      }
    } catch (error) {
      this.#refuse(error)
    }
    return this.#isReading
  }

  /** For bytes that are no response. On a connection that served a call before, they were left over from its answer. */
  #refuse(error: unknown): void {
    const isLeftOver = this.#served > 0 && this.#phase === 'waiting'
    if (isLeftOver) this.#owner.strayBytes()
    const code = isLeftOver ? 'upstream_unreachable' : 'upstream_broken'
    this.#fail(new Fault(code, { cause: error, detail: String(error) }))
  }

  #ended(): void {
    const parser = this.#parser
    if (parser?.closeDelimited === true && !this.#rules.acceptsCloseDelimited)
      this.#fail(unauthenticatedEnd())
    else if (parser?.finish() === true) this.#complete(false)
    else this.#fail(cut())
  }

  #complete(persistent: boolean): void {
    if (this.#reader === undefined) return
    const upload = this.#upload
    const isSent = upload === undefined && this.#socket.writableLength === 0
    const hadBody = this.#request?.body !== undefined
    this.#reader = undefined
    this.#parser = undefined
    this.#request = undefined
    this.#upload = undefined
    this.#served += 1
    upload?.stop()
    const keep = Math.min(this.#keep, this.#oldAt - this.#clock.monotonic())
    if (!persistent || !isSent || keep <= 0) {
      // The upstream may not have received the whole body of a request: a reset could take the rest from it.
      if (isSent && !hadBody) discardSocket(this.#socket)
      this.#fail(cut())
      return
    }
    if (!this.#isReading) this.resume()
    this.#phase = 'free'
    this.#deadline.set(keep)
    this.#owner.freed(this)
  }

  #fail(error: unknown): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#deadline.stop()
    this.#upload?.stop()
    const reader = this.#reader
    this.#reader = undefined
    this.#socket.destroy()
    this.#owner.closed(this)
    reader?.fail(error instanceof Error ? error : cut())
  }

  #timeOut(): void {
    // As in `#uploadWaits`.
    if (this.#phase === 'answering' && this.#upload?.isReading === true) {
      this.#deadline.set(this.#timeouts.idle)
      return
    }
    const detail = TIMEOUT[this.#phase]
    this.#fail(detail === undefined ? cut() : new Fault('upstream_timeout', { detail }))
  }
}

/**
 * A time limit that is set anew at each step of a call. It has one timer, which looks at the clock when it fires: a timer
 * for each step would cost more than the step.
 */
export class Deadline {
  readonly #expired: () => void
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #after: After
  /** When the limit is over, in monotonic milliseconds, as is `#firesAt`. */
  #expiresAt = Infinity
  /** When the timer fires; Infinity without a timer. */
  #firesAt = Infinity
  #cancelTimer: (() => void) | undefined

  /** @param expired called when the limit is over: once, unless it is set again */
  constructor(
    expired: () => void,
    clock: Pick<Clock, 'monotonic'> = systemClock,
    after: After = systemAfter,
  ) {
    this.#expired = expired
    this.#clock = clock
    this.#after = after
  }

  /** @param ms from now, in place of the limit before */
  set(ms: number): void {
    const now = this.#clock.monotonic()
    this.#expiresAt = now + ms
    if (this.#expiresAt < this.#firesAt) this.#startTimer(now)
  }

  /** Removes the limit, until it is set again. The timer goes on: the next limit is likely to come soon. */
  lift(): void {
    this.#expiresAt = Infinity
  }

  stop(): void {
    this.#expiresAt = this.#firesAt = Infinity
    this.#cancelTimer?.()
  }

  #startTimer(now: number): void {
    this.#cancelTimer?.()
    this.#firesAt = this.#expiresAt
    this.#cancelTimer = this.#after(this.#expiresAt - now, this.#onTimer)
  }

  readonly #onTimer = (): void => {
    this.#firesAt = Infinity
    if (this.#expiresAt === Infinity) return
    const now = this.#clock.monotonic()
    if (now < this.#expiresAt) this.#startTimer(now)
    else this.#expired()
  }
}
