import { Buffer } from 'node:buffer'

/** Thrown for bytes that are no response. The message says what is wrong with them and repeats none of them. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse'
}

type ResponseHeaders = Record<string, string | string[] | undefined>

/** How the body ends (RFC 9112 §6.3): after so many bytes, with the last chunk, or with the connection. */
type BodyFraming = number | 'chunked' | 'close'

export interface ResponseHead {
  readonly status: number
  /** By lower-case name. Lines of one name are joined by commas; those of Set-Cookie are a list. */
  readonly headers: ResponseHeaders
  readonly framing: BodyFraming
  /**
   * Whether the connection may carry another request after this response (RFC 9112 §9.3); of a 1xx, whether the final
   * response may follow. False for a final response that has no body by rule: a faulty upstream may send one nevertheless,
   * and the next call would read it as its answer (T2.8).
   */
  readonly persistent: boolean
}

const STATUS_LINE = /^HTTP\/1\.[01] [0-9]{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
const STATUS_AT = 'HTTP/1.1 '.length

/**
 * Reads the head of a response without leniency: what two recipients could read differently is refused.
 * @param text latin-1, up to and with the line end before the empty line
 * @param requested the method of the request: an answer to HEAD has no body whatever it declares
 * @param cache of the connection over which the response came
 * @throws MalformedResponse
 */
export function parseResponseHead(
  text: string,
  requested: string,
  cache: HeaderLineCache = new HeaderLineCache(),
): ResponseHead {
  if (!STATUS_LINE.test(text)) throw new MalformedResponse('the status line is not one of HTTP/1.1')
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
  if (status < 100) throw new MalformedResponse('the status is below 100')
  const headers: ResponseHeaders = {}
  cache.read(text, text.indexOf('\n') + 1, (name, value) => add(headers, name, value))
  const isHttp10 = text[STATUS_AT - 2] === '0'
  const framing = framingOf(headers, isHttp10)
  if (hasBody(status, requested))
    return { status, headers, framing, persistent: isPersistent(headers, isHttp10) }
  return { status, headers, framing: 0, persistent: status < 200 && isPersistent(headers, isHttp10) }
}

interface HeaderLine {
  /** The line with its end. */
  readonly text: string
  /** The name in lower case. */
  readonly name: string
  readonly value: string
}

/**
 * The name is a token directly followed by the colon, so a folded line does not match. The value holds no control
 * character but tab. The line ends with CR LF.
 */
const HEADER_LINE = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n/y

/** An upstream that sends more lines than this gets only these cached: the memory of a connection is bounded. */
const MAX_CACHED_LINES = 32

/** Lines that differ are cached anew with every so many responses: `Date` has another value every second. */
const RENEWAL = 64

/**
 * Reads header lines and keeps some by their place. In the next responses of a connection most lines are the same at the
 * same place, and are not checked again. This saves 3 % of the CPU time of a forwarded GET.
 */
export class HeaderLineCache {
  readonly #lines: HeaderLine[] = []
  #reads = 0

  /**
   * @param text latin-1, up to and with the end of the last line
   * @param from where the first line begins
   * @param found called for each line, with its name in lower case
   * @throws MalformedResponse
   */
  read(text: string, from: number, found: (name: string, value: string) => void): void {
    const renews = this.#reads % RENEWAL === 0
    this.#reads += 1
    let at = from
    for (let index = 0; at < text.length; index += 1) {
      const line = this.#lines[index]
      // Comparing a slice is ten times as fast as `startsWith`.
      if (line !== undefined && text.slice(at, at + line.text.length) === line.text) {
        found(line.name, line.value)
        at += line.text.length
      } else {
        const end = endOfLine(text, at)
        const { name, value } = parseLine(text.slice(at, end))
        found(name, value)
        if (renews && index < MAX_CACHED_LINES) this.#lines[index] = parseLine(copyOf(text.slice(at, end)))
        at = end
      }
    }
  }
}

/** A slice would keep the whole text of which it is a part in memory. */
const copyOf = (slice: string): string => Buffer.from(slice, 'latin1').toString('latin1')

/** @throws MalformedResponse */
function endOfLine(text: string, at: number): number {
  HEADER_LINE.lastIndex = at
  if (!HEADER_LINE.test(text)) throw new MalformedResponse('a header line is malformed')
  return HEADER_LINE.lastIndex
}

const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

/** @throws MalformedResponse */
function parseLine(text: string): HeaderLine {
  const colon = text.indexOf(':')
  const name = text.slice(0, colon).toLowerCase()
  // RFC 9110 §5.6.3 allows tabs around a value, but parsers differ on them.
  if (FRAMING.has(name) && text.includes('\t')) throw new MalformedResponse('a tab in a framing line')
  return { text, name, value: trimmed(text, colon + 1, text.length - 2) }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

function trimmed(text: string, from: number, to: number): string {
  let [start, end] = [from, to]
  while (start < end && isBlank(text.charCodeAt(start))) start += 1
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

/** Two lines of these names are refused: recipients differ in which one they take. */
const SINGLE: ReadonlySet<string> = new Set(['content-length', 'content-type', 'transfer-encoding'])

/**
 * The first of several lines of these names counts, as in node: they are no lists, so joined lines would be a value nobody
 * sent.
 */
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

/** Properties that every object inherits. Headers of these names are left out. */
const INHERITED: ReadonlySet<string> = new Set(['__proto__', 'constructor'])

function add(headers: ResponseHeaders, name: string, value: string): void {
  const earlier = headers[name]
  if (earlier === undefined) headers[name] = name === 'set-cookie' ? [value] : value
  else if (FIRST.has(name) || INHERITED.has(name)) return
  else if (SINGLE.has(name)) throw new MalformedResponse(`two lines of ${name}`)
  else if (Array.isArray(earlier)) earlier.push(value)
  else headers[name] = `${earlier}, ${value}`
}

/** Whether a response has a body (RFC 9110 §6.4.1). */
const hasBody = (status: number, requested: string): boolean =>
  status >= 200 && status !== 204 && status !== 304 && requested !== 'HEAD'

/** As many digits as a number holds exactly. */
const LENGTH = /^[0-9]{1,15}$/

function framingOf(headers: ResponseHeaders, isHttp10: boolean): BodyFraming {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding !== undefined) {
    // RFC 9112 §6.1: a length next to a coding, or a coding in HTTP/1.0, is faulty framing.
    if (length !== undefined || isHttp10)
      throw new MalformedResponse('chunks beside a length, or in HTTP/1.0')
    if (String(coding).toLowerCase() !== 'chunked') throw new MalformedResponse('an unknown transfer coding')
    return 'chunked'
  }
  if (length === undefined) return 'close'
  if (typeof length !== 'string' || !LENGTH.test(length))
    throw new MalformedResponse('the length is no number')
  return Number(length)
}

function isPersistent(headers: ResponseHeaders, isHttp10: boolean): boolean {
  // The second is no standard, but recipients obey it.
  const { connection, 'proxy-connection': proxyConnection } = headers
  if (proxyConnection === undefined) {
    if (connection === undefined) return !isHttp10
    if (connection === 'keep-alive') return true
  }
  const options = `${String(connection)},${String(proxyConnection)}`
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
  return !options.includes('close') && (!isHttp10 || options.includes('keep-alive'))
}

/**
 * How long a connection may be kept after a response, in milliseconds: `most`, or less where `Keep-Alive: timeout=5` says
 * that the upstream closes it sooner. A request that is sent while the upstream closes would fail.
 */
export function keepAfter({ headers }: ResponseHead, most: number): number {
  const hint = headers['keep-alive']
  if (hint === undefined) return most
  const [, seconds] = /(?:^|[\s,])timeout=([0-9]{1,6})/.exec(String(hint)) ?? []
  return seconds === undefined ? most : Math.min(most, (Number(seconds) - 1) * 1000)
}

const REQUEST_TIMEOUT = /^HTTP\/1\.[01] 408 /
const REQUEST_TIMEOUT_LENGTH = 'HTTP/1.1 408 '.length

/** Whether bytes begin a 408, which a server may send unasked before it closes a silent connection (RFC 9110 §15.5.9). */
export const isRequestTimeout = (bytes: Uint8Array, end: number): boolean =>
  REQUEST_TIMEOUT.test(
    Buffer.from(bytes.subarray(0, Math.min(end, REQUEST_TIMEOUT_LENGTH))).toString('latin1'),
  )
