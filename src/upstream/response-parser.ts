import { MalformedResponse, parseResponseHead, type RecentLines, type ResponseHead } from './response-head.ts'

/** Who is told what a response holds, in its order. */
export interface ResponseSink {
  onHead(head: ResponseHead): void
  /**
   * A piece of the body, one at most for what was received at once: `bytes` from `start` up to `end`, the sender's own, to
   * be copied by who keeps them.
   */
  onBody(bytes: Buffer, start: number, end: number): void
  /** The last thing that is told. */
  onEnd(): void
}

/** Bytes of a head, or of the lines around chunks: more is an attack or a defect. */
const MOST_HEAD = 16 * 1024
const MOST_LINE = 4 * 1024

const SWITCHING_PROTOCOLS = 101

type State = 'head' | 'length' | 'close' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'ended'

/** A chunk's size, and extensions, which mean nothing to us (RFC 9112 §7.1.1). */
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/
const TRAILER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/
const START = 'HTTP/1.'

/**
 * Reads the one response that a request gets, from pieces as they arrive. Chunks are taken apart, trailers checked and
 * dropped, and so is any 1xx that comes before. Throws MalformedResponse for bytes that are none (RFC 9112, without its
 * leniences), and for a 101: nobody asked for it.
 */
export class ResponseParser {
  readonly #sink: ResponseSink
  readonly #requested: string
  readonly #recent: RecentLines | undefined
  #state: State = 'head'
  /** Of a head or line that has not ended yet. */
  #pending = ''
  /** Bytes until the body, or this chunk, ends. */
  #remaining = 0
  /** Where the body stands that the bytes at hand brought. Chunks are moved together: thousands of small ones are one piece. */
  #bodyStart = 0
  #bodyEnd = 0
  #trailers = 0
  #persistent = false
  /** Whether a 1xx came. Nothing asked for one: who sends it may well send more that was not asked for (T2.8). */
  #interim = false
  #progressed = false

  /**
   * @param requested the method of the request
   * @param recent of the connection; absent remembers nothing
   */
  constructor(sink: ResponseSink, requested: string, recent?: RecentLines) {
    this.#sink = sink
    this.#requested = requested
    this.#recent = recent
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Whether the connection could serve another request: so far as the response tells. */
  get persistent(): boolean {
    return this.#persistent
  }

  /**
   * Whether what was received last brought the response on: the end of its head, or bytes of its body. The lines around
   * chunks do not count, since an upstream could send them for ever, a byte at a time.
   */
  get progressed(): boolean {
    return this.#progressed
  }

  /**
   * Takes what has arrived, and may overwrite it. Answers where in it the response ended, or `end`: what lies behind is no
   * part of it.
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

  /** Whether only the end of the connection ends the body. */
  get closeDelimited(): boolean {
    return this.#state === 'close'
  }

  /** The connection has ended. Answers whether the response is whole. */
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
    const held = this.#pending.length
    const text = this.#pending + bytes.toString('latin1', at, Math.min(end, at + MOST_HEAD + 4 - held))
    const blank = text.indexOf('\r\n\r\n', Math.max(0, held - 3))
    if (blank < 0) {
      if (!START.startsWith(text.slice(0, START.length)))
        throw new MalformedResponse('it does not begin as HTTP/1')
      if (text.length >= MOST_HEAD + 4) throw new MalformedResponse('the head is too large')
      this.#pending = text
      return end
    }
    this.#pending = ''
    this.#takeHead(parseResponseHead(text.slice(0, blank + 2), this.#requested, this.#recent))
    return at + blank + 4 - held
  }

  #takeHead(head: ResponseHead): void {
    if (head.status === SWITCHING_PROTOCOLS) throw new MalformedResponse('it switches protocols unasked')
    if (head.status < 200) {
      this.#interim = true
      return
    }
    const { framing } = head
    this.#progressed = true
    this.#persistent = head.persistent && framing !== 'close' && !this.#interim
    this.#state = framing === 'chunked' ? 'size' : framing === 'close' ? 'close' : 'length'
    if (typeof framing === 'number') this.#remaining = framing
    this.#sink.onHead(head)
    if (framing === 0) this.#state = 'ended'
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

  /** The lines around chunks. */
  #readLine(bytes: Buffer, at: number, end: number): number {
    const feed = bytes.indexOf(0x0a, at)
    const until = feed < 0 || feed >= end ? end : feed + 1
    if (until - at + this.#pending.length > MOST_LINE)
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
    if (size === undefined) throw new MalformedResponse('a chunk without size')
    this.#remaining = Number.parseInt(size, 16)
    this.#state = this.#remaining === 0 ? 'trailer' : 'chunk'
  }

  #takeTrailer(line: string): void {
    if (line === '') {
      this.#state = 'ended'
      return
    }
    this.#trailers += line.length
    if (!TRAILER.test(line) || this.#trailers > MOST_HEAD)
      throw new MalformedResponse('a trailer that is none')
  }
}
