/** The name of the only cookie that Postern sets (C6.2.3), without the prefixes and the port that it may have. */
export const SESSION_COOKIE = 'postern-session'

/** `__Host-` and `__Secure-` (RFC 6265bis §4.1.3), which browsers compare without regard to case. */
const PREFIX = /^__(?:host|secure)-/

/**
 * Whether a Set-Cookie value sets a cookie that may be taken for Postern's own: with any prefix and port, in any case. A
 * cookie without a name is sent as its value alone, so that this can say `postern-session=…` too.
 */
export function setsOwnCookie(value: string): boolean {
  const [pair = ''] = value.split(';', 1)
  const name = pair
    .trim()
    .replace(/^[=\s]+/, '')
    .toLowerCase()
    .replace(PREFIX, '')
  return name.startsWith(SESSION_COOKIE)
}

type Headers = Readonly<Record<string, string | readonly string[]>>

/**
 * The headers of an answer without the cookies that only Postern sets (C8.3).
 * @param headers by lower-case name
 * @param dropped called if there were any
 */
export function withoutOwnCookies(headers: Headers, dropped: () => void): Headers {
  if (headers['set-cookie'] === undefined) return headers
  const { 'set-cookie': given, ...others } = headers
  const cookies = [given].flat()
  const kept = cookies.filter((cookie) => !setsOwnCookie(cookie))
  if (kept.length === cookies.length) return headers
  dropped()
  return kept.length === 0 ? others : { ...others, 'set-cookie': kept }
}
