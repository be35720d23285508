import { LRUCache } from 'lru-cache'
import type { Head } from './head.ts'

/**
 * A name as it is compared: in lower case, with `-` for whatever is no letter or digit. Upstreams that hand names on as
 * variables read all of these as one (T2.2): WSGI and PHP do so with `_`, CGI as lighttpd and older Apaches speak it
 * with every mark (`x.postern.subject`).
 */
export const foldName = (name: string): string => {
  const lower = name.toLowerCase()
  return PLAIN.test(lower) ? lower : lower.replaceAll(/[^a-z0-9]/g, '-')
}

const PLAIN = /^[a-z0-9-]*$/

/** A name as it is compared with names of other places (C8.7): of letters and digits alone. */
export const headerReading = (name: string): string => foldName(name).replaceAll('-', '')

/** In it an upstream reports to the audit trail what has changed (C12.2.2). It never passes, in either direction. */
export const AUDIT_HEADER = 'x-postern-audit'

/** Headers of one connection only, in both directions (RFC 9110 §7.6.1 and what RFC 2616 §13.5.1 had; C8.3). */
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

/** Headers of proofs of possession (RFC 9449): the proof of a request, and what an answer has for the next one. */
export const PROOF_HEADER = 'DPoP'
export const PROOF_NONCE_HEADER = 'DPoP-Nonce'

/**
 * Headers of a client that are never sent on, folded (C8.2, T2.2). Three reasons: Postern makes it itself, it belongs to the
 * client's connection with Postern, or upstreams take it for a trusted proxy's word about who calls or what is asked.
 */
const STOPPED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  // made by Postern
  'host',
  'accept',
  'authorization',
  // a proof is for the request that it came with: whoever has it may use it once more
  PROOF_HEADER.toLowerCase(),
  'forwarded',
  'traceparent',
  'x-request-id',
  'content-length',
  'content-type',
  'content-encoding',
  'expect',
  // Postern's own session cookies, and whatever else the browser holds for this host
  'cookie',
  'cookie2',
  // another method, path or host than the checked one
  'destination',
  'x-original-url',
  'x-original-uri',
  'x-original-host',
  'x-original-method',
  'x-rewrite-url',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-host',
  'x-accel-redirect',
  'x-sendfile',
  // who calls, from where, and over what
  'via',
  'client-ip',
  'true-client-ip',
  'proxy-client-ip',
  'http-client-ip',
  'fastly-client-ip',
  'fastly-ssl',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-originating-ip',
  'x-proxyuser-ip',
  'x-forwarded',
  'x-scheme',
  'x-url-scheme',
  'front-end-https',
  'client-cert',
  'client-cert-chain',
  'x-client-cert',
  'x-client-dn',
  'x-client-verify',
  'x-user',
  'x-username',
  'x-user-id',
  'x-user-name',
  'x-user-email',
  'x-user-groups',
  'x-user-roles',
  'x-userinfo',
  'x-id-token',
  'x-access-token',
  'x-anonymous-consumer',
  'x-apigateway-api-userinfo',
  'x-endpoint-api-userinfo',
])

/** Families of such names, folded, by whose word they are taken for. */
const STOPPED_FAMILIES = new RegExp(
  `^(?:${[
    // a representation's headers describe bytes that Postern may convert
    'content-(?!language$|disposition$)',
    // Postern, and proxies of every make
    'x-postern-',
    'x-forwarded-',
    'http-x-forwarded-',
    'x-original-',
    'x-rewrite-',
    'x-envoy-',
    'x-custom-ip-',
    'wl-proxy-', // WebLogic
    'x-arr-', // IIS
    // the certificate, from what ends TLS
    'ssl-',
    'x-ssl-',
    'x-tls-client-',
    'x-client-cert-',
    'x-amzn-mtls-',
    // clouds in front
    'cf-', // Cloudflare, Access too
    'x-azure-', // Front Door
    'x-ms-client-', // App Service
    'x-ms-token-',
    'x-goog-', // Identity-Aware Proxy
    'x-appengine-',
    'x-amzn-oidc-', // ALB
    'tailscale-',
    // gateways and sign-in proxies
    'x-auth-',
    'x-authenticated-',
    'x-consumer-', // Kong
    'x-credential-',
    'x-webauth-', // Grafana
    'x-authentik-',
    'x-pomerium-',
    'x-vouch-',
    'x-jwt-',
    'x-hasura-',
    'oidc-', // mod_auth_openidc
    'mellon-',
    'shib-',
    'x-remote-', // Kubernetes
    'remote-(?:user|groups?|name|email|addr)', // Authelia, CGI
    'impersonate-',
  ].join('|')})`,
)

const isStopped = (folded: string): boolean => STOPPED.has(folded) || STOPPED_FAMILIES.test(folded)

/** Whether a client's header of this name never reaches an upstream, whatever the configuration says. */
export const neverPasses = (name: string): boolean => isStopped(foldName(name))

/**
 * Headers that no configuration sets, folded: those that Postern sets, that frame the message, or that ask for a part or a
 * state of the data, which only the client can mean.
 */
const NOT_SETTABLE: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'accept',
  'accept-encoding',
  'authorization',
  'forwarded',
  'traceparent',
  'tracestate',
  'x-request-id',
  'content-length',
  'content-type',
  'content-encoding',
  'content-range',
  'expect',
  'range',
  'if-range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
])

/** `X-Forwarded-User` and the like say nothing of where a call came from, and services read them. */
const NOT_SETTABLE_FAMILIES =
  /^(?:x-postern-|sec-websocket-|x-forwarded-(?:for|by|host|port|proto|protocol|scheme|server|ssl)$)/

/** Whether a header is Postern's own: no configuration gives it another value. */
export function isMadeByPostern(name: string): boolean {
  const folded = foldName(name)
  return NOT_SETTABLE.has(folded) || NOT_SETTABLE_FAMILIES.test(folded)
}

/** By name as it came: most calls bring the same few. Longer names are matched each time. */
const decided = new LRUCache<string, boolean>({ max: 1000 })
const LONGEST_DECIDED = 64

function mayPass(name: string): boolean {
  const known = decided.get(name)
  if (known !== undefined) return known
  // `__proto__` would be no header of the object that they are gathered in.
  const passes = !neverPasses(name) && name !== '__proto__'
  if (name.length <= LONGEST_DECIDED) decided.set(name, passes)
  return passes
}

/** Headers that a backend's `requestHeaders` lets in, in lower case. Undefined if it has none: all that are not stopped pass. */
type AllowedHeaders = ReadonlySet<string> | undefined

/** Names that are left out, as `headerReading` makes them; undefined: none besides. */
type KeptOut = ReadonlySet<string> | undefined

/** Conditions of changes: one that is dropped makes a change that nobody asked for (RFC 9110 §13.1). */
export const CONDITIONS_OF_CHANGES = ['If-Match', 'If-None-Match', 'If-Unmodified-Since'] as const

/** The handshake's own (RFC 6455 §4.1): without them there is no websocket, so no list need name them. */
const HANDSHAKE: ReadonlySet<string> = new Set([
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
])

/**
 * The client's end-to-end headers that may be sent on, by lower-case name (C8.2, C8.3): others pass as RFC 9110 §5.1 wants
 * of unknown fields, unless there is a list. Names in Connection are removed first, so that it can never strip what Postern
 * adds later (T2.1).
 */
export function cleanRequestHeaders(
  { headers }: Pick<Head, 'headers'>,
  allowed?: AllowedHeaders,
  upgrades = false,
  keptOut?: KeptOut,
): Record<string, string> {
  const named = connectionNames(headers.connection)
  const clean: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || !mayPass(name)) continue
    if (named.size > 0 && named.has(foldName(name))) continue
    if (allowed !== undefined && !allowed.has(name) && !(upgrades && HANDSHAKE.has(name))) continue
    if (keptOut !== undefined && keptOut.has(headerReading(name))) continue
    clean[name] = typeof value === 'string' ? value : value.join(', ')
  }
  // A tagged list is of another resource than the one that was checked (RFC 4918 §10.4).
  if (clean['if']?.replaceAll(IN_LIST, '').includes('<') === true) delete clean['if']
  return clean
}

/** A list of conditions, whose angle brackets are of lock tokens. */
const IN_LIST = /\([^()]*\)/g

/** The names of the cookies that Postern sets (C6.2.3), without the prefixes and the port that they may have. */
export const SESSION_COOKIE = 'postern-session'
export const LINK_COOKIE = 'postern-link'

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
  return name.startsWith(SESSION_COOKIE) || name.startsWith(LINK_COOKIE)
}

type Headers = Readonly<Record<string, string | readonly string[]>>

/** The headers of an answer (lower-case names) without the cookies that only Postern sets (C8.3). */
export function withoutOwnCookies(headers: Headers, dropped: () => void): Headers {
  if (headers['set-cookie'] === undefined) return headers
  const { 'set-cookie': given, ...others } = headers
  const cookies = [given].flat()
  const kept = cookies.filter((cookie) => !setsOwnCookie(cookie))
  if (kept.length === cookies.length) return headers
  dropped()
  return kept.length === 0 ? others : { ...others, 'set-cookie': kept }
}
