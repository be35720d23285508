/** What a row of the table of failures holds, and the kinds of rows that there are several of. */

/** The stable codes of the envelope (contract C2, "Error codes"). */
export type WireCode =
  | 'API_BAD_REQUEST'
  | 'API_NOT_AUTHORISED'
  | 'API_NOT_FOUND'
  | 'API_METHOD_NOT_ALLOWED'
  | 'API_NOT_ACCEPTABLE'
  | 'API_TOO_LARGE'
  | 'API_UNSUPPORTED_MEDIA_TYPE'
  | 'API_RATE_LIMITED'
  | 'API_INTERNAL_ERROR'
  | 'API_OUTCOME_UNKNOWN'
  | 'API_NOT_IMPLEMENTED'
  | 'API_UNAVAILABLE'

/** RFC 6749 §5.2 and §4.1.2.1, RFC 6750 §3.1, OIDC Core §3.1.2.6. */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'temporarily_unavailable'
  | 'server_error'
  | 'access_denied'
  | 'unsupported_response_type'
  | 'login_required'
  | 'consent_required'
  | 'interaction_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'

export interface FaultRow {
  readonly status: number
  readonly wire: WireCode
  /** The `error` of RFC 6749 JSON, at the identity endpoints. */
  readonly oauth: OAuthError
  /** Fixed public text. Says what to do next. A 400's `say` is appended to it. */
  readonly text: string
  /** The text where the fault knows what the configuration offers: it stands for `{offered}`. */
  readonly offering?: string
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** The `error` member of a Bearer challenge (RFC 6750 §3). */
  readonly challenge?: 'invalid_token' | 'insufficient_scope'
  /** Its `error_description`, where the row has one of its own (C4.17a). */
  readonly description?: string
}

export const row = (
  status: number,
  wire: WireCode,
  oauth: OAuthError,
  text: string,
  level: FaultRow['level'] = 'info',
): FaultRow => ({ status, wire, oauth, text, level })

export const bad = (text: string): FaultRow => row(400, 'API_BAD_REQUEST', 'invalid_request', text)
export const oauth = (error: OAuthError, text: string): FaultRow => row(400, 'API_BAD_REQUEST', error, text)
export const unavailable = (text: string, level: FaultRow['level'] = 'warn'): FaultRow =>
  row(503, 'API_UNAVAILABLE', 'temporarily_unavailable', text, level)
export const trouble = (text: string): FaultRow =>
  row(500, 'API_INTERNAL_ERROR', 'server_error', text, 'error')
export const unauthorised = (
  text: string,
  challenge?: FaultRow['challenge'],
  description?: string,
): FaultRow => ({
  ...row(401, 'API_NOT_AUTHORISED', 'invalid_request', text),
  ...(challenge && { challenge }),
  ...(description && { description }),
})
export const missing = (text: string): FaultRow => row(404, 'API_NOT_FOUND', 'invalid_request', text)
export const large = (status: 413 | 414 | 431, text: string): FaultRow =>
  row(status, 'API_TOO_LARGE', 'invalid_request', text)
