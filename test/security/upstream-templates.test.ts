import { SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { attackUpstream, bytesOf, type AttackedUpstream } from '../support/attacked.ts'
import { AUDIENCE, ISSUER, makeIssuerKey, startForeignIssuer } from '../support/foreign-issuer.ts'
import { HOSTILE } from '../support/hostile-segments.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startPostern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import type { Configuration } from '../../src/settings/configuration.ts'

/** T2.10: what values are made to say in paths, queries and headers of upstream requests. */

type Methods = Configuration['actions'][number]['methods']
type Upstream = NonNullable<NonNullable<Methods['GET']>['upstream']>

/** An action with a parameter for each place where a value may be put. */
const shaped = (action: string, upstream: Upstream): Configuration['actions'][number] => ({
  level: 'business',
  area: 'fund-data',
  action,
  methods: { GET: { scopes: { any: ['fund.read'] }, versions: [1], items: {}, upstream } },
})

const ACTIONS = [
  shaped('whole/{one}', { path: '/t/{business}/{one}' }),
  shaped('part/{one}', { path: '/t-{business}/x{one}.json' }),
  shaped('before-hex/{one}', { path: '/t/{one}2f' }),
  shaped('query/{one}', { path: '/q', query: { tenant: '{business}', one: '{one}', text: 'a b&{one}2f' } }),
  shaped('header/{one}', { path: '/h', headers: { 'X-Tenant': '{business}', 'X-One': '<{one}>' } }),
  shaped('tenant', { path: '/q', query: { business: '{business}' } }),
]

let attacked: AttackedUpstream
beforeAll(async () => {
  attacked = await attackUpstream({
    change: (loaded) => ({ ...loaded, actions: [...loaded.actions, ...ACTIONS] }),
  })
})
afterAll(() => attacked.close())
beforeEach(() => attacked.forget())

const BASE = '/api/1.0/b/ACME/fund-data'

const call = async (target: string, lines = ''): Promise<number> => {
  const answer = await sendRaw(
    attacked.port,
    bytesOf({ target: `${BASE}/${target}`, lines: attacked.authorization + lines }),
  )
  return answer.status
}

const PLACES = ['whole', 'part', 'before-hex', 'query', 'header']

describe('T2.10 a hostile path parameter', () => {
  it.each(HOSTILE)('C3.4 C8.7 %s reaches the upstream by no template, query or header', async (hostile) => {
    for (const place of PLACES)
      for (const value of [hostile, `x${hostile}y`]) {
        if (/^x(?:\.|%2e)+y$/i.test(value)) continue // a legal name
        expect([place, value, await call(`${place}/${value}`)]).toEqual([place, value, 400])
      }
    expect(attacked.received()).toEqual([])
  })
})

describe('T2.10 a legal parameter that means something elsewhere', () => {
  const odd = [
    'a?b',
    'a#b',
    'a&b=c',
    'a=b',
    '100%',
    'a%zz',
    'a b',
    'a+b',
    "'()*!",
    '"<>[]^{|}`',
    '日本',
    '...',
  ]

  it.each(odd)(
    'C8.7 %s is one segment, or one value of the query: decoding it once gives it back',
    async (value) => {
      const sent = encodeURIComponent(value)
      expect(await call(`whole/${sent}`)).toBe(200)
      expect(await call(`part/${sent}`)).toBe(200)
      const [whole, part] = attacked.received().map(({ target }) => target.split('/'))
      expect([whole?.length, part?.length]).toEqual([4, 3])
      expect(decodeURIComponent(whole?.[3] ?? '')).toBe(value)
      expect(decodeURIComponent(part?.[2] ?? '')).toBe(`x${value}.json`)
      expect(whole?.[3]).toMatch(/^[A-Za-z0-9._~%-]+$/)
    },
  )

  it.each(odd.filter((value) => !value.endsWith('%')))('C8.7 %s is one value of the query', async (value) => {
    expect(await call(`query/${encodeURIComponent(value)}`)).toBe(200)
    const [request] = attacked.received()
    expect([...new URLSearchParams(request?.target.split('?')[1])]).toEqual([
      ['tenant', 'ACME'],
      ['one', value],
      ['text', `a b&${value}2f`],
    ])
  })

  it('C8.7 what is no visible ASCII is in no header: 500, and the upstream gets nothing', async () => {
    expect(await call('header/a%3Fb%23')).toBe(200)
    expect(attacked.received()[0]?.headers).toMatchObject({ 'x-tenant': ['ACME'], 'x-one': ['<a?b#>'] })
    attacked.forget()
    for (const value of ['a%20b', '%C3%A9', '%E2%80%A8', 'a%C2%A0'])
      expect([value, await call(`header/${value}`)]).toEqual([value, 500])
    expect(attacked.received()).toEqual([])
  })

  it('C8.7 a value that the text beside it makes an escape of is not sent', async () => {
    for (const place of ['before-hex', 'query'])
      expect([place, await call(`${place}/a%25`)]).toEqual([place, 500])
    expect(await call('before-hex/a%252')).toBe(500)
    expect(attacked.received()).toEqual([])
    const [line] = attacked.gateway.log().filter(({ reason }) => reason === 'unsendable_value')
    expect(line).toMatchObject({ status: 500, level: 'error' })
  })
})

describe('T2.10 a client that sends the tenant’s name itself', () => {
  it.each([
    'business=GLOBEX',
    'Business=GLOBEX',
    'b%75siness=GLOBEX',
    'b%2575siness=GLOBEX',
    'business[]=GLOBEX',
    'business%5B0%5D=GLOBEX',
    'business.x=GLOBEX',
    '+business=GLOBEX',
    'business%00=GLOBEX',
    'business%00x=GLOBEX',
    '[business]=GLOBEX',
    '?business=GLOBEX',
    '%3Fbusiness=GLOBEX',
    'business',
  ])('C8.7 %s never arrives; the rest does, byte for byte, and ours at the end', async (pair) => {
    for (const query of [`a=%2f;${pair}&b`, `${pair};a=%2f&b`, `a=%2f&b&${pair}`])
      expect([query, await call(`tenant?${query}`)]).toEqual([query, 200])
    for (const { target } of attacked.received()) expect(target).toMatch(/^\/q\?a=%2f[;&]b&business=ACME$/)
  })
})

describe('T2.10 a client that sends a configured header itself', () => {
  it.each(['X-Tenant', 'x-tenant', 'X_Tenant', 'X.Tenant', 'x_tenant'])(
    'C8.7 %s of the client never arrives',
    async (name) => {
      expect(await call('header/one', `${name}: GLOBEX\r\nX-One: GLOBEX\r\nX-Other: kept\r\n`)).toBe(200)
      const [request] = attacked.received()
      expect(request?.head).not.toContain('GLOBEX')
      expect(request?.headers).toMatchObject({
        'x-tenant': ['ACME'],
        'x-one': ['<one>'],
        'x-other': ['kept'],
      })
    },
  )
})

describe('T2.10 a caller whose name is hostile', () => {
  const decoded = HOSTILE.flatMap((hostile) => {
    try {
      return [hostile, decodeURIComponent(hostile)]
    } catch {
      return []
    }
  })
  // These are segments as they stand: they are encoded, and decoding once gives them back.
  const legal = /^(?:#|%|%2|%zz|%u002f(?!.)|#\/\.\.)$/

  it('C8.7 reaches the upstream by no template, query or header: 500', async () => {
    const key = await makeIssuerKey('one')
    const upstream = await startUpstream()
    const issuer = await startForeignIssuer([key.jwk])
    const sidecar = await startPostern({
      config: 'sidecar.yaml',
      environment: { UPSTREAM_URL: upstream.url, ISSUER, ISSUER_JWKS: issuer.url, AUDIENCE },
      change: (loaded) => ({
        ...loaded,
        backends: Object.fromEntries(
          Object.entries(loaded.backends).map(([name, backend]) => [
            name,
            backend.kind === 'http' ? { ...backend, identity: 'none' } : backend,
          ]),
        ),
        actions: [
          ...loaded.actions,
          shaped('in-path', { path: '/b/{business}/{subject}' }),
          shaped('in-query', { path: '/b/{business}', query: { who: '{subject}' } }),
          shaped('in-header', { path: '/b/{business}', headers: { 'X-Who': '{subject}' } }),
        ],
      }),
    })
    onTestFinished(async () => {
      await sidecar.close()
    })
    const ask = async (action: string, subject: string): Promise<number> => {
      const token = await new SignJWT({ client_id: 'app', scope: 'fund.read target:b/ACME', jti: subject })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'one' })
        .setIssuer(ISSUER)
        .setSubject(subject)
        .setAudience(AUDIENCE)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(key.privateKey)
      const lines = `Authorization: Bearer ${token}\r\n`
      return (await sendRaw(sidecar.port, bytesOf({ target: `${BASE}/${action}`, lines }))).status
    }
    for (const subject of new Set(decoded.filter((each) => !legal.test(each))))
      for (const action of ['in-path', 'in-query', 'in-header'])
        expect([action, subject, [401, 500].includes(await ask(action, subject))]).toEqual([
          action,
          subject,
          true,
        ])
    expect(upstream.requests).toEqual([])
    expect(await ask('in-path', 'auth0|123')).toBe(200)
    expect(upstream.requests[0]?.target).toBe('/b/ACME/auth0%7C123')
  })
})
