import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { isRequestTimeout, keepAfter, HeaderLineCache, type ResponseHead } from './response-head.ts'
import { ResponseParser, type ResponseSink } from './response-parser.ts'
import { Fault } from '../kernel/faults.ts'
import { Deadline } from './deadline.ts'
import {
  framingOf,
  requestBytes,
  type RequestFraming,
  type UpstreamRequest,
  writeTogether,
} from './request.ts'
import { forget, openSocket, type UpstreamAddress, type UpstreamTls } from './socket.ts'
import type { UpstreamReader } from './reader.ts'
import { Upload } from './upload.ts'

/** Milliseconds. */
export interface UpstreamTimeouts {
  readonly connect: number
  /** From the request on the wire to the response's head. */
  readonly firstByte: number
  /** Between two pieces of a body. */
  readonly idle: number
}

/** Whoever gives calls to a connection. */
export interface ConnectionOwner {
  /** It may be given another call. */
  freed(connection: UpstreamConnection): void
  /** Told once. It is not there any more. */
  closed(connection: UpstreamConnection): void
  /** The upstream sent bytes that belong to no answer: the next ones might be read as one (T2.8). */
  strayed(): void
}

export interface ConnectionRules {
  readonly address: UpstreamAddress
  readonly timeouts: UpstreamTimeouts
  readonly tls: UpstreamTls
  /** Milliseconds that it is kept while nothing is asked of it. 0: it serves one call. */
  readonly keep: number
  /** Milliseconds from its opening after which it gets no other call: up to a quarter less, by chance. */
  readonly age: number
  /** Over TLS, whether an answer that only the end of the connection delimits counts as whole. */
  readonly acceptsCloseDelimited: boolean
}

type Phase = 'connecting' | 'asked' | 'answering' | 'free' | 'closed'

/** What it is too late for, by what was waited for. */
const LATE: Readonly<Partial<Record<Phase, string>>> = {
  connecting: 'no connection to the upstream in time',
  asked: 'no answer of the upstream in time',
  answering: 'the upstream stopped in the middle of its answer',
}

/** Connections that were opened together shall not all be opened anew together: each lives so much less, at most. */
const AGE_SPREAD = 1 / 4

const cut = (): Fault =>
  new Fault('upstream_unreachable', {
    detail: 'the upstream closed the connection before its answer was whole',
  })

/** Node tells no difference between the end that TLS signs and one that anybody on the way can make. */
const doubtfulEnd = (): Fault =>
  new Fault('upstream_broken', {
    detail:
      'the answer has neither length nor chunks, and its end over TLS proves nothing: have the upstream send one of them, or set closeDelimited: accept',
  })

/**
 * A connection to an upstream: one call at a time, the next when the answer to the last has ended (T2.4). What arrives
 * when nothing was asked, or behind an answer, is nobody's, and ends it (T2.3).
 */
export class UpstreamConnection implements ResponseSink {
  readonly #socket: Socket
  readonly #rules: ConnectionRules
  readonly #owner: ConnectionOwner
  #phase: Phase = 'connecting'
  #connected = false
  #request: UpstreamRequest | undefined
  #reader: UpstreamReader | undefined
  #parser: ResponseParser | undefined
  #upload: Upload | undefined
  readonly #headerLines = new HeaderLineCache()
  #keep: number
  /** performance.now() from which on it gets no other call. */
  readonly #old: number
  /** Calls that it has served. */
  #served = 0
  #reading = true
  readonly #deadline = new Deadline(() => this.#late())

  constructor(rules: ConnectionRules, owner: ConnectionOwner) {
    this.#rules = rules
    this.#owner = owner
    this.#keep = rules.keep
    this.#old = performance.now() + rules.age * (1 - Math.random() * AGE_SPREAD)
    const { socket, ready } = openSocket(rules.address, rules.tls, this.#receive)
    this.#socket = socket
    socket
      .once(ready, () => this.#connect())
      .on('end', () => this.#ended())
      .on('error', (error) => this.#fail(error))
      .once('close', () => this.#fail(cut()))
    this.#deadline.set(rules.timeouts.connect)
  }

  /** Whether it waits for another call. */
  get isFree(): boolean {
    return this.#phase === 'free'
  }

  /** Sends a request, as soon as there is a connection. Only for one that is new, or free. */
  send(request: UpstreamRequest, reader: UpstreamReader): void {
    this.#request = request
    this.#reader = reader
    this.#parser = new ResponseParser(this, request.method, this.#headerLines)
    reader.begin(this)
    if (this.#connected) this.#write(request)
  }

  /** Gives the call up, and the connection with it. */
  abort(reason: Error): void {
    this.#fail(reason)
  }

  /** Reads no more until `resume`: whoever takes the body is slower than the upstream. */
  pause(): void {
    this.#reading = false
    this.#deadline.lift()
    this.#socket.pause()
  }

  resume(): void {
    if (this.#reading || this.#phase === 'closed') return
    this.#reading = true
    this.#deadline.set(this.#rules.timeouts.idle)
    this.#socket.resume()
  }

  close(): void {
    this.#fail(new Fault('upstream_unreachable', { detail: 'the backend is being closed' }))
  }

  onHead(head: ResponseHead): void {
    if (this.#phase !== 'asked') return
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

  #connect(): void {
    this.#connected = true
    if (this.#request) this.#write(this.#request)
  }

  #write(request: UpstreamRequest): void {
    this.#phase = 'asked'
    this.#deadline.set(this.#rules.timeouts.firstByte)
    const { body } = request
    const framing = framingOf(request)
    try {
      const { address, keep } = this.#rules
      // After an answer to HEAD it is not used again: see response-head.ts.
      const keeps = keep > 0 && request.method !== 'HEAD'
      const head = requestBytes(request, framing, request.host ?? address.host, keeps)
      if (body instanceof Readable) this.#stream(head, body, framing)
      else if (body === undefined) this.#socket.write(head, 'latin1')
      else writeTogether(this.#socket, head, body)
    } catch (error) {
      this.#fail(error)
    }
  }

  #stream(head: string, body: Readable, framing: RequestFraming): void {
    this.#socket.write(head, 'latin1')
    const upload = new Upload(body, framing === 'chunked' ? undefined : framing, this.#socket, {
      done: () => {
        this.#upload = undefined
        this.#uploading(true)
      },
      failed: (error) => this.#fail(error),
      waiting: (forUpstream) => this.#uploading(forUpstream),
    })
    this.#upload = upload
    this.#uploading(false)
    upload.start()
  }

  /** While it is the client whose body is waited for, the upstream is late with nothing. See `#look` for an early answer. */
  #uploading(forUpstream: boolean): void {
    if (this.#phase === 'answering' && this.#reading) this.#deadline.set(this.#rules.timeouts.idle)
    if (this.#phase !== 'asked') return
    if (forUpstream) this.#deadline.set(this.#rules.timeouts.firstByte)
    else this.#deadline.lift()
  }

  readonly #receive = (end: number, bytes: Uint8Array): boolean => {
    const parser = this.#parser
    if (parser === undefined || (this.#phase !== 'asked' && this.#phase !== 'answering')) {
      if (this.#phase === 'free' && !isRequestTimeout(bytes, end)) this.#owner.strayed()
      this.#fail(cut())
      return false
    }
    try {
      const read = parser.receive(bytes as Buffer, 0, end)
      if (parser.ended) {
        // Where the connection was to end anyway, as after HEAD, a body that came all the same can harm nobody.
        if (read !== end && parser.persistent) this.#owner.strayed()
        this.#complete(read === end && parser.persistent)
      } else if (parser.progressed && this.#phase === 'answering' && this.#reading)
        this.#deadline.set(this.#rules.timeouts.idle)
    } catch (error) {
      this.#misread(error)
    }
    return this.#reading
  }

  /** Bytes that are no answer. Where one came before over the connection, they were left over from it. */
  #misread(error: unknown): void {
    const isLeftOver = this.#served > 0 && this.#phase === 'asked'
    if (isLeftOver) this.#owner.strayed()
    const code = isLeftOver ? 'upstream_unreachable' : 'upstream_broken'
    this.#fail(new Fault(code, { cause: error, detail: String(error) }))
  }

  #ended(): void {
    const parser = this.#parser
    const isDoubtful = parser?.closeDelimited === true && this.#isTls && !this.#rules.acceptsCloseDelimited
    if (isDoubtful) this.#fail(doubtfulEnd())
    else if (parser?.finish() === true) this.#complete(false)
    else this.#fail(cut())
  }

  get #isTls(): boolean {
    return this.#rules.address.origin.startsWith('https:')
  }

  /** The answer is whole. */
  #complete(persistent: boolean): void {
    if (this.#reader === undefined) return
    const upload = this.#upload
    const sent = upload === undefined && this.#socket.writableLength === 0
    const hadBody = this.#request?.body !== undefined
    this.#reader = undefined
    this.#parser = undefined
    this.#request = undefined
    this.#upload = undefined
    this.#served += 1
    upload?.stop()
    const keep = Math.min(this.#keep, this.#old - performance.now())
    if (!persistent || !sent || keep <= 0) {
      // Of a body the upstream may not have received all: a reset could take the rest from it.
      if (sent && !hadBody) forget(this.#socket)
      this.#fail(cut())
      return
    }
    if (!this.#reading) this.resume()
    this.#phase = 'free'
    this.#deadline.set(keep)
    this.#owner.freed(this)
  }

  /** The end of the connection, and of the call that it was serving. */
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

  #late(): void {
    // While it is the client whose body is waited for, the upstream is late with nothing.
    if (this.#phase === 'answering' && this.#upload?.isReading === true) {
      this.#deadline.set(this.#rules.timeouts.idle)
      return
    }
    const late = LATE[this.#phase]
    this.#fail(late === undefined ? cut() : new Fault('upstream_timeout', { detail: late }))
  }
}
