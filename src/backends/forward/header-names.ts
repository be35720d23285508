/**
 * Which header names are whose. Names are compared folded: lower case, and `-` for whatever is no letter or digit,
 * since upstreams that hand names on as variables read them all as one (T2.2): WSGI and PHP do so with `_`, CGI as
 * lighttpd and older Apaches speak it with every mark (`x.postern.subject`).
 */
export const foldName = (name: string): string => {
  const lower = name.toLowerCase()
  return PLAIN.test(lower) ? lower : lower.replaceAll(/[^a-z0-9]/g, '-')
}

const PLAIN = /^[a-z0-9-]*$/

/** RFC 9110 §7.6.1 and what RFC 2616 §13.5.1 had: of one connection only, in both directions (C8.3). */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'proxy',
])

/** The names in a Connection header's value, folded (RFC 9110 §7.6.1). Most messages name none but keep-alive. */
export function connectionNames(value: string | readonly string[] | undefined): ReadonlySet<string> {
  if (value === undefined) return NONE
  const text = typeof value === 'string' ? value : value.join(',')
  if (/^(?:keep-alive|close)$/i.test(text)) return NONE
  return new Set(text.split(',').map((name) => foldName(name.trim())))
}

const NONE: ReadonlySet<string> = new Set()
