import { Fault } from '../../kernel/faults.ts'

declare const CHECKED: unique symbol

/**
 * Header lines for an upstream, each with its line end, that were looked at: no name or value in them ends its line
 * early, none frames the message or says Host. Only `headerLine` makes them, so that nothing else can be sent (T2.4,
 * T2.7); text that is the same for many calls is made once.
 */
export type HeaderText = string & { readonly [CHECKED]: true }

export const NO_HEADERS = '' as HeaderText

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** A token as a pattern of JSON Schema. */
export const TOKEN_PATTERN = TOKEN.source

/** Whether a text is a token (RFC 9110 §5.6.2). Header names, methods and schemes of credentials are tokens. */
export const isToken = (text: string): boolean => TOKEN.test(text)

/** Whether a text can be a header's value (RFC 9110 §5.5): no control characters, so that no value ends its line. */
export const isHeaderValue = (text: string): boolean => VALUE.test(text)

const LOWER_CASE = /^[^A-Z]+$/

/** Made where the message is, of what is sent, and nowhere else. */
const FRAMING: ReadonlySet<string> = new Set(['host', 'connection', 'content-length', 'transfer-encoding'])

/** Names that were found to be good: the same few in call after call, and no more than this many, nor longer ones. */
const known = new Set<string>()
const MOST_KNOWN = 1000
const LONGEST_KNOWN = 64

function isName(name: string): boolean {
  if (known.has(name)) return true
  if (!isToken(name) || !LOWER_CASE.test(name) || FRAMING.has(name)) return false
  if (known.size < MOST_KNOWN && name.length <= LONGEST_KNOWN) known.add(name)
  return true
}

export const cannotBeSent = (what: string): Fault =>
  new Fault('internal', { detail: `${what} that cannot be sent` })

/** @param name in lower case. Throws Fault `internal` */
export function headerLine(name: string, value: string): HeaderText {
  if (!isName(name)) throw cannotBeSent('a header name')
  return `${name}: ${checkedValue(value)}\r\n` as HeaderText
}

export function checkedValue(value: string): string {
  if (!isHeaderValue(value)) throw cannotBeSent('a header value')
  return value
}

export const followedBy = (text: HeaderText, more: HeaderText): HeaderText => (text + more) as HeaderText

/** The lines as names and values, for who sends them by other means. */
export const headersOf = (text: HeaderText): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\r\n')
      .slice(0, -1)
      .map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon), line.slice(colon + 2)]
      }),
  )
