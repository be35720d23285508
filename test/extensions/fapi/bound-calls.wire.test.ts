import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { boundToken, provenHeaders, tokenWith } from '../../support/bound-tokens.ts'
import { expectExplained, explain } from '../../support/explained.ts'
import { seriesOf } from '../../support/metrics.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { hashOf, prover } from '../../support/prover.ts'
import type { RawResponse } from '../../support/raw-http.ts'
import { bearer, expectFault, send, type Sent } from '../../support/requests.ts'
import { replacedService } from '../../support/replaced-service.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../../support/start-upstream.ts'
import { streaming, at } from '../../support/streaming.ts'
import { ALL_AT_ACME, basic, issueToken, type TokenResponse } from '../../support/tokens.ts'
import { askWebsocket, startWebsocketUpstream } from '../../support/websocket-upstream.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const USERINFO = '/api/1.0/u/connect/userinfo'

const clock = movableClock()
const alice = prover(clock)
const mallory = prover(clock)
let upstream: Upstream
let gateway: StartedPostern
let bound: string
let unbound: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    clock,
  })
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})
beforeEach(async () => {
  upstream.behave(answerJson({ ok: true }))
  upstream.requests.length = 0
  bound = await boundToken(gateway, alice)
  unbound = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})

interface Proven extends Partial<Sent> {
  readonly token?: string
  readonly by?: typeof alice
  readonly claims?: Readonly<Record<string, unknown>>
}

/** A call with a bound token and a proof of its own. */
const proven = ({ token = bound, by = alice, claims, headers, ...sent }: Proven = {}): Sent => {
  const whole = { target: LIST, ...sent }
  const { baseUrl } = gateway
  return { ...whole, headers: { ...provenHeaders(by, token, { ...whole, baseUrl }, claims), ...headers } }
}
const call = (how?: Proven): Promise<RawResponse> => send(gateway, proven(how))

const ALGS = 'algs="ES256 PS256 Ed25519 EdDSA"'
const challengeOf = ({ headers }: RawResponse): string | undefined => headers['www-authenticate']

/** That a call was refused by the challenge DPoP, and reached nobody. */
function expectUnproven(response: RawResponse, error: string): void {
  expect(response.status, response.body).toBe(401)
  expect(challengeOf(response)).toMatch(
    new RegExp(`^DPoP realm="${gateway.baseUrl}", error="${error}", error_description="[^"]+", ${ALGS}$`),
  )
  expect(upstream.requests).toEqual([])
}

/** Puts a configuration in force in one service beside the one that most tests call. */
const replaced = replacedService({ keeps: 'nothing' })

describe('C4.4a a token that is bound to a key', () => {
  it('is good with a proof of that key, and the upstream gets neither proof nor token', async () => {
    expect((await call()).status).toBe(200)
    const [request] = upstream.requests
    expect(request?.headers).toMatchObject({ 'x-postern-client': ['acme-books'] })
    expect(request?.headers['dpop']).toBeUndefined()
    expect(request?.headers['authorization']).toBeUndefined()
  })

  it('C4.14: the scheme counts in any case, and several spaces may follow it', async () => {
    for (const scheme of ['DPoP', 'dpop', 'DPOP', 'dPoP  '])
      expect((await call({ headers: { Authorization: `${scheme} ${bound}` } })).status).toBe(200)
  })

  it('C4.14: without a token behind the scheme, or with more than one, is invalid_token', async () => {
    for (const credentials of ['DPoP', 'DPoP ', `DPoP ${bound} x`, `DPoP ${bound},${bound}`])
      expectUnproven(await call({ headers: { Authorization: credentials } }), 'invalid_token')
  })

  it('holds for each method and each path by itself', async () => {
    const read = proven()
    expectUnproven(await send(gateway, { ...read, method: 'DELETE' }), 'invalid_dpop_proof')
    const elsewhere = { ...proven(), target: '/api/1.0/b/ACME/fund-data/fund-detail' }
    expectUnproven(await send(gateway, elsewhere), 'invalid_dpop_proof')
    expect((await call({ method: 'HEAD' })).status).toBe(200)
  })

  it('is proven for {base_url}, whatever Host and X-Forwarded-Host say; the query plays no part', async () => {
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' }
    expect((await call({ headers, target: `${LIST}?page=1` })).status).toBe(200)
    upstream.requests.length = 0
    const claims = { htu: `http://evil.example${LIST}` }
    expectUnproven(await call({ headers, claims }), 'invalid_dpop_proof')
  })

  it('is proven by the address in any spelling that is the same (RFC 3986)', async () => {
    const { host } = new URL(gateway.baseUrl)
    for (const htu of [
      `HTTP://${host}${LIST}`,
      `${gateway.baseUrl}${LIST}?a=b#c`,
      `${gateway.baseUrl}${LIST.replace('ACME', '%41CME')}`,
    ])
      expect((await call({ claims: { htu } })).status, htu).toBe(200)
  })

  it('is refused with a proof for the address with a slash at its end, which is another one', async () => {
    for (const htu of [`${gateway.baseUrl}${LIST}/`, `${gateway.baseUrl}${LIST}/.`])
      expectUnproven(await call({ claims: { htu } }), 'invalid_dpop_proof')
  })

  it('is refused with a proof that has expired by its own exp, or begins to count later (T3.21)', async () => {
    const now = clock.now() / 1000
    for (const claims of [{ exp: now - 11 }, { nbf: now + 11 }, { exp: '' }, { nbf: {} }])
      expectUnproven(await call({ claims }), 'invalid_dpop_proof')
    expect((await call({ claims: { exp: now + 1, nbf: now } })).status).toBe(200)
  })

  it('is refused as Bearer, also with a proof beside it (T3.20)', async () => {
    const { DPoP } = provenHeaders(alice, bound, { target: LIST, baseUrl: gateway.baseUrl })
    for (const headers of [bearer(bound), { ...bearer(bound), DPoP }]) {
      const response = await send(gateway, { target: LIST, headers })
      expectFault(response, 'bound_token')
      expectUnproven(response, 'invalid_token')
    }
  })

  it('is refused with a proof of another key (T3.20)', async () => {
    const response = await call({ by: mallory })
    expectFault(response, 'other_key')
    expectUnproven(response, 'invalid_token')
  })

  it('is refused without a proof, with two, and with the proof of another token (T3.20)', async () => {
    expectUnproven(await call({ headers: { DPoP: undefined } }), 'invalid_dpop_proof')
    const one = provenHeaders(alice, bound, { target: LIST, baseUrl: gateway.baseUrl }).DPoP
    expectUnproven(await call({ headers: { DPoP: [one, one] } }), 'invalid_dpop_proof')
    expectUnproven(await call({ claims: { ath: hashOf(unbound) } }), 'invalid_dpop_proof')
    expectUnproven(await call({ claims: { ath: undefined } }), 'invalid_dpop_proof')
  })

  it('of which two lines say two proofs in one is refused like two (T3.20)', async () => {
    const made = (): string => provenHeaders(alice, bound, { target: LIST, baseUrl: gateway.baseUrl }).DPoP
    expectUnproven(await call({ headers: { DPoP: `${made()}, ${made()}` } }), 'invalid_dpop_proof')
  })

  it('is refused with a proof that was used, also beside itself (T3.21)', async () => {
    const sent = proven()
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await send(gateway, sent)).status),
    )
    expect(statuses.sort()).toEqual([200, ...Array<number>(19).fill(401)])
    expect(upstream.requests).toHaveLength(1)
    upstream.requests.length = 0
    const again = await send(gateway, sent)
    expectFault(again, 'proof_replayed')
    expectUnproven(again, 'invalid_dpop_proof')
  })

  it('is refused with what has expired, by the scheme that it came with (C4.13)', async () => {
    const expired = await tokenWith(gateway, { cnf: { jkt: alice.jkt }, exp: clock.now() / 1000 - 1 })
    const response = await call({ token: expired })
    expectFault(response, 'expired_token')
    expectUnproven(response, 'invalid_token')
  })

  it('is refused if its cnf names a key in another way, or in two ways (T3.20)', async () => {
    for (const cnf of [
      {},
      { jkt: 'x' },
      { jkt: alice.jkt, 'x5t#S256': alice.jkt },
      { 'x5t#S256': 'x' },
      [],
    ]) {
      const token = await tokenWith(gateway, { cnf })
      expectUnproven(await call({ token }), 'invalid_token')
      expect((await send(gateway, { target: LIST, headers: bearer(token) })).status).toBe(401)
    }
    expect(upstream.requests).toEqual([])
  })

  it('C4.13: that lacks the scope is told so by the same scheme', async () => {
    const poor = await boundToken(gateway, alice, 'openid target:b/ACME')
    const response = await call({ token: poor })
    expectFault(response, 'insufficient_scope')
    expect(challengeOf(response)).toMatch(/^DPoP .*error="insufficient_scope".*scope="fund.read", algs=/)
  })

  it('C6.3.1 gives userinfo with a proof, and not without', async () => {
    const answer = await call({ target: USERINFO })
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([200, { sub: expect.any(String) }])
    expectUnproven(await send(gateway, { target: USERINFO, headers: bearer(bound) }), 'invalid_token')
    expectUnproven(await call({ target: USERINFO, by: mallory }), 'invalid_token')
  })
})

describe('C4.4a a token that is bound to no key', () => {
  it('is refused by the scheme DPoP, with a proof or without', async () => {
    for (const headers of [undefined, { DPoP: undefined }]) {
      const response = await call({ token: unbound, ...(headers && { headers }) })
      expectFault(response, 'unbound_token')
      expectUnproven(response, 'invalid_token')
    }
  })

  it('C4.13: as Bearer is what it was, also with a proof beside it, which goes no further', async () => {
    const { DPoP } = provenHeaders(alice, unbound, { target: LIST, baseUrl: gateway.baseUrl })
    const response = await send(gateway, { target: LIST, headers: { ...bearer(unbound), DPoP } })
    expect(response.status).toBe(200)
    expect(upstream.requests[0]?.headers['dpop']).toBeUndefined()
    for (const headers of [{}, { DPoP }, { Authorization: `DPoPx ${bound}` }]) {
      const refused = await send(gateway, { target: LIST, headers })
      expect([refused.status, challengeOf(refused)]).toEqual([401, `Bearer realm="${gateway.baseUrl}"`])
    }
  })
})

describe('C4.4a the time of a proof', () => {
  it('is 60 s behind to 10 s ahead; else a nonce is asked for, by which the clock does not matter', async () => {
    const iat = (seconds: number) => ({ iat: clock.now() / 1000 + seconds })
    for (const seconds of [-60, 10]) expect((await call({ claims: iat(seconds) })).status).toBe(200)
    upstream.requests.length = 0
    for (const seconds of [-61, 11, -1e6]) {
      const refused = await call({ claims: iat(seconds) })
      expectFault(refused, 'use_dpop_nonce')
      expectUnproven(refused, 'use_dpop_nonce')
      const nonce = refused.headers['dpop-nonce']
      expect((await call({ claims: { ...iat(seconds), nonce } })).status).toBe(200)
      upstream.requests.length = 0
    }
    expectUnproven(await call({ claims: { nonce: 'mine' } }), 'use_dpop_nonce')
  })

  it('a newer nonce goes with the answer, whatever it is, and no other answer has one', async () => {
    const nonce = (await call({ claims: { iat: 0 } })).headers['dpop-nonce']
    expect((await call({ claims: { nonce } })).headers['dpop-nonce']).toBeUndefined()
    clock.advance(120_000)
    const newer = await call({ claims: { nonce } })
    expect([newer.status, newer.headers['dpop-nonce']]).toEqual([
      200,
      expect.not.stringMatching(String(nonce)),
    ])
    const lost = await call({ claims: { nonce }, target: '/api/1.0/b/GLOBEX/fund-data/fund-list' })
    expect([lost.status, lost.headers['dpop-nonce']]).toEqual([404, newer.headers['dpop-nonce']])
    expect((await call()).headers['dpop-nonce']).toBeUndefined()
    clock.advance(300_000)
    const late = await boundToken(gateway, alice)
    expectFault(await call({ token: late, claims: { nonce } }), 'use_dpop_nonce')
  })
})

describe('C4.4a where it stands in the decision', () => {
  it('C4.5: a call without a good proof costs its client nothing, and is logged without a caller', async () => {
    const refused = await call({ by: mallory })
    const line = gateway.log().find(({ requestId }) => requestId === refused.headers['x-request-id'])
    expect(line).toMatchObject({ reason: 'other_key' })
    expect(line).not.toHaveProperty('subject')
  })

  it('C11.7 in a report-only area the call goes on, and the upstream is not told who calls', async () => {
    const area = { backend: 'funds', mode: 'report-only' } as const
    const watching = await replaced({
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: (loaded: Configuration) => ({ ...loaded, areas: { ...loaded.areas, 'fund-data': area } }),
    })
    const token = await boundToken(watching, alice)
    expect((await send(watching, { target: LIST, headers: bearer(token) })).status).toBe(200)
    expect(upstream.requests[0]?.headers).toMatchObject({
      'x-postern-decision': ['would-refuse; reason=bound_token'],
    })
    expect(upstream.requests[0]?.headers['x-postern-subject']).toBeUndefined()
  })

  it('C4.2 under maintenance a client of the list is asked for its proof once', async () => {
    gateway.switches.set([{ scope: { kind: 'service' }, retryAfter: 1, clients: ['acme-books'] }])
    try {
      expect((await call()).status).toBe(200)
    } finally {
      gateway.switches.set([])
    }
  })

  it('C14.3 is explained by the same check, without using the proof up', async () => {
    const sent = proven()
    await expectExplained(gateway, sent, undefined)
    expect((await send(gateway, sent)).status).toBe(200)
    const { checks } = await expectExplained(gateway, proven({ by: mallory }), 'other_key')
    expect(checks.find(({ clause }) => clause === 'C4.4a')).toMatchObject({
      verdict: 'failed',
      facts: { key: alice.jkt, scheme: 'DPoP' },
    })
    await expectExplained(gateway, { target: LIST, headers: bearer(bound) }, 'bound_token')
    await expectExplained(gateway, { target: LIST, headers: bearer(unbound) }, undefined)
  })

  it('C14.4 is not asked again of a call of the past, whose proof is not kept', async () => {
    const { headers } = await call()
    const recalled = await gateway.pool.recall(String(headers['x-request-id']))
    expect(recalled?.now?.outcome).toBe('let in')
  })

  it('C14.2 is not known of a bound token that is given without a call: only its client has the key', async () => {
    const { outcome, checks } = await explain(gateway, { target: LIST }, { token: bound })
    expect(outcome).toBe('unknown')
    expect(checks.find(({ verdict }) => verdict === 'unknown')).toMatchObject({
      clause: 'C4.4a',
      words: expect.stringContaining('whether its client has the key') as unknown,
    })
  })
})

it('C4.4a a websocket is proven at the upgrade', async () => {
  const websockets = await startWebsocketUpstream()
  const tunnelled = await postern({ ...streaming(websockets.url), keeps: 'nothing' })
  const token = await boundToken(tunnelled, prover())
  const target = at('live/a')
  const url = tunnelled.baseUrl.replace('http', 'ws') + target
  const own = prover()
  const mine = await boundToken(tunnelled, own)
  const headers = provenHeaders(own, mine, { target, baseUrl: tunnelled.baseUrl })
  const opened = await askWebsocket(url, { headers })
  expect(opened.kind).toBe('open')
  expect(websockets.handshakes[0]?.headers['dpop']).toBeUndefined()
  for (const refused of [headers, bearer(mine), { ...headers, Authorization: `DPoP ${token}` }])
    expect(await askWebsocket(url, { headers: { ...refused } })).toMatchObject({
      kind: 'refused',
      status: 401,
    })
  expect(websockets.handshakes).toHaveLength(1)
})

it('C4.18 a page may send a proof, and read challenge and nonce, without being told so', async () => {
  const origin = 'https://app.example.com'
  const cors = { origins: [origin], methods: [], headers: ['Authorization'], exposeHeaders: [], maxAge: 0 }
  const open = await replaced({
    change: (loaded: Configuration) => ({ ...loaded, server: { ...loaded.server, cors } }),
  })
  const headers = { Origin: origin, 'Access-Control-Request-Method': 'GET' }
  const preflight = await send(open, { method: 'OPTIONS', target: LIST, headers })
  expect(preflight.headers['access-control-allow-headers']).toBe('Authorization, DPoP')
  const own = prover()
  const token = await boundToken(open, own)
  const proof = provenHeaders(own, token, { target: LIST, baseUrl: open.baseUrl }, { iat: 0 })
  const refused = await send(open, { target: LIST, headers: { ...proof, Origin: origin } })
  expect(refused.headers['dpop-nonce']).toBeDefined()
  expect(refused.headers['access-control-expose-headers']?.split(', ')).toEqual(
    expect.arrayContaining(['WWW-Authenticate', 'DPoP-Nonce']),
  )
})

describe('C4.4a identity.dpop.nonce', () => {
  const withNonce = async (nonce: 'required' | 'off') => {
    const own = prover()
    const started = await replaced({
      change: (loaded) => ({ ...loaded, identity: { ...loaded.identity, dpop: { nonce } } }),
    })
    const token = await boundToken(started, own)
    const where = { target: LIST, baseUrl: started.baseUrl }
    return (claims = {}) => send(started, { target: LIST, headers: provenHeaders(own, token, where, claims) })
  }

  it('C4.4a required asks every call for one, once', async () => {
    const ask = await withNonce('required')
    const refused = await ask()
    expectFault(refused, 'use_dpop_nonce')
    const nonce = refused.headers['dpop-nonce']
    expect([(await ask({ nonce })).status, (await ask({ nonce })).status]).toEqual([200, 200])
  })

  it('C4.4a off asks nobody: a proof of another time is refused as it is', async () => {
    const refused = await (await withNonce('off'))({ iat: 0 })
    expect([refused.status, refused.headers['dpop-nonce']]).toEqual([401, undefined])
    expect(challengeOf(refused)).toContain('error="invalid_dpop_proof"')
  })
})

it('C4.4a a token that the token endpoint has bound is good at once, and with the key alone that asked for it', async () => {
  const own = prover()
  const issuing = await postern({ keeps: 'nothing' })
  const form = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: ALL_AT_ACME }
  const response = await fetch(`${issuing.authUrl}/connect/token`, {
    method: 'POST',
    headers: {
      Authorization: basic('acme-books'),
      DPoP: own.prove({ htm: 'POST', htu: `${issuing.authUrl}/connect/token` }),
    },
    body: new URLSearchParams(form),
  })
  const issued = (await response.json()) as TokenResponse
  expect(issued.token_type).toBe('DPoP')
  const ask = (by: typeof own) => {
    const headers = provenHeaders(by, issued.access_token, { target: LIST, baseUrl: issuing.baseUrl })
    return send(issuing, { target: LIST, headers })
  }
  expect((await ask(own)).status).toBe(200)
  expectFault(await ask(prover()), 'other_key')
  expectFault(await send(issuing, { target: LIST, headers: bearer(issued.access_token) }), 'bound_token')
  const series = await seriesOf(issuing)
  const counted = (endpoint: string, result: string) =>
    series.get(`postern_dpop_proofs_total{endpoint="${endpoint}",result="${result}"}`)
  expect([counted('token', 'accepted'), counted('api', 'accepted')]).toEqual([1, 1])
  expect([counted('api', 'other_key'), counted('api', 'bound_token')]).toEqual([1, 1])
})
