/** The answers to clients for each failure; the cause goes to the log only. Code uses a row, never its name. */

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

/** Error codes of OAuth (RFC 6749 §5.2 and §4.1.2.1, RFC 6750 §3.1, OIDC Core §3.1.2.6, RFC 9449 §12.2, RFC 8707 §2). */
type OAuthError =
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
  | (typeof PROOF_ERRORS)[number]
  | 'invalid_target'
  | 'invalid_request_uri'

/** Errors of a proof of possession (RFC 9449 §12.2). */
export const PROOF_ERRORS = ['invalid_dpop_proof', 'use_dpop_nonce'] as const

export type ChallengeError = 'invalid_token' | 'insufficient_scope' | (typeof PROOF_ERRORS)[number]

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
  /** True if `say` is shown, though it is no 400. */
  readonly explains?: true
  /** The `error` member of a challenge (RFC 6750 §3, RFC 9449 §7.1). */
  readonly challenge?: ChallengeError
  /** Its `error_description` (C4.13, C4.17a). */
  readonly description?: string
  /** Whether its challenge is always by the scheme of tokens that are bound to a key. Otherwise it is the scheme of the call (C4.13). */
  readonly bound?: true
}

/** The fixed descriptions of challenges. */
const DESCRIPTIONS: Readonly<Record<ChallengeError, string>> = {
  invalid_token: 'The access token is malformed, expired, revoked or not meant for this service',
  insufficient_scope: 'The access token does not carry the scope that this action needs',
  invalid_dpop_proof: 'The proof is missing, malformed, too old, used before, or made for another request',
  use_dpop_nonce: 'The proof needs the nonce of the header DPoP-Nonce',
}

const row = (
  status: number,
  wire: WireCode,
  oauth: OAuthError,
  text: string,
  level: FaultRow['level'] = 'info',
): FaultRow => ({ status, wire, oauth, text, level })

const bad = (text: string): FaultRow => row(400, 'API_BAD_REQUEST', 'invalid_request', text)
const oauth = (error: OAuthError, text: string): FaultRow => row(400, 'API_BAD_REQUEST', error, text)
const unavailable = (text: string, level: FaultRow['level'] = 'warn'): FaultRow =>
  row(503, 'API_UNAVAILABLE', 'temporarily_unavailable', text, level)
const trouble = (text: string): FaultRow => row(500, 'API_INTERNAL_ERROR', 'server_error', text, 'error')
const unauthorised = (text: string, challenge?: ChallengeError, description?: string): FaultRow => ({
  ...row(401, 'API_NOT_AUTHORISED', 'invalid_request', text),
  ...(challenge && { challenge, description: description ?? DESCRIPTIONS[challenge] }),
})
/** A call whose proof is wrong or missing (RFC 9449 §5, §7.1): 401 under `/api`, and 400 at the identity endpoints. */
const unproven = (error: OAuthError & ChallengeError, text: string): FaultRow => ({
  ...row(401, 'API_NOT_AUTHORISED', error, text),
  explains: true,
  challenge: error,
  description: DESCRIPTIONS[error],
  bound: true,
})
/** A token whose binding to a key does not fit the call (RFC 9449 §7.1). */
const misbound = (text: string, description: string): FaultRow => ({
  ...unauthorised(text, 'invalid_token', description),
  bound: true,
})
const missing = (text: string): FaultRow => row(404, 'API_NOT_FOUND', 'invalid_request', text)
const large = (status: 413 | 414 | 431, text: string): FaultRow =>
  row(status, 'API_TOO_LARGE', 'invalid_request', text)

const INTERNAL = 'Something went wrong on our side. Try again; if it persists, tell us the X-Request-Id.'

export const FAULTS = {
  // The request can be read (C4.1)
  unreadable_request: bad(
    'The request could not be read as HTTP. Check its request line, headers and framing.',
  ),
  unsupported_http_version: bad('The HTTP version is not supported. Use HTTP/1.1.'),
  bad_host: bad('The Host header must be present once and well formed.'),
  bad_authority: bad('The request target names another authority. Send it to the address of this service.'),
  bad_target: bad('The request target is not acceptable.'),
  repeated_header: bad('A header that may stand only once was sent more than once.'),
  bad_framing: bad('The framing headers contradict each other or are named in Connection.'),
  connect_refused: bad('CONNECT is not supported. Send the request to this service directly.'),
  trace_refused: row(
    405,
    'API_METHOD_NOT_ALLOWED',
    'invalid_request',
    'TRACE is not supported. The Allow header lists the methods that are.',
  ),
  target_too_long: large(414, 'The request target is too long. Shorten the path or the query.'),
  headers_too_large: large(431, 'The request headers are too large. Send fewer or shorter headers.'),
  request_timeout: bad('The request did not arrive in time. Send it again, without pausing.'),
  outside: missing('There is nothing at this path. Data endpoints live under /api/1.0/.'),

  // Maintenance (C4.2, C4.9)
  service_maintenance: unavailable(
    'The service is under maintenance. Try again after the Retry-After time.',
    'info',
  ),
  place_maintenance: unavailable(
    'This part of the service is under maintenance. Try again after the Retry-After time.',
    'info',
  ),

  // Version (C4.3)
  unknown_api_version: row(
    501,
    'API_NOT_IMPLEMENTED',
    'invalid_request',
    'This API version is not implemented. The only version is 1.0: begin the path with /api/1.0/.',
  ),

  // The bearer token (C4.4)
  no_credentials: unauthorised('No access token was sent. Send "Authorization: Bearer" and the token.'),
  other_scheme: unauthorised(
    'The Authorization header does not use the scheme Bearer. Write "Bearer" exactly so, then a space and the token.',
  ),
  invalid_token: unauthorised(
    'The access token is malformed, expired, revoked or not meant for this service. Get a new one.',
    'invalid_token',
  ),
  expired_token: unauthorised(
    'The access token has expired. Get a new one.',
    'invalid_token',
    'The access token has expired',
  ),
  revoked_token: unauthorised(
    'The access token was revoked. Get a new one, by a refresh token or a new login.',
    'invalid_token',
    'The access token was revoked',
  ),
  misdirected_token: unauthorised(
    'The access token is for another service. Get one for this service.',
    'invalid_token',
    'The access token is for another service',
  ),
  // The proof of possession (C4.4, C6.1.0)
  invalid_dpop_proof: unproven(
    'invalid_dpop_proof',
    'The DPoP proof is not good. Make one for this request, with a key of your own.',
  ),
  proof_replayed: unproven(
    'invalid_dpop_proof',
    'The DPoP proof was used before. Make a new one, with another jti, for each request.',
  ),
  use_dpop_nonce: unproven(
    'use_dpop_nonce',
    'The DPoP proof needs the nonce of the DPoP-Nonce header. Make a new one with it, and send the request again.',
  ),
  bound_token: misbound(
    'The access token is bound to a key. Send it as "Authorization: DPoP", with a proof of that key in the header DPoP.',
    'The access token is bound to a key, which has to be proven',
  ),
  unbound_token: misbound(
    'The access token is not bound to a key. Send it as "Authorization: Bearer", or get one by a request with a proof.',
    'The access token is not bound to a key',
  ),
  other_key: misbound(
    'The proof is of another key than the one that the access token is bound to. Make the proof with the key by which you got the token.',
    'The access token is bound to another key',
  ),
  token_judge_unavailable: unavailable(
    'The access token cannot be checked at the moment. Try again shortly.',
    'error',
  ),

  // Rate (C4.5)
  rate_limited: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many requests. Wait for the Retry-After time before the next one.',
  ),
  too_many_calls: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many requests at the same time. Wait for answers before sending more.',
  ),
  too_many_backend_calls: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many requests at the same time to one part of the service, which is slow to answer. Wait for its answers before sending it more; requests to other parts are not affected.',
  ),
  address_rate_limited: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many requests from this address. Wait for the Retry-After time before the next one.',
  ),
  overloaded: unavailable('The service is busy. Try again after the Retry-After time.'),
  backend_busy: unavailable('The data service is busy. Try again after the Retry-After time.'),

  // The action, the scope and the place that a call names (C4.6 to C4.8)
  unknown_action: missing('There is no such area or action at this address.'),
  method_not_allowed: row(
    405,
    'API_METHOD_NOT_ALLOWED',
    'invalid_request',
    'This method is not offered here. The Allow header lists the methods that are.',
  ),
  insufficient_scope: unauthorised(
    'The access token does not carry a scope that allows this. Get a token with every scope that WWW-Authenticate names.',
    'insufficient_scope',
  ),
  unknown_place: missing(
    'There is no such business or fund for this access token. Check the codes and the target the token was issued for.',
  ),
  place_judge_unavailable: unavailable(
    'The business or fund of this call cannot be checked at the moment. Try again shortly.',
    'error',
  ),

  // Negotiation, the query and the body (C4.10, C4.11)
  not_acceptable: {
    ...row(
      406,
      'API_NOT_ACCEPTABLE',
      'invalid_request',
      'None of the media types in Accept can be produced here. Ask for application/json or application/xml.',
    ),
    offering: 'None of the media types in Accept can be produced here. Ask for {offered}.',
  },
  unknown_action_version: {
    ...row(
      501,
      'API_NOT_IMPLEMENTED',
      'invalid_request',
      'This action is not implemented in the version that Accept asks for. Ask for another version.',
    ),
    offering:
      'This action is not implemented in the version that Accept asks for. Ask for version {offered}.',
  },
  query_invalid: bad('The query does not fit this action.'),
  unsupported_media_type: {
    ...row(
      415,
      'API_UNSUPPORTED_MEDIA_TYPE',
      'invalid_request',
      'The Content-Type or Content-Encoding is not supported. Send application/json, application/xml or ' +
        'application/x-www-form-urlencoded in UTF-8, not compressed.',
    ),
    offering: 'The Content-Type or Content-Encoding is not supported here. Send {offered}.',
  },
  body_too_large: large(413, 'The request body is too large. Send less at a time.'),
  body_malformed: bad('The request body could not be parsed.'),
  body_invalid: bad('The request body does not fit this action.'),
  body_missing: bad('This action needs a request body.'),
  body_partial: bad(
    'The request body is a part (Content-Range), and this action takes no parts. Send the whole.',
  ),
  body_unexpected: bad('This action takes no request body.'),

  // The audit trail (C12.1)
  audit_unavailable: unavailable(
    'The record of this change cannot be kept at the moment, so nothing was changed. Try again shortly.',
    'error',
  ),

  // The upstream (C8.4, C8.7)
  upstream_unreachable: unavailable(
    'The data service cannot be reached at the moment. Try again shortly.',
    'error',
  ),
  upstream_timeout: unavailable('The data service did not answer in time. Try again shortly.', 'error'),
  upstream_unavailable: unavailable('The data service is unavailable at the moment. Try again shortly.'),
  upstream_token_unavailable: unavailable(
    'The data service cannot be used at the moment. Try again after the Retry-After time.',
    'error',
  ),
  upstream_broken: trouble(INTERNAL),
  upstream_forbade: unauthorised('The data service does not allow this for your account.'),
  upstream_refused: bad('The data service refused the request.'),
  upstream_not_found: missing('The data service has nothing at this address.'),
  upstream_unauthorised: unauthorised(
    'The data service does not accept the credentials that were passed on.',
  ),
  upstream_method_not_allowed: row(
    405,
    'API_METHOD_NOT_ALLOWED',
    'invalid_request',
    'The data service does not offer this method here.',
  ),
  upstream_not_acceptable: row(
    406,
    'API_NOT_ACCEPTABLE',
    'invalid_request',
    'The data service cannot produce this representation.',
  ),
  upstream_too_large: large(413, 'The request is too large for the data service. Send less at a time.'),
  upstream_unsupported_media_type: row(
    415,
    'API_UNSUPPORTED_MEDIA_TYPE',
    'invalid_request',
    'The data service does not support the media type of the request body.',
  ),
  upstream_rate_limited: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many requests for the data service. Wait before the next one.',
  ),
  outcome_unknown: row(
    500,
    'API_OUTCOME_UNKNOWN',
    'server_error',
    'The change may have been made: the data service was sent it, and gave no answer that can be passed on. Read the data to find out, before you send the change again.',
    'error',
  ),
  unsendable_value: trouble(
    'A part of this call cannot be passed on to the data service. If it should be, tell us the X-Request-Id.',
  ),
  business_value_missing: trouble(
    'This business is not set up for the data service yet. Tell us the X-Request-Id.',
  ),
  unsendable_argument: bad('A value of the request cannot be passed on to the data service.'),
  answer_unconvertible: trouble(INTERNAL),
  answer_unmappable: trouble(
    'The data service’s XML cannot be given as JSON without loss. Ask for application/xml.',
  ),
  conversion_busy: unavailable(
    'Too many large bodies are being converted at the moment. Try again shortly, or with less at a time.',
  ),
  answer_too_large: trouble(
    'The answer is too large to be given in this format. Ask for less at a time, or for the other format.',
  ),
  client_gone: row(
    400,
    'API_BAD_REQUEST',
    'invalid_request',
    'The connection was closed before the request was complete.',
    'debug',
  ),
  internal: trouble(INTERNAL),

  // C6: the identity endpoints
  oauth_bad_request: oauth('invalid_request', 'The request is malformed.'),
  oauth_method: row(
    405,
    'API_METHOD_NOT_ALLOWED',
    'invalid_request',
    'This method is not offered here. The Allow header lists the methods that are.',
  ),
  invalid_client: oauth('invalid_client', 'Client authentication failed. Check the client id and secret.'),
  // The client has signed it, so it may learn why (C6.1.2).
  assertion_refused: oauth(
    'invalid_client',
    'Client authentication failed: the client_assertion is signed rightly, but it does not count here.',
  ),
  assertion_replayed: oauth(
    'invalid_client',
    'Client authentication failed: a client_assertion with this jti was used before. Each counts once.',
  ),
  unauthorized_client: oauth('unauthorized_client', 'This client may not use this grant.'),
  unsupported_grant_type: oauth('unsupported_grant_type', 'The grant_type is not supported.'),
  invalid_grant: oauth(
    'invalid_grant',
    'The grant is not valid. Check the credentials, or ask the user again.',
  ),
  invalid_scope: oauth('invalid_scope', 'The requested scope cannot be granted.'),
  invalid_target: oauth('invalid_target', 'The requested resource cannot be granted.'),
  // Shown on a page, because there is no address to redirect to (C6.2.1)
  authorize_bad_client: oauth(
    'invalid_request',
    'The application that sent you here is not known to this service.',
  ),
  authorize_bad_redirect: oauth(
    'invalid_request',
    'The address that the application asked to send you back to is not one that it has registered.',
  ),
  invalid_request_uri: oauth(
    'invalid_request_uri',
    'The request that the application has prepared is not known, too old, or was answered already. Start again at the application.',
  ),
  password_link_over: missing('The link was used, is too old, or is not whole. Ask for another one.'),
  // Sent to the client by redirect (C6.2.1)
  access_denied: oauth('access_denied', 'The user did not allow it.'),
  unsupported_response_type: oauth('unsupported_response_type', 'The only response_type is code.'),
  login_required: oauth('login_required', 'The user has to log in first.'),
  consent_required: oauth('consent_required', 'The user has to consent first.'),
  interaction_required: oauth(
    'interaction_required',
    'The user has to answer a page first: which business, or whether an app on their device may have access.',
  ),
  request_not_supported: oauth('request_not_supported', 'The parameter request is not supported.'),
  request_uri_not_supported: oauth(
    'request_uri_not_supported',
    'The parameter request_uri is not supported.',
  ),
  // Pushed authorization requests (C6.2.1a)
  pushed_request_too_large: large(
    413,
    'The pushed request is larger than 16 KiB. Shorten its parameters: state, nonce, login_hint or id_token_hint.',
  ),
  too_many_pushed_requests: row(
    429,
    'API_RATE_LIMITED',
    'temporarily_unavailable',
    'Too many pushed requests of this client are open. Wait until some were answered or have expired.',
  ),
  identity_unavailable: unavailable('The service cannot answer at the moment. Try again shortly.', 'error'),
  // Code of the operator's that finds people
  people_unavailable: unavailable('The service cannot answer at the moment. Try again shortly.', 'error'),
  identity_maintenance: unavailable('The service is under maintenance. Try again later.', 'info'),
} as const satisfies Record<string, FaultRow>

export type FaultCode = keyof typeof FAULTS
