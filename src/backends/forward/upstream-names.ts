import type { UpstreamAddress } from '../../upstream/socket.ts'
import type { TellsAddress } from './error-text.ts'

/** A host name of one word may be a word of any message: then only its place tells that it is an address. */
const isWord = (host: string): boolean => /^[a-z0-9-]+$/i.test(host)

function patternsOf({ origin, socketPath }: UpstreamAddress): readonly string[] {
  return socketPath === undefined ? patternsOfOrigin(origin) : [RegExp.escape(socketPath)]
}

function patternsOfOrigin(origin: string): readonly string[] {
  const { hostname, port } = new URL(origin)
  return patternsOfHost(hostname, port)
}

/** As written, or percent-encoded: a message may quote a query in which the address was a value. */
const SLASHES = '(?://|%2F%2F)'
const COLON = '(?::|%3A)'
/** The last letter of `%2F` is no part of the name behind it. */
const START = '(?:(?<![\\w-])|(?<=%[0-9A-F]{2}))'

function patternsOfHost(host: string, port: string): readonly string[] {
  const name = RegExp.escape(host.replace(/^\[|\]$/g, ''))
  if (!isWord(host)) return [`${START}${name}(?![\\w-])`]
  return [
    `${SLASHES}(?:[^/@\\s]*@)?${name}(?![\\w-])`,
    `(?<![\\w.-])${name}${COLON}${port === '' ? '\\d' : port}`,
  ]
}

/**
 * Tells whether a text holds an address of an upstream: a host name or IP address with a dot or colon in it, a one-word
 * name in a URL or before a port, the path of a socket; in any case of letters.
 * @param host the configured Host header
 * @param origins those that redirects may lead to
 */
export function compileTellsAddress(
  targets: readonly UpstreamAddress[],
  host: string | undefined,
  origins: Iterable<string> = [],
): TellsAddress {
  const own = host === undefined ? [] : patternsOfHost(host.replace(/:\d+$/, ''), '')
  const patterns = new Set([
    ...targets.flatMap(patternsOf),
    ...own,
    ...[...origins].flatMap(patternsOfOrigin),
  ])
  const expression = new RegExp([...patterns].join('|'), 'i')
  return (text) => expression.test(text)
}
