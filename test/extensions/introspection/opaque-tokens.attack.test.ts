import { describe, expect, it } from 'vitest'
import { revoke as revokeTokens } from '../../../src/operate/revoke/revoke.ts'
import { provenHeaders } from '../../support/bound-tokens.ts'
import { explain } from '../../support/explained.ts'
import {
  AUDIENCE,
  type IssuerChanges,
  keyOfOne,
  keyOfTwo,
  LIST,
  openProvenScene,
  scene,
  seconds,
  sign,
} from '../../support/foreign-sidecar.ts'
import { INTROSPECTION, startIssuerServer } from '../../support/issuer-server.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { prover } from '../../support/prover.ts'
import { postern, type StartOptions } from '../../support/start-postern.ts'
import { at, streaming } from '../../support/streaming.ts'
import { askWebsocket, closeOf, messageOn, startWebsocketUpstream } from '../../support/websocket-upstream.ts'

// C11.2, T3.4: opaque tokens of a sidecar's issuer.

describe('C11.2 an issuer with opaque tokens', () => {
  const introspection = { clientId: 'postern', clientSecret: 'a-secret-of-postern' }

  async function opaque(over: Partial<IssuerChanges> = {}, options: StartOptions = {}) {
    const server = await startIssuerServer([keyOfOne.jwk])
    const active = {
      ...{ active: true, token_type: 'Bearer', aud: AUDIENCE, sub: 'someone', client_id: 'app' },
      ...{ scope: 'fund.read target:b/ACME', iat: seconds() - 10, exp: seconds() + 600 },
    }
    server.answers.set(INTROSPECTION, active)
    const made = await scene([{ issuer: server.url, introspection, ...over }], options)
    return { ...made, server, active, asked: () => server.asked(INTROSPECTION).length }
  }

  it('C11.2 are accepted as its introspection says, at the endpoint of its metadata', async () => {
    const { call, told, asked, server, active } = await opaque()
    expect([await call('opaque'), await call('opaque')]).toEqual([200, 200])
    expect(asked()).toBe(1)
    expect(told('x-postern-subject')).toEqual(['someone'])
    expect(told('x-postern-scope')).toEqual(['fund.read target:b/ACME'])
    server.answers.set(INTROSPECTION, { ...active, active: false })
    expect(await call('another')).toBe(401)
  })

  it('C11.2 its signed tokens are judged by their signature, and never sent anywhere', async () => {
    const { call, asked, server, upstream } = await opaque()
    const good = await sign(keyOfOne, server.url)
    expect(await call(good)).toBe(200)
    const reached = upstream.requests.length
    const [header = '', payload = '', signature = ''] = good.split('.')
    for (const token of [
      await sign(keyOfTwo, server.url),
      await sign(keyOfOne, 'https://other.example'),
      await sign(keyOfOne, server.url, { exp: seconds() - 1 }),
      `${header}.${payload}.`,
      `${header}.${payload}`,
      header,
      `${good}.${signature}`,
      `${header}.${payload}.${signature}==`,
      'abc.def.ghi',
    ])
      expect(await call(token)).toBe(401)
    expect(upstream.requests).toHaveLength(reached)
    expect(asked()).toBe(0)
  })

  it('T3.4 is a rule, a revocation and an end at the issuer, all seen in time', async () => {
    const clock = movableClock(Date.now())
    const { call, server, sidecar, asked, active } = await opaque({}, { clock })
    expect(await call('opaque')).toBe(200)
    server.answers.set(INTROSPECTION, { active: false })
    clock.advance(61_000)
    expect(await call('opaque')).toBe(401)
    expect(asked()).toBe(2)
    server.answers.set(INTROSPECTION, active)
    expect(await call('another')).toBe(200)
    await revokeTokens(
      sidecar.context,
      { client: 'app' },
      { preview: false, consents: false, force: false },
      { via: 'test' },
    )
    expect(await call('another')).toBe(401)
    expect(await call('a-third')).toBe(401)
  })

  it('C4.16 keep a websocket open, until the issuer says that they are active no more', async () => {
    const upstream = await startWebsocketUpstream()
    const clock = movableClock(Date.now())
    const { change, ...streams } = streaming(upstream.url)
    const { sidecar, server } = await opaque({}, { ...streams, clock, ...(change && { change }) })
    const asked = await askWebsocket(sidecar.baseUrl.replace('http', 'ws') + at('live/lobby'), {
      headers: { Authorization: 'Bearer opaque' },
    })
    if (asked.kind !== 'open') expect.fail(`refused: ${asked.status}`)
    const { socket } = asked
    socket.send('hello')
    expect((await messageOn(socket)).data.toString()).toBe('hello')
    server.answers.set(INTROSPECTION, { active: false })
    const closed = closeOf(socket)
    clock.advance(50_000)
    expect(await closed).toMatchObject({ code: 1008 })
  })

  it('C4.15 are 503 while the endpoint is down, and the log holds neither token nor secret', async () => {
    const { call, server, sidecar, upstream } = await opaque()
    server.answers.set(INTROSPECTION, (response) => response.destroy())
    expect(await call('a-secret-opaque-token')).toBe(503)
    expect(upstream.requests).toEqual([])
    const log = sidecar.logLines().join('')
    expect(log).toContain('introspection_failed')
    expect(log).not.toContain('a-secret-opaque-token')
    expect(log).not.toContain('a-secret-of-postern')
  })

  it('C11.1 with an endpoint of its own it is ready without metadata and keys', async () => {
    const server = await startIssuerServer()
    server.answers.clear()
    const url = server.url + INTROSPECTION
    const { sidecar } = await scene([{ issuer: server.url, introspection: { ...introspection, url } }])
    const ready = await fetch(`${sidecar.adminUrl}/health/ready`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({ failing: [], degraded: [{ name: `issuer ${server.url}` }] })
  })

  it('C11.2 are known by the claims that are configured, roles mapped', async () => {
    const { call, told, server, active } = await opaque({
      scopeClaim: 'realm_access.roles',
      scopeMap: { 'funds-reader': ['fund.read'] },
      targetClaim: 'https://example.com/business',
      clientClaim: 'azp',
      subjectClaim: 'client_id',
      audience: 'none',
    })
    server.answers.set(INTROSPECTION, {
      ...{ ...active, aud: undefined, sub: undefined, azp: 'portal', scope: 'fund.write' },
      realm_access: { roles: ['funds-reader', 'offline_access'] },
      'https://example.com/business': ['ACME'],
    })
    expect(await call('opaque')).toBe(200)
    expect(told('x-postern-subject')).toEqual(['app'])
    expect(told('x-postern-client')).toEqual(['portal'])
    expect(told('x-postern-scope')).toEqual(['fund.read'])
  })
})

it('C4.4a is asked of opaque tokens too', async () => {
  const own = prover()
  const introspection = { clientId: 'postern', clientSecret: 'secret' }
  const { server, send } = await openProvenScene({ introspection })
  server.answers.set(INTROSPECTION, {
    ...{ active: true, sub: 'someone', client_id: 'app', scope: 'fund.read target:b/ACME' },
    ...{ aud: AUDIENCE, exp: seconds() + 600, token_type: 'DPoP', cnf: { jkt: own.jkt } },
  })
  expect((await send({ Authorization: 'Bearer opaque' })).status).toBe(401)
  expect((await send(provenHeaders(own, 'opaque', { target: LIST, baseUrl: AUDIENCE }))).status).toBe(200)
})

describe('C14.1 what only an issuer could tell', () => {
  it('C14.1 is unknown, and the issuer is not asked', async () => {
    const issuer = await startIssuerServer()
    const sidecar = await postern({
      keeps: 'nothing',
      config: 'sidecar.yaml',
      environment: {
        ...{ UPSTREAM_URL: 'http://127.0.0.1:1', AUDIENCE: 'https://api.example' },
        ...{ ISSUER: issuer.url, ISSUER_JWKS: `${issuer.url}/jwks` },
      },
      change: (configuration) => ({
        ...configuration,
        issuers: configuration.issuers.map((each) => ({
          ...each,
          introspection: { url: issuer.url + INTROSPECTION, clientId: 'a', clientSecret: 'b' },
        })),
      }),
    })
    const { outcome, checks } = await explain(sidecar, { target: LIST }, { token: 'opaque' })
    expect(outcome).toBe('unknown')
    expect(checks.find(({ clause }) => clause === 'C4.4')).toMatchObject({
      verdict: 'unknown',
      reason: undefined,
    })
    expect(checks.find(({ clause }) => clause === 'C4.6')?.verdict).toBe('passed')
    expect(issuer.asked(INTROSPECTION)).toEqual([])
  })
})
