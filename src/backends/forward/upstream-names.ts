import type { UpstreamAddress } from '../../upstream/socket.ts'
import type { TellsAddress } from './error-text.ts'

/** A host name of one word may be a word of any message: then only its place tells that it is an address. */
const isWord = (host: string): boolean => /^[a-z0-9-]+$/i.test(host)

function patternsOf({ origin, socketPath }: UpstreamAddress): readonly string[] {
  if (socketPath !== undefined) return [RegExp.escape(socketPath)]
  const { hostname, port } = new URL(origin)
  return patternsOfHost(hostname, port)
}

function patternsOfHost(host: string, port: string): readonly string[] {
  const name = RegExp.escape(host.replace(/^\[|\]$/g, ''))
  if (!isWord(host)) return [`(?<![\\w-])${name}(?![\\w-])`]
  return [`//(?:[^/@\\s]*@)?${name}(?![\\w-])`, `(?<![\\w.-])${name}:${port === '' ? '\\d' : port}`]
}

/**
 * Tells whether a text holds an address of an upstream: a host name or IP address with a dot or colon in it, a one-word
 * name in a URL or before a port, the path of a socket; in any case of letters.
 * @param host the configured Host header
 */
export function compileTellsAddress(
  targets: readonly UpstreamAddress[],
  host: string | undefined,
): TellsAddress {
  const own = host === undefined ? [] : patternsOfHost(host.replace(/:\d+$/, ''), '')
  const patterns = new Set([...targets.flatMap(patternsOf), ...own])
  const expression = new RegExp([...patterns].join('|'), 'i')
  return (text) => expression.test(text)
}
