import { errorsEnvelope } from '../../base/http/envelope.ts'
import { type FaultCode, type FaultRow, FAULTS } from '../../base/kernel/fault-table.ts'
import { describable } from '../../identity/steps/answers.ts'
import { html, type Html } from '../../identity/pages/layout.ts'
import {
  codeBlock,
  errorAnchor,
  paragraph,
  paragraphs,
  part,
  prettyJson,
  prettyXml,
  prose,
  table,
} from './elements.ts'
import { addressOf, type DeveloperPage, type DeveloperParts } from './frame.ts'
import { ERROR_TEXTS as T } from './texts.ts'

/** Where a client meets a fault: under `/api`, at the identity endpoints that answer JSON, or in a user's browser. */
type Place = 'api' | 'identity' | 'browser'

interface Guidance {
  /** Empty: no client ever reads it. */
  readonly places: readonly Place[]
  readonly mend: string
}

const API = ['api'] as const
const IDENTITY = ['identity'] as const
const BROWSER = ['browser'] as const
const BOTH = ['api', 'identity'] as const

const at = (places: readonly Place[], mend: string): Guidance => ({ places, mend })

const OURS = 'It is not your mistake. Try again once. If it stays, send us the `X-Request-Id` of the answer.'
const WAIT = 'Wait as many seconds as `Retry-After` says, then send the same call again.'
const CHANGED_NOTHING = 'Nothing was changed. Wait as many seconds as `Retry-After` says, then call again.'
const UNKNOWN_OUTCOME =
  'Wait as many seconds as `Retry-After` says. Before you repeat a call that changes data, read the data: it may have been carried out.'
const LIBRARY = 'Use a common HTTP library. If there is a proxy between you and us, look at what it changes.'

/** What a client developer does about each fault of the table (C2). The types demand a row for every fault. */
const ERROR_GUIDE: Readonly<Record<FaultCode, Guidance>> = {
  unreadable_request: at(API, LIBRARY),
  unsupported_http_version: at(API, 'Send HTTP/1.1.'),
  bad_host: at(API, LIBRARY),
  bad_authority: at(API, 'Send the request to the address that this page names, not through another host.'),
  bad_target: at(
    API,
    'Encode each value that you put into a path (percent encoding, UTF-8). `/`, `\\`, `;`, `.` and `..` cannot be values of a path. Do not end the path with a slash.',
  ),
  repeated_header: at(API, 'Send the header that `Message` names once.'),
  bad_framing: at(API, LIBRARY),
  connect_refused: at(API, 'Do not use this service as a proxy.'),
  trace_refused: at(API, 'Use one of the methods in `Allow`.'),
  target_too_long: at(API, 'Shorten the query. Ask for less at a time.'),
  headers_too_large: at(API, 'Send fewer headers. Cookies are not needed.'),
  request_timeout: at(API, 'Send the whole request at once. Look for a slow connection on your side.'),
  outside: at(API, 'Check the path. Calls begin with `/api/1.0/`.'),

  service_maintenance: at(API, WAIT),
  place_maintenance: at(API, `${WAIT} Other businesses or areas may be open.`),
  unknown_api_version: at(API, 'Begin the path with `/api/1.0/`.'),

  no_credentials: at(API, 'Send the header `Authorization: Bearer` and the access token with every call.'),
  other_scheme: at(API, 'Write `Bearer` exactly so, one space, then the access token.'),
  invalid_token: at(
    API,
    'Get a new access token, by your refresh token or a new login. Then send the call again, once. Send the access token, not the refresh token or the id_token.',
  ),
  expired_token: at(API, 'Get a new access token by your refresh token. Then send the call again.'),
  revoked_token: at(
    API,
    'Get a new access token by your refresh token, once. If that is refused too, the user has to log in again.',
  ),
  misdirected_token: at(
    API,
    'Send the token that this service has issued. Compare its `aud` with our address.',
  ),
  invalid_dpop_proof: at(
    BOTH,
    'Make a proof for each request: `htm` and `htu` are its method and address, `iat` is now, `jti` is new, and with an access token `ath` is its hash. `Message` names what is wrong.',
  ),
  proof_replayed: at(BOTH, 'Make a new proof for each request, also where you send the same one again.'),
  use_dpop_nonce: at(
    BOTH,
    'Put the value of `DPoP-Nonce` into a new proof as `nonce`, and send the request again. Then use the newest one that you were sent.',
  ),
  bound_token: at(
    API,
    'Your library got the token by a proof (DPoP): let it send the calls too, with `Authorization: DPoP` and a new proof for each.',
  ),
  unbound_token: at(API, 'Send this token as `Authorization: Bearer`, without a proof.'),
  other_key: at(
    API,
    'Make the proof with the key by which you got the token. Keep the key as long as the token.',
  ),
  token_judge_unavailable: at(API, `Keep the token: it was not refused. ${WAIT}`),

  rate_limited: at(API, `${WAIT} The headers \`RateLimit\` tell how many calls are left.`),
  too_many_calls: at(API, 'Send fewer calls at the same time: wait for an answer before the next call.'),
  too_many_backend_calls: at(
    API,
    'Send fewer calls at the same time to this area, which is slow at the moment.',
  ),
  address_rate_limited: at(BOTH, `${WAIT} All programs behind your address count together.`),
  overloaded: at(BOTH, WAIT),
  backend_busy: at(API, WAIT),

  unknown_action: at(
    API,
    'Compare area and action with the pages of the operations. Parameters must have the type that stands there.',
  ),
  method_not_allowed: at(API, 'Use one of the methods in `Allow`.'),
  insufficient_scope: at(
    API,
    'Get a token with every scope that `WWW-Authenticate` names. If `scope` of the new token does not have it, the client or the user may not have it: ask the operator, or the administrator of the business.',
  ),
  place_judge_unavailable: at(API, `${WAIT} Nothing is wrong with the token or the address.`),
  unknown_place: at(
    API,
    'Check the codes, with upper and lower case. Check that the token was made for this business: its `scope` must have `target:b/{business}`.',
  ),

  not_acceptable: at(API, 'Send `Accept: application/json` or `Accept: application/xml`.'),
  query_invalid: at(
    API,
    'Correct the parameter of the query that `Message` names. The page of the operation says what it takes.',
  ),
  unknown_action_version: at(
    API,
    'Ask for one of the versions that the page of the operation names, or for none.',
  ),
  unsupported_media_type: at(
    API,
    'Send one of the types that `Message` names, in UTF-8, with the fitting `Content-Type`.',
  ),
  body_too_large: at(BOTH, 'Send less at a time.'),
  body_malformed: at(API, '`Message` names the place. Check that `Content-Type` says what the body is.'),
  body_invalid: at(API, '`Message` names up to five fields and what is wrong with each.'),
  body_missing: at(API, 'Send a body. See the example of the operation.'),
  body_partial: at(API, 'Send the whole body, without `Content-Range`.'),
  body_unexpected: at(API, 'Send no body with this call.'),

  audit_unavailable: at(BOTH, CHANGED_NOTHING),

  upstream_unreachable: at(API, UNKNOWN_OUTCOME),
  upstream_timeout: at(API, UNKNOWN_OUTCOME),
  upstream_unavailable: at(API, UNKNOWN_OUTCOME),
  upstream_token_unavailable: at(API, CHANGED_NOTHING),
  upstream_broken: at(API, OURS),
  upstream_forbade: at(
    API,
    'The data service knows more rules than the scope. Ask the administrator of the business.',
  ),
  upstream_refused: at(API, 'Check the values that you sent against the description of the operation.'),
  upstream_not_found: at(API, 'Check the ids in the path. What they named may have been removed.'),
  upstream_unauthorised: at(API, 'Ask the operator: the data service wants other credentials.'),
  upstream_method_not_allowed: at(API, 'See which methods the operation has.'),
  upstream_not_acceptable: at(API, 'Ask for another type or version.'),
  upstream_too_large: at(API, 'Send less at a time.'),
  upstream_unsupported_media_type: at(API, 'Send the body in another type.'),
  upstream_rate_limited: at(API, WAIT),
  outcome_unknown: at(
    API,
    'Do not send it again at once: that could make the change twice. Read the data that it is about, by a GET; send the change again only if it is not there. If you cannot tell, send us the `X-Request-Id` of the answer.',
  ),
  unsendable_value: at(
    API,
    'A value in the path has characters that the data service cannot be sent. If the value is right, send us the `X-Request-Id` of the answer.',
  ),
  business_value_missing: at(
    API,
    'The data service cannot be asked about this business before we have completed its setup. Send us the `X-Request-Id` of the answer; other businesses are not concerned.',
  ),
  unsendable_argument: at(
    API,
    'Leave out what the message names: a quotation mark, a backslash, what is percent-encoded twice, or a condition such as `If-Match`.',
  ),
  answer_unconvertible: at(
    API,
    'Ask for JSON in place of XML. If it stays, send us the `X-Request-Id` of the answer.',
  ),
  answer_unmappable: at(API, 'Send `Accept: application/xml`.'),
  conversion_busy: at(API, WAIT),
  answer_too_large: at(API, 'Ask for a smaller part of the data, or for the other format.'),
  client_gone: at([], ''),
  internal: at(BOTH, OURS),

  oauth_bad_request: at(
    IDENTITY,
    '`error_description` names the parameter. Send the parameters as a form (`application/x-www-form-urlencoded`), each of them once.',
  ),
  oauth_method: at(IDENTITY, 'Use one of the methods in `Allow`. The token endpoint takes POST.'),
  invalid_client: at(
    IDENTITY,
    'Send id and secret as HTTP Basic: `Authorization: Basic` and the Base64 of `id:secret`. Check that the secret was not replaced. A public client sends `client_id` in the form.',
  ),
  assertion_refused: at(
    IDENTITY,
    '`error_description` names the claim. Let the library make the assertion for the issuer of the metadata, and set the clock of the machine.',
  ),
  assertion_replayed: at(IDENTITY, 'Sign a new assertion for each request, with a `jti` of its own.'),
  unauthorized_client: at(
    IDENTITY,
    'Use another grant, or ask the operator to allow this one to your client. `password` is for customers with a signed agreement only.',
  ),
  unsupported_grant_type: at(
    IDENTITY,
    '`grant_type` is `password`, `authorization_code` or `refresh_token`.',
  ),
  invalid_grant: at(
    IDENTITY,
    'Password: name and password are wrong, or the user may not log in through this client. Code: it was used already, is too old, or `redirect_uri` or `code_verifier` differ from the first step. Refresh token: the user has to log in again.',
  ),
  invalid_scope: at(
    IDENTITY,
    'Every value of `scope` must stand on the page of the scopes. The target must be a business that client and user may both open. Ask for one target only.',
  ),
  invalid_target: at(
    IDENTITY,
    'The `resource` must be the address of this API, or of one business or fund of it, and not another one than the target.',
  ),
  authorize_bad_client: at(BROWSER, 'Check `client_id`.'),
  authorize_bad_redirect: at(
    BROWSER,
    'Send a `redirect_uri` that is registered for your client, character by character, or ask the operator to register it.',
  ),
  invalid_request_uri: at(
    BROWSER,
    'Push the request again, and send the browser with the new `request_uri` and your own `client_id` at once.',
  ),
  access_denied: at(
    BROWSER,
    'The user said no. Tell the user what does not work without it; do not ask again at once.',
  ),
  unsupported_response_type: at(BROWSER, 'Send `response_type=code`.'),
  login_required: at(BROWSER, 'Send the browser again without `prompt=none`.'),
  consent_required: at(BROWSER, 'Send the browser again without `prompt=none`.'),
  interaction_required: at(
    BROWSER,
    'Send the browser again without `prompt=none`, or name a business as the target.',
  ),
  request_not_supported: at(BROWSER, 'Send the parameters themselves, without `request`.'),
  request_uri_not_supported: at(BROWSER, 'Send the parameters themselves, without `request_uri`.'),
  pushed_request_too_large: at(
    IDENTITY,
    'Send shorter parameters: what the client needs again, it keeps itself.',
  ),
  too_many_pushed_requests: at(IDENTITY, `Push a request when a person comes, not in advance. ${WAIT}`),
  identity_unavailable: at(IDENTITY, `Keep your tokens and codes: they were not refused. ${WAIT}`),
  people_unavailable: at(IDENTITY, `Keep your tokens and codes: they were not refused. ${WAIT}`),
  identity_maintenance: at(IDENTITY, WAIT),
}

interface Case {
  readonly row: FaultRow
  readonly text: string
  readonly mends: readonly string[]
}

/** Faults with the same text at the same status are one case: a client cannot tell them apart. */
function casesAt(place: Place): readonly Case[] {
  const codes = (Object.keys(FAULTS) as FaultCode[]).filter((code) =>
    ERROR_GUIDE[code].places.includes(place),
  )
  const groups = Map.groupBy(codes, (code) => `${FAULTS[code].status} ${FAULTS[code].text}`)
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const row: FaultRow = FAULTS[first]
    return { row, text: row.text, mends: [...new Set(group.map((code) => ERROR_GUIDE[code].mend))] }
  })
}

const wireKey = ({ row }: Case): string => `${row.wire} ${row.status}`

const API_CASES = [...Map.groupBy(casesAt('api'), wireKey)].sort(
  ([, [one]], [, [other]]) => (one?.row.status ?? 0) - (other?.row.status ?? 0),
)

const byError = (place: Place): readonly (readonly [string, readonly Case[]])[] => [
  ...Map.groupBy(casesAt(place), ({ row }) => row.oauth),
]

const caseItem = (label: string, { mends, text }: Case): Html =>
  html`<li>
    <p class="message"><span class="unseen">${label}: </span>${text}</p>
    <p class="mend"><strong>${T.mend}:</strong> ${mends.map((mend) => html`${prose(mend)} `)}</p>
  </li>`

const caseList = (label: string, cases: readonly Case[]): Html =>
  html`<ul class="cases">
    ${cases.map((each) => caseItem(label, each))}
  </ul>`

const wirePart = ([key, cases]: (typeof API_CASES)[number]): Html => {
  const [code = '', status = ''] = key.split(' ')
  return part(
    errorAnchor(key),
    html`<span class="status">${status}</span> <code>${code}</code>`,
    html`<p>${T.short[key]}</p>`,
    caseList(T.message, cases),
  )
}

const summary = (): Html =>
  part(
    'codes',
    T.summary,
    table(
      T.summary,
      T.summaryHeads,
      API_CASES.map(([key]) => {
        const [code = '', status = ''] = key.split(' ')
        return [status, html`<a href="#${errorAnchor(key)}"><code>${code}</code></a>`, T.short[key]]
      }),
    ),
  )

const oauthPart = (place: 'identity' | 'browser', title: string, text: string): Html =>
  part(
    place,
    title,
    paragraph(text),
    byError(place).map(
      ([error, cases]) =>
        html`<h3 id="${place}-${error}">
            <code>${error}</code>${cases[0] && cases[0].row.status !== 400 && html` · ${cases[0].row.status}`}
          </h3>
          ${caseList('error_description', cases)}`,
    ),
  )

const SHOWN = FAULTS.unknown_action
const SHOWN_ERROR = [{ code: SHOWN.wire, message: SHOWN.text }]

const form = (): Html =>
  part(
    'form',
    T.form,
    paragraphs(T.formText),
    codeBlock('JSON', T.jsonExample, prettyJson(errorsEnvelope('json', SHOWN_ERROR))),
    codeBlock('XML', T.xmlExample, prettyXml(errorsEnvelope('xml', SHOWN_ERROR))),
    paragraph(T.oauthForm),
    codeBlock('JSON', T.oauthExample, oauthExample()),
    paragraph(T.requestId),
  )

const oauthExample = (): string =>
  JSON.stringify(
    {
      error: FAULTS.invalid_client.oauth,
      error_description: describable(FAULTS.invalid_client.text),
    },
    null,
    2,
  )

/** Every failure that a client can meet, from the table of faults (C2). */
export function errorsPage(parts: DeveloperParts): DeveloperPage {
  return {
    path: '/errors',
    title: T.title,
    lead: T.lead,
    body: () =>
      html`${form()} ${summary()} ${API_CASES.map(wirePart)}
      ${part('others', T.others, paragraph(T.othersText))}
      ${oauthPart('identity', T.identity, T.identityText)}
      ${oauthPart('browser', T.browser, T.browserText(addressOf(parts, 'authorization_endpoint')))}`,
  }
}
