import type { Head } from '../http/head.ts'
import { connectionNames, foldName, HOP_BY_HOP } from './header-names.ts'

/**
 * What never goes on from a client, folded (C8.2, T2.2). Three reasons: Postern makes it itself, it belongs to the
 * client's connection with Postern, or upstreams take it for a trusted proxy's word about who calls or what is asked.
 */
const STOPPED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  // made by Postern
  'host',
  'accept',
  'authorization',
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
  // another method, path or host than the judged one
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
  // who calls, and from where
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-originating-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-proxyuser-ip',
  'client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'via',
  'remote-user',
  'x-remote-user',
  'x-user',
  'x-username',
  'x-user-id',
  'x-forwarded',
  'x-client-cert',
  'x-ssl-client-cert',
  'client-cert',
  'client-cert-chain',
])

/** Families of such names, folded. `content-` because a representation's headers describe bytes that Postern may convert. */
const STOPPED_FAMILIES =
  /^(?:x-postern-|x-forwarded-|x-original-|x-rewrite-|x-auth-request-|x-authenticated-|x-envoy-|x-amzn-oidc-|content-(?!language$|disposition$))/

const mayPass = (folded: string): boolean => !STOPPED.has(folded) && !STOPPED_FAMILIES.test(folded)

/**
 * The client's end-to-end headers that may go on, by lower-case name (C8.2, C8.3): others pass as RFC 9110 §5.1 wants
 * of unknown fields. What Connection names goes first, so that it can never strip what Postern adds later (T2.1).
 */
export function cleanRequestHeaders({ headers }: Pick<Head, 'headers'>): Record<string, string> {
  const named = connectionNames(headers.connection)
  const clean: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    const folded = foldName(name)
    if (value === undefined || !mayPass(folded) || named.has(folded) || name === '__proto__') continue
    clean[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return clean
}
