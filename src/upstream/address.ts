/** Where an upstream is listening. */
export interface UpstreamAddress {
  /** As it was configured: for the log. */
  readonly name: string
  /** Scheme, host and port; of a unix socket a stand-in. */
  readonly origin: string
  /** Put before the path of every request: empty, or with a leading and no trailing slash. */
  readonly basePath: string
  /** Path of a unix socket. */
  readonly socketPath: string | undefined
  /** What its Host header says unless configured otherwise. */
  readonly host: string
}

/** For the schema: an http or https URL, or `unix:` and an absolute path. */
export const UPSTREAM_PATTERN = '^(https?://[^\\s/@#?]+(/[^\\s#]*)?(\\?[^\\s#]*)?|unix:/[^\\s:]+)$'

/** What could be read in more than one way stands in no path that calls are sent to (T1.6). */
const AMBIGUOUS = /[\\;%]|\/\/|\/\.{1,2}(?:\/|$)/

/** Undefined if it is no address that calls can be sent to without a doubt: a query, escapes or dots in its path. */
export function parseUpstreamAddress(text: string): UpstreamAddress | undefined {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length)
    return { name: text, origin: 'http://localhost', basePath: '', socketPath, host: 'localhost' }
  }
  const url = URL.parse(text)
  const path = /^https?:\/\/[^/?#]*([^?#]*)/.exec(text)?.[1] ?? ''
  if (url === null || url.search !== '' || AMBIGUOUS.test(path)) return undefined
  const { origin, host } = url
  return {
    name: text,
    origin,
    host,
    socketPath: undefined,
    basePath: url.pathname.replace(/(?<!\/)\/+$/, ''),
  }
}
