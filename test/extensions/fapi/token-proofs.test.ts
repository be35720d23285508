import { describe, expect, it } from 'vitest'
import { type Prover, prover } from '../../support/prover.ts'
import {
  API,
  basic,
  client,
  ISSUER,
  type JsonAnswer,
  openTestIdentity,
  requestToken,
  type TestIdentity,
  verify,
} from '../../support/identity-under-test.ts'
import {
  authorizePath,
  obtainCode,
  openFlow,
  partner,
  redeem,
  UserAgent,
  VERIFIER,
} from '../../support/user-agent.ts'

const TOKEN = `${ISSUER}/connect/token`
const FOR_TOKEN = { htm: 'POST', htu: TOKEN }
const OFFLINE = 'openid fund.read offline_access target:b/ACME'
const REDIRECT = 'http://127.0.0.1:51004/callback'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

type Fields = Readonly<Record<string, string>>

const proofOf = (key: Prover, claims: object = {}): string => key.prove({ ...FOR_TOKEN, ...claims })

const exchange = (service: TestIdentity, params: Fields, headers: Fields = {}): Promise<JsonAnswer> =>
  service.send({ headers: { ...FORM, ...headers }, body: new URLSearchParams(params).toString() })

/** Of the public client; `dpop` is the header. */
const byApp = (service: TestIdentity, params: Fields, dpop?: string): Promise<JsonAnswer> =>
  exchange(service, { client_id: 'pocketbooks', ...params }, dpop === undefined ? {} : { dpop })

const redeemByApp = (service: TestIdentity, code: string, dpop?: string): Promise<JsonAnswer> =>
  byApp(
    service,
    { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER },
    dpop,
  )

const refreshByApp = (service: TestIdentity, token: string, dpop?: string): Promise<JsonAnswer> =>
  byApp(service, { grant_type: 'refresh_token', refresh_token: token }, dpop)

const refreshByPartner = (service: TestIdentity, token: string, headers: Fields = {}): Promise<JsonAnswer> =>
  exchange(
    service,
    { grant_type: 'refresh_token', refresh_token: token },
    { authorization: basic('ledgerline'), ...headers },
  )

const codeOfApp = async (service: TestIdentity, params: Fields = {}): Promise<string> => {
  const asked = { client_id: 'pocketbooks', redirect_uri: REDIRECT, scope: OFFLINE, ...params }
  return (await obtainCode(service, asked)).code
}

const cnfOf = async (service: TestIdentity, token: string): Promise<unknown> =>
  (await verify(token, API, 'at+jwt', service.clock.at)).payload['cnf']

const only = (more: Readonly<Record<string, unknown>>): TestIdentity =>
  openTestIdentity({ clients: [client('acme-books', more)] })

describe('C6.1.0: a request with a proof', () => {
  it('C6.1.3: gets a token that is bound to its key, by every grant; one without gets what it always got', async () => {
    const service = openFlow()
    const key = prover(service.clock)
    const { json, headers } = await requestToken(service, { scope: OFFLINE }, { dpop: proofOf(key) })
    expect(json.token_type).toBe('DPoP')
    expect(await cnfOf(service, json.access_token)).toEqual({ jkt: key.jkt })
    expect(service.primed.at(-1)?.principal.confirmation).toBe(key.jkt)
    expect(headers).not.toHaveProperty('DPoP-Nonce')
    const code = await redeemByApp(service, await codeOfApp(service), proofOf(key))
    expect(code.json.token_type).toBe('DPoP')
    const next = await refreshByApp(service, code.json.refresh_token, proofOf(key))
    expect(await cnfOf(service, next.json.access_token)).toEqual({ jkt: key.jkt })
    const plain = await requestToken(service, { scope: OFFLINE })
    expect(plain.json.token_type).toBe('bearer')
    expect(await cnfOf(service, plain.json.access_token)).toBeUndefined()
  })

  it('C6.1.5a: gets one for a machine too, which then has nobody but itself', async () => {
    const nightly = client('nightly', {
      kind: 'machine',
      grants: ['client_credentials'],
      scopes: ['fund.read'],
      businesses: ['ACME'],
    })
    const service = openTestIdentity({ clients: [nightly] })
    const key = prover(service.clock)
    const { json } = await exchange(
      service,
      { grant_type: 'client_credentials', scope: 'fund.read' },
      { authorization: basic('nightly'), dpop: proofOf(key) },
    )
    expect(json.token_type).toBe('DPoP')
    expect(await cnfOf(service, json.access_token)).toEqual({ jkt: key.jkt })
  })

  it('C6.1.0: is judged behind the client, and before its grant', async () => {
    const service = openTestIdentity()
    const dpop = 'no proof'
    const stranger = await requestToken(service, {}, { dpop, authorization: basic('nobody') })
    expect(stranger.json.error).toBe('invalid_client')
    const unknown = await requestToken(service, { grant_type: 'unknown' }, { dpop })
    expect([unknown.status, unknown.json.error]).toEqual([400, 'invalid_dpop_proof'])
    // Which part is wrong is told.
    expect(unknown.json.error_description).toContain('one header line')
  })

  it('C6.1.0: Host and X-Forwarded-… play no part in its address', async () => {
    const service = openTestIdentity()
    const key = prover(service.clock)
    const forged = { host: 'evil.test', 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' }
    const there = await requestToken(
      service,
      {},
      { ...forged, dpop: proofOf(key, { htu: 'https://evil.test/connect/token' }) },
    )
    expect(there.json.error).toBe('invalid_dpop_proof')
    expect((await requestToken(service, {}, { ...forged, dpop: proofOf(key) })).status).toBe(200)
  })

  it('C6.1.0: works once, of 20 at once and over two services of one store', async () => {
    const service = openTestIdentity()
    const other = openTestIdentity({ store: service.store })
    const dpop = proofOf(prover(service.clock))
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => requestToken(at % 2 === 0 ? service : other, {}, { dpop })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const errors = answers.filter(({ status }) => status !== 200).map(({ json }) => json.error)
    expect(new Set(errors)).toEqual(new Set(['invalid_dpop_proof']))
    // The store holds neither the proof nor its jti.
    expect(JSON.stringify(await service.store.list('dpop_proof'))).not.toContain(dpop.slice(0, 40))
  })

  it('C6.1.4: is 503 where the store cannot say whether it was used', async () => {
    const service = openTestIdentity()
    const { store } = service
    const create = store.create.bind(store)
    store.create = (kind, ...rest) =>
      kind === 'dpop_proof' ? Promise.reject(new Error('the store is gone')) : create(kind, ...rest)
    const answer = await requestToken(service, {}, { dpop: proofOf(prover(service.clock)) })
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect(answer.json).not.toHaveProperty('access_token')
  })

  it('C6.1.0: is required of some clients, and refused of others', async () => {
    const required = only({ dpop: 'required' })
    const missing = await requestToken(required)
    expect([missing.status, missing.json.error]).toEqual([400, 'invalid_dpop_proof'])
    const sent = await requestToken(required, {}, { dpop: proofOf(prover(required.clock)) })
    expect(sent.json.token_type).toBe('DPoP')
    const off = only({ dpop: 'off' })
    const refused = await requestToken(off, {}, { dpop: proofOf(prover(off.clock)) })
    expect(refused.json.error).toBe('invalid_dpop_proof')
    expect((await requestToken(off)).json.token_type).toBe('bearer')
  })
})

describe('C6.1.0: a nonce', () => {
  it('C6.1.0: is asked for where the clock of a client is wrong, and no code is used up', async () => {
    const service = openFlow()
    const key = prover({ now: () => service.clock.at - 3_600_000 })
    const code = await codeOfApp(service)
    const first = await redeemByApp(service, code, proofOf(key))
    expect([first.status, first.json.error]).toEqual([400, 'use_dpop_nonce'])
    const nonce = String(first.headers['DPoP-Nonce'])
    const second = await redeemByApp(service, code, proofOf(key, { nonce }))
    expect([second.status, second.json.token_type]).toEqual([200, 'DPoP'])
    expect(second.headers).not.toHaveProperty('DPoP-Nonce')
  })

  it('C6.1.7: where nonces are required, no refresh token is used up either', async () => {
    const service = openFlow({ config: { dpop: { nonce: 'required' } } })
    const key = prover(service.clock)
    const code = await codeOfApp(service)
    const nonce = String((await redeemByApp(service, code, proofOf(key))).headers['DPoP-Nonce'])
    const { json } = await redeemByApp(service, code, proofOf(key, { nonce }))
    const refused = await refreshByApp(service, json.refresh_token, proofOf(key))
    expect(refused.json.error).toBe('use_dpop_nonce')
    service.clock.at += 40_000
    expect((await refreshByApp(service, json.refresh_token, proofOf(key, { nonce }))).status).toBe(200)
  })

  it('C6.1.0: that is newer comes with every answer to a proof that had one, a refusal too', async () => {
    const service = openTestIdentity({ config: { dpop: { nonce: 'required' } } })
    const key = prover(service.clock)
    const nonce = String((await requestToken(service, {}, { dpop: proofOf(key) })).headers['DPoP-Nonce'])
    service.clock.at += 60_000
    const good = await requestToken(service, {}, { dpop: proofOf(key, { nonce }) })
    const newer = String(good.headers['DPoP-Nonce'])
    expect([good.status, newer]).toEqual([200, expect.stringMatching(/^[\w-]{43}$/)])
    expect(newer).not.toBe(nonce)
    const wrong = await requestToken(service, { password: 'wrong' }, { dpop: proofOf(key, { nonce }) })
    expect([wrong.json.error, wrong.headers['DPoP-Nonce']]).toEqual(['invalid_grant', newer])
    const current = await requestToken(service, {}, { dpop: proofOf(key, { nonce: newer }) })
    expect(current.headers).not.toHaveProperty('DPoP-Nonce')
  })
})

describe('C6.1.7: a family that began with a proof', () => {
  it('T3.23, C6.1.7: of a public client is bound to its key: another one, or none, changes nothing', async () => {
    const service = openFlow()
    const key = prover(service.clock)
    const { json } = await redeemByApp(service, await codeOfApp(service), proofOf(key))
    const stolen = await refreshByApp(service, json.refresh_token, proofOf(prover(service.clock)))
    expect([stolen.status, stolen.json.error]).toEqual([400, 'invalid_grant'])
    const bare = await refreshByApp(service, json.refresh_token)
    expect([bare.status, bare.json.error]).toEqual([400, 'invalid_dpop_proof'])
    const next = await refreshByApp(service, json.refresh_token, proofOf(key))
    expect([next.status, next.json.token_type]).toEqual([200, 'DPoP'])
    // A used token in other hands does not end the login, long after the grace either.
    service.clock.at += 3_600_000
    await refreshByApp(service, json.refresh_token, proofOf(prover(service.clock)))
    await refreshByApp(service, json.refresh_token)
    const last = await refreshByApp(service, next.json.refresh_token, proofOf(key))
    expect(last.status).toBe(200)
    // In the hands of the key's owner it does.
    await refreshByApp(service, json.refresh_token, proofOf(key))
    expect((await refreshByApp(service, last.json.refresh_token, proofOf(key))).json.error).toBe(
      'invalid_grant',
    )
  })

  it('C6.1.7: of a client with a secret needs a proof of any key, each time', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, { scope: OFFLINE })
    const first = await exchange(
      service,
      {
        grant_type: 'authorization_code',
        code,
        redirect_uri: partner.redirectUris[0] ?? '',
        code_verifier: VERIFIER,
      },
      { authorization: basic('ledgerline'), dpop: proofOf(prover(service.clock)) },
    )
    const bare = await refreshByPartner(service, first.json.refresh_token)
    expect(bare.json.error).toBe('invalid_dpop_proof')
    const key = prover(service.clock)
    const next = await refreshByPartner(service, first.json.refresh_token, { dpop: proofOf(key) })
    expect(await cnfOf(service, next.json.access_token)).toEqual({ jkt: key.jkt })
  })

  it('C6.1.7: that began without one may go on with one, and then without again', async () => {
    const service = openFlow()
    const { json } = await redeemByApp(service, await codeOfApp(service))
    const bound = await refreshByApp(service, json.refresh_token, proofOf(prover(service.clock)))
    expect(bound.json.token_type).toBe('DPoP')
    const plain = await refreshByApp(service, bound.json.refresh_token)
    expect(plain.json.token_type).toBe('bearer')
  })
})

describe('C6.2.4: a code that is bound to a key', () => {
  it('T3.23, C6.2.4: is exchanged with a proof of it, and with no other', async () => {
    const service = openFlow()
    const key = prover(service.clock)
    const good = await codeOfApp(service, { dpop_jkt: key.jkt })
    expect((await redeemByApp(service, good, proofOf(key))).json.token_type).toBe('DPoP')
    for (const dpop of [undefined, proofOf(prover(service.clock))]) {
      const code = await codeOfApp(service, { dpop_jkt: key.jkt })
      const stolen = await redeemByApp(service, code, dpop)
      expect([stolen.status, stolen.json.error]).toEqual([400, 'invalid_grant'])
      // As with a wrong code_verifier (C6.1.6): whoever tried had the code, and the client's name.
      expect((await redeemByApp(service, code, proofOf(key))).json.error).toBe('invalid_grant')
    }
  })

  it('C6.2.1: keeps its binding through login and consent, and is refused for what is no thumbprint', async () => {
    const service = openFlow()
    const seen = await new UserAgent(service).get(authorizePath({ dpop_jkt: 'short' }))
    expect(seen.location?.searchParams.get('error')).toBe('invalid_request')
    const { code } = await obtainCode(service, { dpop_jkt: prover(service.clock).jkt })
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
  })
})

describe('C6.2.1a: a pushed request', () => {
  const push = (service: TestIdentity, params: Fields, dpop: string): Promise<JsonAnswer> =>
    service.send({
      path: '/connect/par',
      headers: { ...FORM, dpop },
      body: new URLSearchParams({
        ...Object.fromEntries(new URL(authorizePath(), ISSUER).searchParams),
        ...{ client_id: 'pocketbooks', redirect_uri: REDIRECT, ...params },
      }).toString(),
    })
  const FOR_PAR = { htm: 'POST', htu: `${ISSUER}/connect/par` }

  it('C6.2.1a: with a proof binds its code to the key', async () => {
    const service = openFlow()
    const key = prover(service.clock)
    const codeOf = async (): Promise<string> => {
      const { json, status } = await push(service, {}, key.prove(FOR_PAR))
      expect(status).toBe(201)
      const query = new URLSearchParams({ client_id: 'pocketbooks', request_uri: json.request_uri })
      const agent = new UserAgent(service)
      const consent = await agent.logIn(await agent.get(`/connect/authorize?${query.toString()}`))
      return (await agent.submit(consent, { decision: 'allow' })).location?.searchParams.get('code') ?? ''
    }
    expect((await redeemByApp(service, await codeOf())).json.error).toBe('invalid_grant')
    const other = await redeemByApp(service, await codeOf(), proofOf(prover(service.clock)))
    expect(other.json.error).toBe('invalid_grant')
    expect((await redeemByApp(service, await codeOf(), proofOf(key))).json.token_type).toBe('DPoP')
  })

  it('C6.2.1a: is refused with a proof of another key than dpop_jkt, or for another address', async () => {
    const service = openFlow()
    const key = prover(service.clock)
    const same = await push(service, { dpop_jkt: key.jkt }, key.prove(FOR_PAR))
    expect(same.status).toBe(201)
    const other = await push(service, { dpop_jkt: prover(service.clock).jkt }, key.prove(FOR_PAR))
    expect([other.status, other.json.error]).toEqual([400, 'invalid_dpop_proof'])
    expect((await push(service, {}, proofOf(key))).json.error).toBe('invalid_dpop_proof')
    const proof = key.prove({ ...FOR_PAR, iat: 1 })
    const late = await push(service, {}, proof)
    expect([late.json.error, late.headers['DPoP-Nonce']]).toEqual(['use_dpop_nonce', expect.any(String)])
  })
})

it('C6.3.3: introspection tells the key of a token that is bound, and its type', async () => {
  const service = openTestIdentity()
  const key = prover(service.clock)
  const introspect = async (token: string): Promise<JsonAnswer['json']> =>
    (
      await service.send({
        path: '/connect/introspect',
        headers: { ...FORM, authorization: basic('acme-books') },
        body: new URLSearchParams({ token }).toString(),
      })
    ).json
  const bound = await requestToken(service, {}, { dpop: proofOf(key) })
  expect(await introspect(bound.json.access_token)).toMatchObject({
    active: true,
    token_type: 'DPoP',
    cnf: { jkt: key.jkt },
  })
  const plain = await introspect((await requestToken(service)).json.access_token)
  expect(plain).toMatchObject({ active: true, token_type: 'bearer' })
  expect(plain).not.toHaveProperty('cnf')
})

it('C12.3: tells the key of a token that is bound, and no proof', async () => {
  const entries: unknown[] = []
  const { deps } = openTestIdentity()
  const service = openTestIdentity({
    deps: {
      audit: {
        ...deps.audit,
        on: true,
        require: (entry) => {
          entries.push(entry)
          return Promise.resolve(1)
        },
        refuse: (refusal, entry) => void entries.push(refusal, entry()),
      },
    },
  })
  const key = prover(service.clock)
  const dpop = proofOf(key)
  await requestToken(service, {}, { dpop })
  await requestToken(service, {}, { dpop })
  expect(entries).toContainEqual(
    expect.objectContaining({ event: 'token.issued', grant: expect.objectContaining({ jkt: key.jkt }) }),
  )
  expect(entries).toContainEqual(
    expect.objectContaining({ event: 'token.refused', reason: 'proof_replayed' }),
  )
  expect(JSON.stringify(entries)).not.toContain(dpop)
})

it('C6.3.2: the algorithms of proofs stand in the metadata, if some client may send any', async () => {
  const announced = async (service: TestIdentity): Promise<unknown> =>
    (await service.send({ method: 'GET', path: '/.well-known/openid-configuration' })).json
      .dpop_signing_alg_values_supported
  expect(await announced(openTestIdentity())).toEqual(['ES256', 'PS256', 'Ed25519', 'EdDSA'])
  const clientMethods = { current: () => Promise.resolve(new Set(['client_secret_basic'] as const)) }
  expect(await announced(openTestIdentity({ deps: { clientMethods } }))).toBeUndefined()
})
