import { isHeaderValue, isToken } from '../../base/http/head/header-text.ts'
import {
  type HeaderLineCache,
  MalformedResponse,
  parseResponseHead,
  type ResponseHead,
} from './response-head.ts'

/** Gets the parts of a response in their order. */
export interface ResponseSink {
  onHead(head: ResponseHead): void
  /**
   * The piece of the body that was in the bytes received, at most one for each `receive`: `bytes` from `start` to `end`.
   * They belong to the caller of `receive`: a sink that keeps them copies them.
   */
  onBody(bytes: Buffer, start: number, end: number): void
  /** Called last. */
  onEnd(): void
}

/** The largest head, in bytes. */
const MAX_HEAD = 16 * 1024
/** The most bytes of a chunk's size with its extensions, or of one trailer line. */
const MAX_LINE = 4 * 1024

/** 1xx that can come unasked. Parsers differ on any other: to some it is the final response, with a body. */
const INTERIM: ReadonlySet<number> = new Set([100, 102, 103])

type State = 'head' | 'length' | 'close' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'ended'

/** A chunk's size and its extensions, which are ignored (RFC 9112 §7.1.1, without the blanks it tolerates). */
const CHUNK_SIZE =
  /^([0-9A-Fa-f]{1,12})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/
/** Names that frame or route a message and must not be in trailers (RFC 9110 §6.5.1). */
const NO_TRAILER: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const START = 'HTTP/1.'
/** RFC 9112 §2.2 lets a recipient take it for the end of a line. Recipients differ in that, so it is refused. */
const BARE_FEED = /(?<!\r)\n/g

/**
 * Reads the one response to a request, from pieces as they arrive (RFC 9112 without its leniencies; README.md lists what
 * is refused). Chunks are joined; chunk extensions, trailers and interim responses are checked and dropped.
 */
export class ResponseParser {
  readonly #sink: ResponseSink
  readonly #requested: string
  readonly #headerLines: HeaderLineCache | undefined
  #state: State = 'head'
  /** The part of a head or line that has arrived so far. */
  #pending = ''
  /** Bytes that the body, or this chunk, still lacks. */
  #remaining = 0
  /** The body within the bytes received. Chunks are moved together, so that thousands of small ones are one piece. */
  #bodyStart = 0
  #bodyEnd = 0
  /** How many bytes of trailers came so far. */
  #trailers = 0
  #persistent = false
  /** Whether a 1xx came. No request asks for one: an upstream that sends it may send more unasked (T2.8). */
  #hadInterim = false
  #progressed = false

  /** @param requested the method of the request @param headerLines of the connection */
  constructor(sink: ResponseSink, requested: string, headerLines?: HeaderLineCache) {
    this.#sink = sink
    this.#requested = requested
    this.#headerLines = headerLines
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Whether the response allows another request over its connection. */
  get persistent(): boolean {
    return this.#persistent
  }

  /**
   * Whether the last `receive` brought the end of the head, or bytes of the body. Lines around chunks do not count: an
   * upstream could send them for ever, byte by byte.
   */
  get progressed(): boolean {
    return this.#progressed
  }

  /** Whether the body ends with the connection. */
  get closeDelimited(): boolean {
    return this.#state === 'close'
  }

  /**
   * Takes bytes that have arrived, and may overwrite them. Answers where in them the response ended, or `end`: bytes from
   * there on are no part of it.
   * @throws MalformedResponse for bytes that are no HTTP/1.1 response, and for a 101, which no request asks for
   */
  receive(bytes: Buffer, start: number, end: number): number {
    let at = start
    this.#bodyStart = this.#bodyEnd = start
    this.#progressed = false
    while (at < end && this.#state !== 'ended') at = this.#step(bytes, at, end)
    if (this.#bodyStart < this.#bodyEnd) {
      this.#progressed = true
      this.#sink.onBody(bytes, this.#bodyStart, this.#bodyEnd)
    }
    if (this.#state === 'ended' && at > start) this.#sink.onEnd()
    return at
  }

  /** To be called when the upstream has ended the connection. Answers whether the response is whole. */
  finish(): boolean {
    if (this.#state === 'close') {
      this.#state = 'ended'
      this.#sink.onEnd()
    }
    return this.#state === 'ended'
  }

  #step(bytes: Buffer, at: number, end: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at, end)
      case 'close':
        this.#bodyStart = at
        this.#bodyEnd = end
        return end
      case 'length':
      case 'chunk':
        return this.#readBody(bytes, at, end)
      default:
        return this.#readLine(bytes, at, end)
    }
  }

  #readHead(bytes: Buffer, at: number, end: number): number {
    const before = this.#pending.length
    const text = this.#pending + bytes.toString('latin1', at, Math.min(end, at + MAX_HEAD + 4 - before))
    const blank = text.indexOf('\r\n\r\n', Math.max(0, before - 3))
    if (blank < 0) {
      if (!START.startsWith(text.slice(0, START.length)))
        throw new MalformedResponse('it does not begin with HTTP/1')
      BARE_FEED.lastIndex = before
      // The end that is looked for would never come.
      if (BARE_FEED.test(text)) throw new MalformedResponse('a line of the head ends without carriage return')
      if (text.length >= MAX_HEAD + 4) throw new MalformedResponse('the head is too large')
      this.#pending = text
      return end
    }
    this.#pending = ''
    this.#takeHead(parseResponseHead(text.slice(0, blank + 2), this.#requested, this.#headerLines))
    return at + blank + 4 - before
  }

  #takeHead(head: ResponseHead): void {
    if (head.status < 200) {
      this.#takeInterim(head)
      return
    }
    const { framing } = head
    this.#progressed = true
    this.#persistent = head.persistent && framing !== 'close' && !this.#hadInterim
    this.#state = framing === 'chunked' ? 'size' : framing === 'close' ? 'close' : 'length'
    if (typeof framing === 'number') this.#remaining = framing
    this.#sink.onHead(head)
    if (framing === 0) this.#state = 'ended'
  }

  #takeInterim({ status, headers, persistent }: ResponseHead): void {
    if (!INTERIM.has(status)) throw new MalformedResponse('a 1xx that nobody asked for')
    if (!persistent) throw new MalformedResponse('a 1xx that ends the connection')
    // RFC 9110 §8.6 and RFC 9112 §6.1 forbid both: a recipient could read a body.
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      throw new MalformedResponse('a 1xx with a body')
    this.#hadInterim = true
  }

  #readBody(bytes: Buffer, at: number, end: number): number {
    const until = Math.min(end, at + this.#remaining)
    this.#remaining -= until - at
    if (this.#bodyStart === this.#bodyEnd) {
      this.#bodyStart = at
      this.#bodyEnd = until
    } else {
      bytes.copyWithin(this.#bodyEnd, at, until)
      this.#bodyEnd += until - at
    }
    if (this.#remaining === 0) this.#state = this.#state === 'chunk' ? 'chunk-end' : 'ended'
    return until
  }

  #readLine(bytes: Buffer, at: number, end: number): number {
    const feed = bytes.indexOf(0x0a, at)
    const until = feed < 0 || feed >= end ? end : feed + 1
    if (until - at + this.#pending.length > MAX_LINE)
      throw new MalformedResponse('a line between chunks is too long')
    const text = this.#pending + bytes.toString('latin1', at, until)
    if (!text.endsWith('\n')) {
      this.#pending = text
      return until
    }
    this.#pending = ''
    if (!text.endsWith('\r\n')) throw new MalformedResponse('a line ends without carriage return')
    this.#takeLine(text.slice(0, -2))
    return until
  }

  #takeLine(line: string): void {
    if (this.#state === 'size') this.#beginChunk(line)
    else if (this.#state === 'trailer') this.#takeTrailer(line)
    else if (line === '') this.#state = 'size'
    else throw new MalformedResponse('a chunk is longer than its size')
  }

  #beginChunk(line: string): void {
    const [, size] = CHUNK_SIZE.exec(line) ?? []
    if (size === undefined) throw new MalformedResponse('a chunk size or its extension is malformed')
    this.#remaining = Number.parseInt(size, 16)
    this.#state = this.#remaining === 0 ? 'trailer' : 'chunk'
  }

  #takeTrailer(line: string): void {
    if (line === '') {
      this.#state = 'ended'
      return
    }
    this.#trailers += line.length
    if (this.#trailers > MAX_HEAD) throw new MalformedResponse('the trailers are too large')
    const colon = line.indexOf(':')
    const name = line.slice(0, colon)
    if (colon < 0 || !isToken(name) || !isHeaderValue(line.slice(colon + 1)))
      throw new MalformedResponse('a trailer line is malformed')
    if (NO_TRAILER.has(name.toLowerCase()))
      throw new MalformedResponse('a trailer that frames or routes the message')
  }
}
