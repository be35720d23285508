import type { IncomingHttpHeaders } from 'node:http'
import { connectionNames, HOP_BY_HOP } from '../../http/end-to-end-headers.ts'

/**
 * What of an upstream's headers reaches the client (C8.3). An allow-list: a banner, an address or a cookie must not
 * slip through under a name that nobody thought of. More names by the backend's `responseHeaders`.
 */
const PASSED: ReadonlySet<string> = new Set([
  'etag',
  'last-modified',
  'content-disposition',
  'content-language',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'preference-applied',
  'deprecation',
  'sunset',
])

/** These describe the connection or the body, or are Postern's to set, whatever the configuration says. */
const NEVER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'content-type',
  'x-request-id',
  'date',
])

export type ResponseHeaders = Record<string, string | readonly string[]>

/** Compiles the names that pass: the defaults and a backend's own (lower or mixed case). */
export const passedNames = (more: readonly string[]): ReadonlySet<string> =>
  new Set([...PASSED, ...more.map((name) => name.toLowerCase()).filter((name) => !NEVER.has(name))])

export const isForbiddenResponseHeader = (name: string): boolean => NEVER.has(name.toLowerCase())

/** The upstream's headers that may reach the client, by lower-case name. What its Connection names is dropped too. */
export function cleanResponseHeaders(
  headers: IncomingHttpHeaders,
  passed: ReadonlySet<string>,
): ResponseHeaders {
  const named = connectionNames(headers.connection)
  const clean: ResponseHeaders = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && passed.has(name) && !named.has(name)) clean[name] = value
  }
  return clean
}
