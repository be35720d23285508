import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { MemoryBackend } from '../../src/gateway/backends/memory/memory.ts'
import { type FaultRow, FAULTS } from '../../src/base/kernel/fault-table.ts'
import { Fault, type FaultCode } from '../../src/base/kernel/faults.ts'
import { eventually } from '../support/eventually.ts'
import { patientGuessing } from '../support/guessing.ts'
import { openRaw, type RawResponse, sendRaw } from '../support/raw-http.ts'
import { bearer, envelopeOf, form, REQUEST_ID, requestBytes, send, type Sent } from '../support/requests.ts'
import { type StartedPostern, startPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamBehaviour } from '../support/start-upstream.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

/** C2, "Error codes": under which statuses a code may be told. */
const STATUSES: Readonly<Record<FaultRow['wire'], readonly number[]>> = {
  API_BAD_REQUEST: [400],
  API_NOT_AUTHORISED: [401],
  API_NOT_FOUND: [404],
  API_METHOD_NOT_ALLOWED: [405],
  API_NOT_ACCEPTABLE: [406],
  API_TOO_LARGE: [413, 414, 431],
  API_UNSUPPORTED_MEDIA_TYPE: [415],
  API_RATE_LIMITED: [429],
  API_INTERNAL_ERROR: [500],
  API_OUTCOME_UNKNOWN: [500],
  API_NOT_IMPLEMENTED: [501],
  API_UNAVAILABLE: [503],
}

/** Postern with sample data; before an upstream that fails as it is told; and one that waits for nobody. */
let gateway: StartedPostern
let forwarding: StartedPostern
let impatient: StartedPostern
let upstream: Upstream
let token: string

beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    change: (loaded) => {
      const { log, ...rest } = patientGuessing(loaded)
      return { ...rest, log: { ...log, level: 'debug' } }
    },
  })
  forwarding = await startForwarding()
  impatient = await startForwarding(50)
  token = await tokenOf(gateway)
})
afterAll(async () => {
  await Promise.all([gateway.close(), forwarding.close(), impatient.close(), upstream.close()])
})

/** `patience`: milliseconds that it waits for heads of requests and of answers; its own defaults without. */
const startForwarding = (patience?: number): Promise<StartedPostern> =>
  startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => {
      const { funds, ...others } = loaded.backends
      if (funds?.kind !== 'http') throw new TypeError('config/upstream.yaml has an http backend "funds"')
      const { server, log } = loaded
      const limits = { ...server.limits, answer: 1000 }
      const waits = {
        request: { ...server.timeouts, ...(patience !== undefined && { headers: patience }) },
        answer: { ...funds.timeouts, ...(patience !== undefined && { firstByte: patience }) },
      }
      return {
        ...loaded,
        log: { ...log, level: 'debug' },
        server: { ...server, limits, timeouts: waits.request },
        backends: { ...others, funds: { ...funds, timeouts: waits.answer, forwardAuthorization: true } },
      }
    },
  })

const tokenOf = async (gateway: StartedPostern): Promise<string> =>
  (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
afterEach(() => {
  vi.restoreAllMocks()
  gateway.switches.set([])
})

/** How a fault is raised. Answers the response, and the log that tells the fault; no response where nobody is left to get one. */
type Scenario = () => Promise<{ readonly response: RawResponse | undefined; readonly of: StartedPostern }>

const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

const answered = (sent: () => Partial<Sent>): Scenario => {
  return async () => ({ response: await send(gateway, { target: LIST, ...sent() }), of: gateway })
}
const raw = (bytes: () => string): Scenario => {
  return async () => ({ response: await sendRaw(gateway.port, bytes()), of: gateway })
}
/** As alice, who may do everything at ACME. */
const call = (sent: Partial<Sent> = {}): Scenario =>
  answered(() => ({ ...sent, headers: { ...bearer(token), ...sent.headers } }))
const write = (body: string, headers: Sent['headers'] = { 'Content-Type': 'application/json' }): Scenario =>
  call({ method: 'POST', target: DETAIL, body, headers })
const arranged =
  (arrange: () => void, then: Scenario): Scenario =>
  () => {
    arrange()
    return then()
  }
const failing = (
  behaviour: UpstreamBehaviour,
  headers: Sent['headers'] = {},
  by = (): StartedPostern => forwarding,
): Scenario => {
  return async () => {
    upstream.behave(behaviour)
    const of = by()
    const sent = { target: LIST, headers: { ...bearer(await tokenOf(of)), ...headers } }
    return { response: await send(of, sent), of }
  }
}
const status = (given: number): Scenario => failing((connection) => connection.respond({ status: given }))
const tokenRequest = (fields: Record<string, string>, client = 'acme-books'): Scenario =>
  answered(() => {
    const alice = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
    const { headers, body } = form({ ...alice, ...fields })
    const authorization = { Authorization: basic(client) }
    return { method: 'POST', target: '/connect/token', headers: { ...headers, ...authorization }, body }
  })
/** At the authorization endpoint, as ledgerline. */
const authorize = (params: Record<string, string>): Scenario =>
  answered(() => {
    const right = {
      response_type: 'code',
      client_id: 'ledgerline',
      redirect_uri: 'http://127.0.0.1:8090/callback',
      scope: 'openid',
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'S256',
    }
    const query = new URLSearchParams({ ...right, ...params }).toString()
    return { target: `/connect/authorize?${query}` }
  })
const refusing = (code: 'rate_limited' | 'overloaded'): Scenario =>
  arranged(() => {
    vi.spyOn(gateway.world.admission, 'admit').mockImplementation(() => {
      throw new Fault(code, { retryAfter: 3 })
    })
  }, call())
const closing = (scope: 'service' | 'identity'): (() => void) => {
  return () => gateway.switches.set([{ scope: { kind: scope }, retryAfter: 60 }])
}

const clientLeaves: Scenario = async () => {
  const connection = await openRaw(gateway.port)
  const headers = { ...bearer(token), 'Content-Type': 'application/json', 'Content-Length': '100' }
  connection.send(requestBytes({ method: 'POST', target: DETAIL, headers, body: '{' }))
  connection.end()
  await connection.closed()
  return { response: undefined, of: gateway }
}

const AUTHORIZE = 'test/identity/authorize.test.ts'
const TOKENS = 'test/identity/token-refusals.wire.test.ts'
const PROOFS = 'test/extensions/fapi/proofs.test.ts'
const LIMITS = 'test/gateway/rate-limits.wire.test.ts'
const BOUND = 'test/extensions/fapi/bound-calls.wire.test.ts'

/**
 * Every fault and a way to raise it; or, for those that take a whole flow, the file of tests that does. Whoever adds a
 * row to the table adds one here.
 */
const RAISED: Readonly<Record<FaultCode, Scenario | string>> = {
  unreadable_request: raw(() => 'NO HTTP\r\n\r\n'),
  unsupported_http_version: raw(() => `GET ${LIST} HTTP/1.7\r\nHost: x\r\n\r\n`),
  bad_host: call({ headers: { Host: undefined } }),
  bad_authority: call({ target: `http://elsewhere.example${LIST}` }),
  bad_target: call({ target: '/api/1.0/b/ACME/..%2ffund-data/fund-list' }),
  repeated_header: answered(() => ({ headers: { Authorization: [`Bearer ${token}`, 'Bearer x'] } })),
  bad_framing: raw(() => `GET ${LIST} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n`),
  connect_refused: call({ method: 'CONNECT', target: 'elsewhere.example:443' }),
  trace_refused: call({ method: 'TRACE' }),
  target_too_long: call({ target: `${LIST}?${'a'.repeat(9000)}` }),
  headers_too_large: call({ headers: { 'X-Large': 'a'.repeat(20_000) } }),
  request_timeout: async () => ({
    response: await sendRaw(impatient.port, `GET ${LIST} HTTP/1.1\r\nHost: x\r\n`),
    of: impatient,
  }),
  outside: call({ target: '/elsewhere' }),
  service_maintenance: arranged(closing('service'), call()),
  place_judge_unavailable: 'test/identity/stored-places.wire.test.ts',
  place_maintenance: arranged(
    () => gateway.switches.set([{ scope: { kind: 'area', name: 'fund-data' }, retryAfter: 60 }]),
    call(),
  ),
  unknown_api_version: call({ target: '/api/1.1/b/ACME/fund-data/fund-list' }),
  no_credentials: answered(() => ({})),
  other_scheme: answered(() => ({ headers: { Authorization: basic('acme-books') } })),
  invalid_token: answered(() => ({ headers: bearer('not.a.token') })),
  expired_token: TOKENS,
  revoked_token: TOKENS,
  misdirected_token: TOKENS,
  invalid_dpop_proof: PROOFS,
  proof_replayed: PROOFS,
  use_dpop_nonce: PROOFS,
  bound_token: BOUND,
  unbound_token: answered(() => ({ headers: { Authorization: `DPoP ${token}` } })),
  other_key: BOUND,
  token_judge_unavailable: arranged(() => {
    vi.spyOn(gateway.world.rules, 'isRevoked').mockImplementation(() => {
      throw new Fault('token_judge_unavailable', { detail: 'the store is gone' })
    })
  }, call()),
  rate_limited: refusing('rate_limited'),
  too_many_calls: LIMITS,
  too_many_backend_calls: LIMITS,
  address_rate_limited: LIMITS,
  overloaded: refusing('overloaded'),
  backend_busy: LIMITS,
  unknown_action: call({ target: '/api/1.0/b/ACME/fund-data/nothing' }),
  method_not_allowed: call({ method: 'DELETE' }),
  insufficient_scope: async () => {
    const poor = await issueToken(gateway, { scope: 'profile target:b/ACME' })
    return {
      response: await send(gateway, { target: LIST, headers: bearer(poor.access_token) }),
      of: gateway,
    }
  },
  unknown_place: call({ target: '/api/1.0/b/GLOBEX/fund-data/fund-list' }),
  not_acceptable: call({ headers: { Accept: 'text/html' } }),
  unknown_action_version: call({ headers: { Accept: 'application/vnd.postern.action.v9+json' } }),
  query_invalid: 'test/gateway/query-parameters.wire.test.ts',
  unsupported_media_type: write('a', { 'Content-Type': 'text/plain' }),
  body_too_large: write(`{"Name":"${'a'.repeat(1024 ** 2)}"}`),
  body_malformed: write('{'),
  body_invalid: write('{"Colour":"red"}'),
  body_partial: write('{}', { 'Content-Type': 'application/json', 'Content-Range': 'bytes 0-1/9' }),
  body_missing: write(''),
  body_unexpected: call({ body: '{}', headers: { 'Content-Type': 'application/json' } }),
  upstream_unreachable: failing((connection) => connection.reset()),
  upstream_timeout: failing(
    () => undefined,
    {},
    () => impatient,
  ),
  upstream_unavailable: status(503),
  audit_unavailable: 'test/extensions/audit/trail.wire.test.ts',
  upstream_token_unavailable: 'test/gateway/upstream-tokens.wire.test.ts',
  upstream_broken: status(500),
  upstream_forbade: status(403),
  upstream_refused: status(400),
  upstream_not_found: status(404),
  upstream_unauthorised: status(401),
  upstream_method_not_allowed: status(405),
  upstream_not_acceptable: status(406),
  upstream_too_large: status(413),
  upstream_unsupported_media_type: status(415),
  upstream_rate_limited: status(429),
  outcome_unknown: 'test/gateway/outcome-unknown.wire.test.ts',
  unsendable_value: 'test/gateway/backends/places.test.ts',
  business_value_missing: 'test/gateway/business-values.wire.test.ts',
  unsendable_argument: 'test/gateway/upstream-templates.attack.test.ts',
  answer_unconvertible: failing(
    (connection) =>
      connection.respond({ headers: { 'Content-Type': 'application/json' }, body: '{"Name":"a\\u0000b"}' }),
    { Accept: 'application/xml' },
  ),
  answer_unmappable: 'test/gateway/plain-xml.wire.test.ts',
  conversion_busy: 'test/gateway/conversion/conversions.test.ts',
  answer_too_large: failing(
    (connection) => {
      const body = JSON.stringify(['x'.repeat(2000)])
      connection.respond({ headers: { 'Content-Type': 'application/json' }, body })
    },
    { Accept: 'application/xml' },
  ),
  client_gone: clientLeaves,
  internal: arranged(() => {
    vi.spyOn(MemoryBackend.prototype, 'answer').mockRejectedValue(new TypeError('a secret at 10.0.0.1'))
  }, call()),
  oauth_bad_request: tokenRequest({ grant_type: '' }),
  oauth_method: answered(() => ({ method: 'DELETE', target: '/connect/token' })),
  invalid_client: tokenRequest({}, 'nobody'),
  assertion_refused: 'test/extensions/fapi/client-assertions.test.ts',
  assertion_replayed: 'test/extensions/fapi/client-assertions.test.ts',
  unauthorized_client: tokenRequest({}, 'ledgerline'),
  unsupported_grant_type: tokenRequest({ grant_type: 'implicit' }),
  invalid_grant: tokenRequest({ password: 'wrong' }),
  invalid_scope: tokenRequest({ scope: 'no.such.scope' }),
  invalid_target: tokenRequest({ resource: 'https://elsewhere.example' }),
  authorize_bad_client: authorize({ client_id: 'nobody' }),
  authorize_bad_redirect: authorize({ redirect_uri: 'https://evil.example/' }),
  access_denied: AUTHORIZE,
  unsupported_response_type: authorize({ response_type: 'token' }),
  login_required: authorize({ prompt: 'none' }),
  consent_required: AUTHORIZE,
  interaction_required: AUTHORIZE,
  request_not_supported: authorize({ request: 'x' }),
  invalid_request_uri: authorize({ request_uri: 'urn:ietf:params:oauth:request_uri:unknown' }),
  password_link_over: answered(() => ({ target: '/connect/link' })),
  request_uri_not_supported: authorize({ request_uri: 'https://x.example/' }),
  identity_unavailable: arranged(() => {
    vi.spyOn(gateway.world.hasher, 'verify').mockRejectedValue(new Fault('identity_unavailable'))
  }, tokenRequest({})),
  pushed_request_too_large: answered(() => ({
    method: 'POST',
    target: '/connect/par',
    ...form({ client_id: 'ledgerline', nonce: 'n'.repeat(16 * 1024) }),
  })),
  too_many_pushed_requests: 'test/extensions/fapi/pushed-requests.test.ts',
  people_unavailable: 'test/extensions/people/people.wire.test.ts',
  identity_maintenance: arranged(closing('identity'), tokenRequest({})),
}

/** As each audience is told: by redirect, on a page, as RFC 6749 JSON, in an envelope. */
function expectTold({ status, headers, body }: RawResponse, row: FaultRow): void {
  if (headers['location'] !== undefined) {
    const { searchParams } = new URL(headers['location'])
    expect(searchParams.get('error')).toBe(row.oauth)
    expect(searchParams.get('error_description')).toContain(row.text)
    return
  }
  expect(status, body).toBe(row.status)
  if (headers['content-type']?.startsWith('text/html')) expect(body).toContain(row.text)
  else if (body.startsWith('{"error"')) {
    const told = JSON.parse(body) as { error: string; error_description: string }
    expect(told.error).toBe(row.oauth)
    expect(told.error_description).toContain(row.text)
  } else expectEnvelope(body, headers['content-type']?.includes('xml') ? 'xml' : 'json', row)
}

function expectEnvelope(body: string, format: 'json' | 'xml', row: FaultRow): void {
  const plain = envelopeOf(format, row.wire, row.text)
  // A 400 may say more, after the fixed text.
  const [before = ''] = plain.split(row.text)
  const [offers = row.text] = (row.offering ?? row.text).split('{offered}')
  if (row.status === 400) expect(body).toContain(`${before}${row.text}`)
  else if (row.offering !== undefined && body !== plain) expect(body).toContain(`${before}${offers}`)
  else expect(body).toBe(plain)
}

describe('C2, design: every fault is one row, and every row is raised', () => {
  it('C2: every row tells a code of the contract under a status of the contract, and never 403, 502 or 504', () => {
    for (const [code, { wire, status: given }] of Object.entries<FaultRow>(FAULTS))
      expect(STATUSES[wire], code).toContain(given)
  })

  it('C2: every row is listed here, and nothing else', () => {
    expect(Object.keys(RAISED).sort()).toEqual(Object.keys(FAULTS).sort())
  })

  const here = Object.entries(RAISED).flatMap(([code, how]) =>
    typeof how === 'string' ? [] : [[code as FaultCode, how] as const],
  )
  it.each(here)('C2: %s is raised, told as its row says, and named in the log', async (code, scenario) => {
    const { response, of } = await scenario()
    if (response === undefined) {
      await eventually(() => expect(of.log().map((line) => line['reason'])).toContain(code))
      return
    }
    const row: FaultRow = FAULTS[code]
    const id = response.headers['x-request-id']
    expect(id).toMatch(REQUEST_ID)
    const line = of.log().find((each) => each['requestId'] === id && each['event'] === 'call')
    expect(line).toMatchObject({ reason: code, level: row.level, status: response.status })
    expectTold(response, row)
    if ([503, 429].includes(row.status)) expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
  })

  const elsewhere = Object.entries(RAISED).filter((entry): entry is [FaultCode, string] => {
    return typeof entry[1] === 'string'
  })
  it.each(elsewhere)('C2: %s is raised by %s', (code, file) => {
    const { oauth, text } = FAULTS[code]
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    expect([code, oauth, text].some((word) => source.includes(word))).toBe(true)
  })
})
