import { describe, expect, it } from 'vitest'
import { revoke as revokeTokens } from '../../src/operate/revoke/revoke.ts'
import {
  AUDIENCE,
  keyOfOne,
  keyOfTwo,
  LIST,
  openProvenScene,
  scene,
  seconds,
  sign,
} from '../support/foreign-sidecar.ts'
import { INTROSPECTION, OPENID, startIssuerServer } from '../support/issuer-server.ts'
import { provenHeaders } from '../support/bound-tokens.ts'
import { movableClock } from '../support/movable-clock.ts'
import { prover } from '../support/prover.ts'
import { shared } from '../support/shared.ts'
import type { StartedPostern, StartOptions } from '../support/start-postern.ts'

// C11.2: a sidecar for issuers that others run, found by their metadata; T3.5 for key sets.

const SOON = { timeout: 30_000, interval: 20 }

/** Two issuers that use the same `kid`, client id, subject and `jti`. */
const twoIssuers = shared(async (options: StartOptions = {}) => {
  const [one, two] = [await startIssuerServer([keyOfOne.jwk]), await startIssuerServer([keyOfTwo.jwk])]
  const made = await scene(
    [
      { name: 'one', issuer: one.url },
      { name: 'two', issuer: two.url },
    ],
    options,
  )
  const [ofOne, ofTwo] = [await sign(keyOfOne, one.url), await sign(keyOfTwo, two.url)]
  return { ...made, one, two, ofOne, ofTwo }
})

describe('C11.2 an issuer of which only `issuer` is configured', () => {
  it('C11.2 is found by its metadata, and the upstream is told what it was told before', async () => {
    const server = await startIssuerServer([keyOfOne.jwk])
    const { call, told } = await scene([{ issuer: server.url }])
    expect(await call(await sign(keyOfOne, server.url))).toBe(200)
    expect(told('x-postern-client')).toEqual(['app'])
    expect(told('x-postern-issuer')).toBeUndefined()
  })

  it('C4.15 that is down at the start: its tokens are 503, and good as soon as it is there', async () => {
    const server = await startIssuerServer([keyOfOne.jwk])
    const metadata = server.answers.get(OPENID) as object
    server.answers.set(OPENID, (response) => response.destroy())
    const clock = movableClock(Date.now())
    const { call, upstream } = await scene([{ issuer: server.url }], { clock })
    const token = await sign(keyOfOne, server.url)
    expect(await call(token)).toBe(503)
    expect(upstream.requests).toEqual([])
    server.answers.set(OPENID, metadata)
    clock.advance(6_000)
    await expect.poll(() => call(token), SOON).toBe(200)
  })

  it('T3.5 whose metadata names another issuer is never believed, and the log says why', async () => {
    const server = await startIssuerServer([keyOfOne.jwk])
    server.answers.set(OPENID, { ...(server.answers.get(OPENID) as object), issuer: 'https://other.example' })
    const { call, sidecar, upstream } = await scene([{ issuer: server.url }])
    for (const iss of [server.url, 'https://other.example'])
      expect(await call(await sign(keyOfOne, iss))).toBe(iss === server.url ? 503 : 401)
    expect(upstream.requests).toEqual([])
    const line = sidecar.log().find(({ event }) => event === 'issuer_metadata_refused')
    expect(line).toMatchObject({ level: 'error', issuer: server.url })
    expect(String(line?.['reason'])).toContain('other.example')
  })

  it.each(['JWT', 'jwt', 'application/jwt'])('C11.2 may call its tokens %s', async (written) => {
    const server = await startIssuerServer([keyOfOne.jwk])
    const { call } = await scene([{ issuer: server.url, typ: [written] }])
    expect(await call(await sign(keyOfOne, server.url, {}, 'JWT'))).toBe(200)
    expect(await call(await sign(keyOfOne, server.url, {}, 'at+jwt'))).toBe(401)
  })

  it('C11.2 refuses a token that is bound to a key, unless it is told to ignore that', async () => {
    const server = await startIssuerServer([keyOfOne.jwk])
    const bound = await sign(keyOfOne, server.url, { cnf: { jkt: 'thumbprint' } })
    const { call, upstream } = await scene([{ issuer: server.url }])
    expect(await call(bound)).toBe(401)
    expect(upstream.requests).toEqual([])
    expect(await (await scene([{ issuer: server.url, confirmation: 'ignore' }])).call(bound)).toBe(200)
  })
})

describe('C11.2 an issuer whose bound tokens are proven', () => {
  const provenScene = shared(openProvenScene)
  const own = prover()
  const headersOf = (token: string, claims = {}) =>
    provenHeaders(own, token, { target: LIST, baseUrl: AUDIENCE }, claims)

  it('C4.4a takes them with a proof for server.baseUrl, and other tokens as Bearer', async () => {
    const { server, send, told } = await provenScene()
    const bound = await sign(keyOfOne, server.url, { cnf: { jkt: own.jkt } })
    const plain = await sign(keyOfOne, server.url, { jti: 'other' })
    expect((await send(headersOf(bound))).status).toBe(200)
    expect([told('dpop'), told('x-postern-client')]).toEqual([undefined, ['app']])
    expect((await send({ Authorization: `Bearer ${plain}` })).status).toBe(200)
  })

  it('C4.4a refuses them without it, by another key, and bound in another way (T3.20)', async () => {
    const { server, send, upstream } = await provenScene()
    const bound = await sign(keyOfOne, server.url, { cnf: { jkt: own.jkt } })
    const elsewhere = await sign(keyOfOne, server.url, { cnf: { jkt: prover().jkt } })
    const certified = await sign(keyOfOne, server.url, { cnf: { jkt: own.jkt, 'x5t#S256': own.jkt } })
    for (const headers of [
      { Authorization: `Bearer ${bound}` },
      headersOf(elsewhere),
      headersOf(certified),
      headersOf(bound, { htu: `http://127.0.0.1${LIST}` }),
    ]) {
      const refused = await send(headers)
      expect(refused.status).toBe(401)
      expect(refused.headers.get('www-authenticate')).toMatch(/^DPoP realm="https:\/\/api\.example", error=/)
    }
    expect(upstream.requests).toEqual([])
  })

  it('C4.4a has no nonces: a proof of another time is refused as it is', async () => {
    const { server, send } = await provenScene()
    const bound = await sign(keyOfOne, server.url, { cnf: { jkt: own.jkt } })
    const refused = await send(headersOf(bound, { iat: seconds() - 300 }))
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_dpop_proof"')
    expect(refused.headers.get('dpop-nonce')).toBeNull()
  })

  it('C4.14 without such an issuer the scheme DPoP counts as no credentials', async () => {
    const { server, send } = await provenScene({ confirmation: 'refuse' })
    const plain = await sign(keyOfOne, server.url)
    const refused = await send({ Authorization: `DPoP ${plain}` })
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer realm="${AUDIENCE}"`,
    ])
  })
})

describe('C11.2 two issuers', () => {
  it('C11.2 are each believed with their own keys only', async () => {
    const { call, one, two, ofOne, ofTwo, upstream } = await twoIssuers()
    expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 200])
    const reached = upstream.requests.length
    expect(await call(await sign(keyOfOne, two.url))).toBe(401)
    expect(await call(await sign(keyOfTwo, one.url))).toBe(401)
    expect(upstream.requests).toHaveLength(reached)
  })

  it('C8.2 the upstream is told whose subject and client it is; no client can say that itself', async () => {
    const { call, told, one, two, ofOne, ofTwo, upstream } = await twoIssuers()
    const forged = {
      'X-Postern-Issuer': 'https://forged.example',
      'x-postern-ISSUER': 'https://forged.example',
      X_Postern_Issuer: 'https://forged.example',
      'x.postern.issuer': 'https://forged.example',
      'X-Postern_Client': 'two:app',
    }
    await call(ofOne, forged)
    expect(told('x-postern-issuer')).toEqual([one.url])
    expect(upstream.requests.at(-1)?.head).not.toMatch(/forged|two:app/)
    await call(ofTwo)
    expect(told('x-postern-issuer')).toEqual([two.url])
    expect(told('x-postern-client')).toEqual(['app'])
  })

  it('C8.7 {issuer} tells the upstream whose subject a path is about', async () => {
    const { call, ofOne, ofTwo, upstream } = await twoIssuers.own({
      change: (loaded) => ({
        ...loaded,
        actions: loaded.actions.map((action) => ({
          ...action,
          methods: Object.fromEntries(
            Object.entries(action.methods).map(([method, operation]) => [
              method,
              { ...operation, upstream: { path: '/of/{issuer}/{subject}' } },
            ]),
          ),
        })),
      }),
    })
    expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 200])
    expect(upstream.requests.map(({ head }) => head.split(' ')[1])).toEqual([
      '/of/one/someone',
      '/of/two/someone',
    ])
  })

  it('T2.2 with one issuer, no client can send its own X-Postern-Issuer either', async () => {
    const server = await startIssuerServer([keyOfOne.jwk])
    const { call, told } = await scene([{ issuer: server.url }])
    await call(await sign(keyOfOne, server.url), { 'X-Postern-Issuer': 'https://forged.example' })
    expect(told('x-postern-issuer')).toBeUndefined()
  })

  it('C4.5 have clients with rates of their own, also if their ids are the same', async () => {
    const rate = { requests: 2, per: 60_000 }
    const { call, ofOne, ofTwo } = await twoIssuers.own({
      change: (loaded) => ({
        ...loaded,
        load: { ...loaded.load, clients: { ...loaded.load.clients, byId: { 'one:app': { rate } } } },
      }),
    })
    const statuses = async (token: string): Promise<number[]> => [
      await call(token),
      await call(token),
      await call(token),
    ]
    expect(await statuses(ofOne)).toEqual([200, 200, 429])
    expect(await statuses(ofTwo)).toEqual([200, 200, 200])
  })

  it('C9.2 have clients of their own on lists of maintenance', async () => {
    const { call, sidecar, ofOne, ofTwo } = await twoIssuers.own()
    sidecar.switches.set([{ scope: { kind: 'service' }, clients: ['two:app'] }])
    expect([await call(ofOne), await call(ofTwo)]).toEqual([503, 200])
    sidecar.switches.set([{ scope: { kind: 'area', name: 'fund-data' }, clients: ['one:app', 'app'] }])
    expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 503])
  })

  it('C12 stand by their names in the lines of calls', async () => {
    const { call, sidecar, ofTwo } = await twoIssuers()
    await call(ofTwo)
    expect(sidecar.log().find(({ event }) => event === 'call')).toMatchObject({
      issuer: 'two',
      client: 'app',
    })
  })
})

describe('C6.3.3 a revocation in a sidecar', () => {
  const revoke = (sidecar: StartedPostern, body: object): Promise<{ outcome: string }> => {
    const {
      jti,
      subject,
      client,
      issuer,
      force = false,
    } = body as Record<string, string> & { force?: boolean }
    const tokens = { ...(jti && { jti }), ...(subject && { subject }), ...(client && { client }) }
    return revokeTokens(
      sidecar.context,
      { ...tokens, ...(issuer && { issuer }) } as never,
      { preview: false, consents: false, force },
      { via: 'test' },
    )
  }

  it.each([{ client: 'app' }, { subject: 'someone' }, { jti: 'same-id' }])(
    'C11.2 of %j ends it at the issuer that it names only',
    async (tokens) => {
      const { call, sidecar, one, ofOne, ofTwo } = await twoIssuers.own()
      expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 200])
      expect((await revoke(sidecar, { ...tokens, issuer: 'one' })).outcome).toBe('revoked')
      expect([await call(ofOne), await call(ofTwo)]).toEqual([401, 200])
      // Not remembered by any cache.
      expect(await call(await sign(keyOfOne, one.url, { iat: seconds() - 20 }))).toBe(401)
    },
  )

  it('C11.2 that names no issuer is refused where there are several; forced, it holds for all', async () => {
    const { call, sidecar, two, ofOne, ofTwo } = await twoIssuers.own()
    expect(await revoke(sidecar, { client: 'app' })).toMatchObject({ outcome: 'unknown' })
    expect(await revoke(sidecar, { client: 'app', issuer: 'three' })).toMatchObject({ outcome: 'unknown' })
    expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 200])
    await revoke(sidecar, { client: 'app', issuer: two.url })
    expect([await call(ofOne), await call(ofTwo)]).toEqual([200, 401])
    await revoke(sidecar, { client: 'app', force: true })
    expect([await call(ofOne), await call(ofTwo)]).toEqual([401, 401])
  })
})

it('C11.2 an opaque token is 401, and nobody is asked', async () => {
  const server = await startIssuerServer([keyOfOne.jwk])
  const { call, upstream } = await scene([{ issuer: server.url }])
  expect(await call('opaque')).toBe(401)
  expect(upstream.requests).toEqual([])
  expect(server.asked(INTROSPECTION)).toHaveLength(0)
})
