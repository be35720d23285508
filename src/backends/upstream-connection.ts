import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { RecentLines } from '../http/header-lines.ts'
import type { ResponseHead } from '../http/response-head.ts'
import { ResponseParser, type ResponseSink } from '../http/response-parser.ts'
import { Fault } from '../kernel/faults.ts'
import { Deadline } from './deadline.ts'
import type { HeaderText } from './header-text.ts'
import { requestBytes, type RequestFraming } from './request-bytes.ts'
import type { UpstreamAddress } from './upstream-address.ts'
import type { UpstreamReader } from './upstream-reader.ts'
import { openSocket, type UpstreamTls } from './upstream-socket.ts'
import { Upload } from './upstream-upload.ts'

/** Milliseconds. */
export interface UpstreamTimeouts {
  readonly connect: number
  /** From the request on the wire to the response's head. */
  readonly firstByte: number
  /** Between two pieces of a body. */
  readonly idle: number
}

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderText
  /** What Host says in place of the target's own. */
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  /** In bytes, of a stream that has one. */
  readonly length: number | undefined
  /** See UpstreamReader. */
  readonly eager: boolean
  /** Over a connection that was not used before, for the attempt after one that failed. */
  readonly fresh: boolean
}

/** Whoever gives calls to a connection. */
export interface ConnectionOwner {
  /** It may be given another call. */
  freed(connection: UpstreamConnection): void
  /** Told once. It is not there any more. */
  closed(connection: UpstreamConnection): void
}

export interface ConnectionRules {
  readonly address: UpstreamAddress
  readonly timeouts: UpstreamTimeouts
  readonly tls: UpstreamTls
  /** Milliseconds that it is kept while nothing is asked of it. 0: it serves one call. */
  readonly keep: number
}

type Phase = 'connecting' | 'asked' | 'answering' | 'free' | 'closed'

/** What it is too late for, by what was waited for. */
const LATE: Readonly<Partial<Record<Phase, string>>> = {
  connecting: 'no connection to the upstream in time',
  asked: 'no answer of the upstream in time',
  answering: 'the upstream stopped in the middle of its answer',
}

/** Bytes of a body that go into one write with the head: two buffers at once cost twice as much. */
const JOINED = 15 * 1024

const cut = (): Fault =>
  new Fault('upstream_unreachable', {
    detail: 'the upstream closed the connection before its answer was whole',
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
  readonly #recent = new RecentLines()
  #keep: number
  #reading = true
  readonly #deadline = new Deadline(() => this.#late())

  constructor(rules: ConnectionRules, owner: ConnectionOwner) {
    this.#rules = rules
    this.#owner = owner
    this.#keep = rules.keep
    const { socket, ready } = openSocket(rules.address, rules.tls, this.#receive)
    this.#socket = socket
    socket
      .once(ready, () => this.#connect())
      .on('end', () => this.#ended())
      .on('error', (error) => this.#fail(error))
      .once('close', () => this.#fail(cut()))
    this.#deadline.set(rules.timeouts.connect)
  }

  /** Sends a request, as soon as there is a connection. Only for one that is new, or free. */
  send(request: UpstreamRequest, reader: UpstreamReader): void {
    this.#request = request
    this.#reader = reader
    this.#parser = new ResponseParser(this, request.method, this.#recent)
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
    this.#keep = this.#keepFor(head)
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
      else this.#together(head, body)
    } catch (error) {
      this.#fail(error)
    }
  }

  #together(head: string, body: Buffer): void {
    if (body.length <= JOINED) {
      this.#socket.write(head + body.toString('latin1'), 'latin1')
      return
    }
    this.#socket.cork()
    this.#socket.write(head, 'latin1')
    this.#socket.write(body)
    this.#socket.uncork()
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
      this.#fail(cut())
      return false
    }
    try {
      const read = parser.receive(bytes as Buffer, 0, end)
      if (parser.ended) this.#complete(read === end && parser.persistent)
      else if (this.#phase === 'answering' && this.#reading) this.#deadline.set(this.#rules.timeouts.idle)
    } catch (error) {
      this.#fail(new Fault('upstream_broken', { cause: error, detail: String(error) }))
    }
    return this.#reading
  }

  #ended(): void {
    if (this.#parser?.finish() === true) this.#complete(false)
    else this.#fail(cut())
  }

  /** The answer is whole. */
  #complete(persistent: boolean): void {
    if (this.#reader === undefined) return
    this.#reader = undefined
    this.#parser = undefined
    this.#request = undefined
    const upload = this.#upload
    this.#upload = undefined
    upload?.stop()
    const sent = upload === undefined && this.#socket.writableLength === 0
    if (!persistent || !sent || this.#keep <= 0) {
      this.#fail(cut())
      return
    }
    if (!this.#reading) this.resume()
    this.#phase = 'free'
    this.#deadline.set(this.#keep)
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

  /** `Keep-Alive: timeout=5` says when it will be closed over there: a call that is just then sent would fail. */
  #keepFor({ headers }: ResponseHead): number {
    const hint = headers['keep-alive']
    if (hint === undefined) return this.#rules.keep
    const [, seconds] = /(?:^|[\s,])timeout=([0-9]{1,6})/.exec(String(hint)) ?? []
    return seconds === undefined ? this.#rules.keep : Math.min(this.#rules.keep, (Number(seconds) - 1) * 1000)
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

function framingOf({ body, length }: UpstreamRequest): RequestFraming {
  if (body === undefined) return undefined
  return Buffer.isBuffer(body) ? body.length : (length ?? 'chunked')
}
