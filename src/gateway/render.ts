import type { Answer } from '../contracts/exchange.ts'
import type { AcceptLines, Format, Negotiation } from '../http/accept.ts'
import { bearerChallenge } from '../http/authorization.ts'
import { renderFault } from '../http/envelope.ts'
import { type Fault } from '../kernel/faults.ts'
import { FAULTS, type FaultRow } from '../kernel/fault-table.ts'

/** The fixed descriptions of a Bearer challenge (C4.13). */
const DESCRIPTIONS: Readonly<Record<NonNullable<FaultRow['challenge']>, string>> = {
  invalid_token: 'The access token is malformed, expired, revoked or not meant for this service',
  insufficient_scope: 'The access token does not carry the scope that this action needs',
}

export interface FaultRenderer {
  /** The one way a fault is told under `/api` and outside every door (C2.3). */
  (fault: Fault, accept: AcceptLines): Answer
}

/** Faults as envelopes: bodies pre-rendered, challenges too but for the scope they name. */
export function compileFaultRenderer(negotiation: Negotiation, realm: string): FaultRenderer {
  const challenges = new Map(
    Object.values(FAULTS).map(({ challenge }: FaultRow) => [challenge, challengeOf(realm, challenge)]),
  )
  return (fault, accept) => {
    const format: Format = negotiation.formatOfErrors(accept)
    const { status, contentType, body } = renderFault(fault, format)
    const headers: Record<string, string> = {
      'Content-Type': contentType,
      Vary: 'Accept',
      'Cache-Control': 'no-store',
    }
    const { challenge } = fault.row
    const { retryAfter, allow, scope, contentRange } = fault.facts
    if (status === 401)
      headers['WWW-Authenticate'] =
        scope === undefined ? (challenges.get(challenge) ?? '') : challengeOf(realm, challenge, scope)
    if (retryAfter !== undefined || status === 503 || status === 429)
      headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfter ?? DEFAULT_RETRY_AFTER)))
    if (allow) headers.Allow = allow.join(', ')
    if (contentRange !== undefined) headers['Content-Range'] = contentRange
    return { status, headers, body }
  }
}

/** Seconds: every 503 and 429 names a time (contract C2, error codes). */
const DEFAULT_RETRY_AFTER = 5

const challengeOf = (realm: string, error: FaultRow['challenge'], scope?: string): string =>
  bearerChallenge({
    realm,
    ...(error && { error, description: DESCRIPTIONS[error] }),
    ...(scope !== undefined && { scope }),
  })
