import type { Answer } from '../contracts/exchange.ts'
import type { AcceptLines, Format, Negotiation } from '../http/accept.ts'
import { bearerChallenge } from '../http/authorization.ts'
import { renderFault } from '../http/envelope.ts'
import { type FaultRow, FAULTS } from '../kernel/fault-table.ts'
import type { Fault } from '../kernel/faults.ts'

/** The fixed descriptions of a Bearer challenge (C4.13), where the row has none of its own. */
const DESCRIPTIONS: Readonly<Record<NonNullable<FaultRow['challenge']>, string>> = {
  invalid_token: 'The access token is malformed, expired, revoked or not meant for this service',
  insufficient_scope: 'The access token does not carry the scope that this action needs',
}

export interface FaultRenderer {
  /** The answer of a fault under `/api`, and of requests that belong neither to `/api` nor to identity (C2.3). */
  (fault: Fault, accept: AcceptLines): Answer
}

/** Renders faults as envelopes. Bodies, and challenges without a scope, are rendered in advance. */
export function compileFaultRenderer(negotiation: Negotiation, realm: string): FaultRenderer {
  const challenges = new Map(
    Object.entries<FaultRow>(FAULTS).map(([code, row]) => [code, challengeOf(realm, row)]),
  )
  return (fault, accept) => {
    const format: Format = negotiation.formatOfErrors(accept)
    const { status, contentType, body } = renderFault(fault, format)
    const headers: Record<string, string> = {
      'Content-Type': contentType,
      Vary: 'Accept',
      'Cache-Control': 'no-store',
    }
    const { retryAfter, allow, scope, contentRange } = fault.facts
    if (status === 401)
      headers['WWW-Authenticate'] =
        scope === undefined ? (challenges.get(fault.code) ?? '') : challengeOf(realm, fault.row, scope)
    if (retryAfter !== undefined || status === 503 || status === 429)
      headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfter ?? DEFAULT_RETRY_AFTER)))
    if (allow) headers.Allow = allow.join(', ')
    if (contentRange !== undefined) headers['Content-Range'] = contentRange
    return { status, headers, body }
  }
}

/** Seconds. Every 503 and 429 has a Retry-After (C2). */
const DEFAULT_RETRY_AFTER = 5

const challengeOf = (realm: string, { challenge: error, description }: FaultRow, scope?: string): string =>
  bearerChallenge({
    realm,
    ...(error && { error, description: description ?? DESCRIPTIONS[error] }),
    ...(scope !== undefined && { scope }),
  })
