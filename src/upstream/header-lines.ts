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
