import type { Call } from '../contracts/backend.ts'
import { forwardedHeaders } from '../http/forwarded.ts'

/** What of the `http` backend's configuration the request's headers depend on. */
export interface RequestHeaderRules {
  readonly vendor: string
  readonly format: 'json' | 'xml'
  readonly forwardAuthorization: boolean
  /** In place of the target's own. */
  readonly host: string | undefined
}

/** The upstream's exactly one Accept (C8.2). */
function acceptFor(call: Call, { vendor, format }: RequestHeaderRules): string {
  if (call.accept !== undefined) return call.accept
  return call.action.versioned
    ? `application/vnd.${vendor}.action.v${call.version}+${format}`
    : `application/${format}`
}

/**
 * The headers of the upstream request (C8.2) but for who calls (upstream-identity.ts), and for framing and a Host that
 * is not configured, which the dispatcher makes. Postern's own come last, so that nothing of the client's can replace them.
 */
export function requestHeaders(call: Call, rules: RequestHeaderRules): Record<string, string | undefined> {
  const { body } = call
  const headers: Record<string, string | undefined> = { ...call.headers }
  // Without it any coding would do (RFC 9110 §12.5.3). The client's own is here only where the bytes pass verbatim.
  headers['accept-encoding'] ??= 'identity'
  headers['accept'] = acceptFor(call, rules)
  headers['x-request-id'] = call.id
  headers['traceparent'] = call.traceparent
  headers['x-postern-action-version'] = String(call.version)
  if (rules.host !== undefined) headers['host'] = rules.host
  if (rules.forwardAuthorization && call.authorization !== undefined)
    headers['authorization'] = call.authorization
  if (body.kind === 'bytes' || (body.kind === 'stream' && body.contentType !== undefined))
    headers['content-type'] = body.contentType ?? ''
  // Undici sends chunks where a stream's length is unknown.
  if (body.kind === 'stream' && body.length !== undefined) headers['content-length'] = String(body.length)
  return Object.assign(headers, forwardedHeaders(call))
}
