/** The authorities under which this service is known: those of `auth_url` and `base_url`, and nothing else. */
export interface Authorities {
  /** `host` or `host:port`, lower case, without a scheme's default port. */
  readonly known: ReadonlySet<string>
  /** Canonical path prefixes below which one trailing slash is allowed (C3.4): `/connect/`, after the URL's own path. */
  readonly slashAllowedBelow: readonly string[]
}

/**
 * Compiles the configured URLs once, at load.
 * @param urls absolute http or https URLs, with or without a path
 * @throws TypeError if one is no URL
 */
export function compileAuthorities(urls: readonly string[]): Authorities {
  const parsed = urls.map((url) => new URL(url))
  return Object.freeze({
    known: new Set(parsed.map((url) => canonicalAuthority(url.protocol, url.host))),
    slashAllowedBelow: [...new Set(parsed.map((url) => `${url.pathname.replace(/\/$/, '')}/connect/`))],
  })
}

const DEFAULT_PORT: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/**
 * One spelling per authority. Decisions (RFC 9110 §4.2.3, RFC 3986 §6.2):
 * - the host is compared without regard to case, and one trailing dot is dropped: DNS knows no difference;
 * - an empty port and the port that is the default of the target's own scheme count as none;
 * - the scheme itself is not compared, since TLS may end in front of us and C3.6 speaks of the authority only;
 * - nothing else is folded: user information, escapes, leading zeros and other spellings of an IP address
 *   stay as they are and so match nothing; nor does what holds a second port.
 */
function canonicalAuthority(scheme: string, authority: string): string {
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]*))?$/.exec(authority.toLowerCase()) ?? []
  const name = host.endsWith('.') ? host.slice(0, -1) : host
  return port === '' || port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`
}

/** Whether an absolute-form target's scheme (`http:`, lower case) and authority are those of this service (C3.6). */
export const isOwnAuthority = (authorities: Authorities, scheme: string, authority: string): boolean =>
  authorities.known.has(canonicalAuthority(scheme, authority))
