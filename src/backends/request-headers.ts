import type { Call } from '../contracts/backend.ts'
import { forwardedLines } from '../http/forwarded.ts'

/** Headers of a request to an upstream: lower-case names and values in turn, each name once. */
export type HeaderLines = string[]

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
 * is not configured, which whoever sends it makes. Nothing of the client's is among Postern's own names: those were taken
 * out of it (client-headers.ts).
 */
export function requestHeaders(call: Call, rules: RequestHeaderRules): HeaderLines {
  const { headers, body, id, traceparent, version, authorization } = call
  const lines: HeaderLines = []
  if (rules.host !== undefined) lines.push('host', rules.host)
  for (const name in headers) lines.push(name, headers[name] ?? '')
  // Without it any coding would do (RFC 9110 §12.5.3). The client's own is here only where the bytes pass verbatim.
  if (headers['accept-encoding'] === undefined) lines.push('accept-encoding', 'identity')
  lines.push('accept', acceptFor(call, rules), 'x-request-id', id, 'traceparent', traceparent)
  lines.push('x-postern-action-version', String(version))
  if (rules.forwardAuthorization && authorization !== undefined) lines.push('authorization', authorization)
  if (body.kind === 'bytes' || (body.kind === 'stream' && body.contentType !== undefined))
    lines.push('content-type', body.contentType ?? '')
  lines.push(...forwardedLines(call))
  return lines
}
