/** The head of an HTTP/1.1 response, read without leniences: what two recipients could read differently is an error. */

export type ResponseHeaders = Record<string, string | string[] | undefined>

/** How the body ends (RFC 9112 §6.3): after so many bytes, with the last chunk, or with the connection. */
export type BodyFraming = number | 'chunked' | 'close'

export interface ResponseHead {
  readonly status: number
  /** By lower-case name. Lines of one name are joined by commas; those of Set-Cookie stand apart. */
  readonly headers: ResponseHeaders
  readonly framing: BodyFraming
  /** Whether the connection may be used again when the body has ended (RFC 9112 §9.3): never where there is none by rule. */
  readonly persistent: boolean
}

const STATUS_LINE = /^HTTP\/1\.[01] [0-9]{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/

const STATUS_AT = 'HTTP/1.1 '.length

/**
 * @param text latin-1, up to and with the line end before the empty line
 * @param requested the method of the request: HEAD has answers without a body whatever they declare
 * @param recent of the connection that it came over
 * @throws MalformedResponse
 */
export function parseResponseHead(
  text: string,
  requested: string,
  recent: RecentLines = FORGETFUL,
): ResponseHead {
  if (!STATUS_LINE.test(text)) throw new MalformedResponse('the head is no head of HTTP/1.1')
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
  if (status < 100) throw new MalformedResponse('the status is below 100')
  const headers: ResponseHeaders = {}
  recent.read(text, text.indexOf('\n') + 1, (name, value) => add(headers, name, value))
  const isHttp10 = text[STATUS_AT - 2] === '0'
  const framing = framingOf(headers, isHttp10)
  if (hasBody(status, requested))
    return { status, headers, framing, persistent: isPersistent(headers, isHttp10) }
  // A faulty upstream sends a body all the same, often later, and the next call would read it as its answer (T2.8).
  return { status, headers, framing: 0, persistent: false }
}

/** Lines that may stand only once, because who reads the other one reads another message. */
const SINGLE: ReadonlySet<string> = new Set(['content-length', 'content-type', 'transfer-encoding'])

/** Of these, which are no lists, the first line counts, as node has it: two joined would be a value that nobody sent. */
const FIRST: ReadonlySet<string> = new Set([
  'age',
  'content-disposition',
  'content-location',
  'content-range',
  'date',
  'etag',
  'expires',
  'last-modified',
  'location',
  'retry-after',
  'server',
])

/** Names that every object has something under. Nobody means them, and they are left out. */
const INHERITED: ReadonlySet<string> = new Set(['__proto__', 'constructor'])

function add(headers: ResponseHeaders, name: string, value: string): void {
  const known = headers[name]
  if (known === undefined) headers[name] = name === 'set-cookie' ? [value] : value
  else if (FIRST.has(name) || INHERITED.has(name)) return
  else if (SINGLE.has(name)) throw new MalformedResponse(`two lines of ${name}`)
  else if (Array.isArray(known)) known.push(value)
  else headers[name] = `${known}, ${value}`
}

/** RFC 9110 §6.4.1. */
const hasBody = (status: number, requested: string): boolean =>
  status >= 200 && status !== 204 && status !== 304 && requested !== 'HEAD'

/** Digits that a number holds exactly. */
const LENGTH = /^[0-9]{1,15}$/

function framingOf(headers: ResponseHeaders, isHttp10: boolean): BodyFraming {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding !== undefined) {
    // RFC 9112 §6.1: beside a length, or in HTTP/1.0, it is framing that somebody got wrong.
    if (length !== undefined || isHttp10)
      throw new MalformedResponse('chunks beside a length, or in HTTP/1.0')
    if (String(coding).toLowerCase() !== 'chunked') throw new MalformedResponse('an unknown transfer coding')
    return 'chunked'
  }
  if (length === undefined) return 'close'
  if (typeof length !== 'string' || !LENGTH.test(length)) throw new MalformedResponse('a length that is none')
  return Number(length)
}

function isPersistent({ connection }: ResponseHeaders, isHttp10: boolean): boolean {
  if (connection === undefined) return !isHttp10
  if (connection === 'keep-alive') return true
  const options = String(connection)
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
  return !options.includes('close') && (!isHttp10 || options.includes('keep-alive'))
}

/**
 * Milliseconds that a connection may be kept after an answer, `most` at most. `Keep-Alive: timeout=5` says when it will
 * be closed over there: a call that is just then sent would fail.
 */
export function keepAfter({ headers }: ResponseHead, most: number): number {
  const hint = headers['keep-alive']
  if (hint === undefined) return most
  const [, seconds] = /(?:^|[\s,])timeout=([0-9]{1,6})/.exec(String(hint)) ?? []
  return seconds === undefined ? most : Math.min(most, (Number(seconds) - 1) * 1000)
}

const REQUEST_TIMEOUT = /^HTTP\/1\.[01] 408 /
const LONGEST_START = 'HTTP/1.1 408 '.length

/** A server that gives a silent connection up may say so unasked (RFC 9110 §15.5.9): then nothing went astray. */
export const isGivingUp = (bytes: Uint8Array, end: number): boolean =>
  REQUEST_TIMEOUT.test(Buffer.from(bytes.subarray(0, Math.min(end, LONGEST_START))).toString('latin1'))

/** Thrown for bytes that are no response. The message says what was wrong with them, and holds none of them. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse'
}

interface Line {
  /** With its end. */
  readonly text: string
  /** In lower case. */
  readonly name: string
  readonly value: string
  /** How often another one came in its place. */
  misses: number
}

/**
 * A header line. The name is a token with a colon right behind it, so that a folded line is none; the value holds no
 * control characters; it ends with CR LF.
 */
const LINE = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n/y

/** More, or longer ones, are read anew each time: what is kept of a connection is bounded. */
const MOST_KEPT = 32
const LONGEST_KEPT = 256
/** A line that is another one in every head is not worth remembering: it is looked at again after so many. */
const MISSES = 16

/**
 * Reads header lines, and remembers those of the heads that came the same way before: from one answer of an upstream to
 * the next most lines are the same, in the same order, and what is the same to the last byte was found to be good.
 */
export class RecentLines {
  readonly #lines: Line[] = []
  readonly #most: number

  /** @param most lines that are remembered */
  constructor(most = MOST_KEPT) {
    this.#most = most
  }

  /**
   * @param text latin-1, up to and with the end of the last line
   * @param from where the first line begins
   * @param found told each, with its name in lower case
   * @throws MalformedResponse
   */
  read(text: string, from: number, found: (name: string, value: string) => void): void {
    let at = from
    for (let index = 0; at < text.length; index += 1) {
      const known = this.#lines[index]
      // A slice copies nothing, and is compared ten times as fast as by `startsWith`.
      if (known !== undefined && text.slice(at, at + known.text.length) === known.text) {
        found(known.name, known.value)
        at += known.text.length
      } else {
        const end = endOfLine(text, at)
        const colon = text.indexOf(':', at)
        found(lowerCase(text.slice(at, colon)), trimmed(text, colon + 1, end - 2))
        this.#remember(index, known, text, at, end)
        at = end
      }
    }
  }

  #remember(index: number, known: Line | undefined, text: string, at: number, end: number): void {
    if (index >= this.#most || end - at > LONGEST_KEPT) return
    if (known !== undefined && (known.misses += 1) < MISSES) return
    // A slice would keep the whole text alive that it is of.
    const own = Buffer.from(text.slice(at, end), 'latin1').toString('latin1')
    const colon = own.indexOf(':')
    const name = asKey(lowerCase(own.slice(0, colon)))
    this.#lines[index] = { text: own, name, value: trimmed(own, colon + 1, own.length - 2), misses: 0 }
  }
}

function endOfLine(text: string, at: number): number {
  LINE.lastIndex = at
  if (!LINE.test(text)) throw new MalformedResponse('the head is no head of HTTP/1.1')
  return LINE.lastIndex
}

/** The same text, as the engine keeps names of properties: one that it has just made is looked up at every use. */
const asKey = (text: string): string => Object.keys({ [text]: true })[0] ?? text

/** Names as they are usually spelled. Whatever else an upstream sends is turned to lower case each time. */
const SPELLED: ReadonlyMap<string, string> = new Map(
  [
    'Accept-Ranges',
    'Access-Control-Allow-Origin',
    'Age',
    'Cache-Control',
    'Connection',
    'Content-Disposition',
    'Content-Encoding',
    'Content-Language',
    'Content-Length',
    'Content-Range',
    'Content-Security-Policy',
    'Content-Type',
    'Date',
    'ETag',
    'Etag',
    'Expires',
    'Keep-Alive',
    'Last-Modified',
    'Link',
    'Location',
    'Pragma',
    'Retry-After',
    'Server',
    'Set-Cookie',
    'Strict-Transport-Security',
    'Transfer-Encoding',
    'Vary',
    'Via',
    'WWW-Authenticate',
    'X-Content-Type-Options',
    'X-Frame-Options',
    'X-Powered-By',
    'X-Request-Id',
    'X-XSS-Protection',
  ].map((name) => [name, asKey(name.toLowerCase())]),
)

const lowerCase = (name: string): string => SPELLED.get(name) ?? name.toLowerCase()

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

function trimmed(text: string, from: number, to: number): string {
  let [start, end] = [from, to]
  while (start < end && isBlank(text.charCodeAt(start))) start += 1
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

const FORGETFUL = new RecentLines(0)
