const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])
/** RFC 8252 §7.1: an app's own scheme is a reversed domain name, so it has a dot. */
const OWN_SCHEME = /^[a-z][a-z0-9+-]*\.[a-z0-9.+-]+:$/
// Parsers treat these characters differently, so such an address can't be compared safely (T6).
const AMBIGUOUS = /[\\\s#*\p{Cc}]/u

function schemeTrouble(url: URL, isPublic: boolean): string | undefined {
  if (url.protocol === 'https:') return undefined
  if (url.protocol === 'http:')
    return LOOPBACK.has(url.hostname)
      ? undefined
      : 'is http to another machine: a code would cross the network unencrypted'
  return isPublic && OWN_SCHEME.test(url.protocol) ? undefined : 'expected https, or http on loopback'
}

/**
 * Why an address can't be a redirect URI (RFC 6749 §3.1.2, RFC 9700 §2.1); undefined if it can. It must be absolute
 * and have no fragment. It must use https, or http on loopback, or, for a public client, an app's own scheme.
 */
export function redirectTrouble(uri: string, isPublic: boolean): string | undefined {
  if (AMBIGUOUS.test(uri)) return 'contains a fragment, a wildcard, white space or a backslash'
  const url = URL.parse(uri)
  if (url === null) return 'expected an absolute URI, such as "https://app.example.com/callback"'
  if (url.username !== '' || url.password !== '') return 'contains credentials'
  return schemeTrouble(url, isPublic)
}
