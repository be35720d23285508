import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import {
  assertedBy,
  assertion,
  type AssertionOptions,
  type ClientKey,
  makeClientKey,
  withSigner,
} from '../../support/client-assertions.ts'
import { JWKS, startIssuerServer } from '../../support/issuer-server.ts'
import { seriesOf } from '../../support/metrics.ts'
import { send } from '../../support/requests.ts'
import { shared } from '../../support/shared.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'

const key = await makeClientKey('ES256', { kid: 'one' })

const LOGIN = {
  grant_type: 'password',
  username: 'alice',
  password: 'alice-password',
  scope: 'fund.read target:b/ACME',
}

const SIGNS = { jwks: [key.jwk] }

/** The service of most tests keeps what counts once in a file, as services do; the others need no more than memory. */
const start = shared((keys: object = SIGNS, server: Partial<Configuration['server']> = {}) =>
  postern({
    keeps: keys === SIGNS ? 'store' : 'nothing',
    change: withSigner(keys, server),
  }),
)

interface Posted {
  readonly status: number
  readonly headers: Headers
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the endpoint says; the tests judge it
  readonly json: any
}

/** Posts a form without any header that authenticates, to where the service listens. */
async function post(to: StartedPostern, path: string, params: Record<string, string>): Promise<Posted> {
  const { host } = new URL(to.authUrl)
  const { status, headers, body } = await send(to, {
    method: 'POST',
    target: path,
    headers: { Host: host, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(params).toString(),
  })
  return { status, headers: new Headers(headers), json: body === '' ? undefined : JSON.parse(body) }
}

const signed = async (to: StartedPostern, options: AssertionOptions = {}, by: ClientKey = key) =>
  assertedBy(await assertion(by, { client: 'signer', audience: to.authUrl, ...options }))

const logIn = async (to: StartedPostern, options: AssertionOptions = {}, by?: ClientKey): Promise<Posted> =>
  post(to, '/connect/token', { ...LOGIN, ...(await signed(to, options, by)) })

const introspect = async (to: StartedPostern): Promise<Posted> =>
  post(to, '/connect/introspect', { token: 'unknown', ...(await signed(to)) })

describe('C6.1.2 a client that signs', () => {
  it('C6.1.2 does so at token, introspection and revocation, and each assertion counts at one of them', async () => {
    const service = await start()
    const { status, json } = await logIn(service)
    expect(status).toBe(200)
    const asked = { token: json.access_token as string }
    const here = (path: string) => signed(service, { audience: `${service.authUrl}${path}` })
    const introspection = await post(service, '/connect/introspect', {
      ...asked,
      ...(await here('/connect/introspect')),
    })
    expect(introspection.json).toMatchObject({ active: true, client_id: 'signer' })
    const own = await here('/connect/revocation')
    expect((await post(service, '/connect/revocation', { ...asked, ...own })).status).toBe(200)
    const again = await post(service, '/connect/introspect', { ...asked, ...own })
    expect([again.status, again.json.error]).toEqual([401, 'invalid_client'])
    expect(again.json.error_description).toContain('The claim aud ')
    expect(again.headers.get('www-authenticate')).toMatch(/^Basic /)
    const twice = await post(service, '/connect/revocation', { ...asked, ...own })
    expect([twice.status, twice.json.error]).toEqual([401, 'invalid_client'])
  })

  it('C6.1.2 does so where authorization requests are pushed', async () => {
    const callback = 'https://signer.example/callback'
    const keys = { jwks: [key.jwk], grants: ['authorization_code'], redirectUris: [callback] }
    const service = await start(keys)
    const wanted = { response_type: 'code', redirect_uri: callback, scope: 'openid target:b', nonce: 'n-1' }
    const audience = `${service.authUrl}/connect/par`
    const jws = await signed(service, { audience })
    const pushed = await post(service, '/connect/par', { ...wanted, ...jws })
    expect(pushed.status, JSON.stringify(pushed.json)).toBe(201)
    expect((await post(service, '/connect/par', { ...wanted, ...jws })).json.error).toBe('invalid_client')
    const kept = await service.world.store.list('pushed_request')
    expect(JSON.stringify(kept)).not.toContain(jws.client_assertion)
  })

  it('C6.3.2 discovery names the method and its algorithms where a client has keys', async () => {
    const read = async (of: StartedPostern): Promise<Record<string, unknown>> =>
      JSON.parse((await send(of, { target: '/.well-known/openid-configuration' })).body) as never
    const algorithms = ['ES256', 'PS256', 'Ed25519', 'EdDSA', 'RS256']
    const document = await read(await start())
    for (const endpoint of ['token', 'revocation', 'introspection']) {
      expect(document[`${endpoint}_endpoint_auth_methods_supported`]).toContain('private_key_jwt')
      expect(document[`${endpoint}_endpoint_auth_signing_alg_values_supported`]).toEqual(algorithms)
    }
    const without = await read(await postern({ keeps: 'nothing' }))
    expect(Object.keys(without).filter((name) => name.includes('auth_signing_alg'))).toEqual([])
    expect(without['token_endpoint_auth_methods_supported']).not.toContain('private_key_jwt')
  })

  it('C12.3 the record names the method; a refusal names its reason', async () => {
    const service = await start.own()
    const params = { ...LOGIN, ...(await signed(service)) }
    expect((await post(service, '/connect/token', params)).status).toBe(200)
    expect((await post(service, '/connect/token', params)).status).toBe(400)
    const refused = service.log().find(({ reason }) => reason === 'assertion_replayed')
    expect(refused).toBeDefined()
    const text = service.logLines().join('')
    expect(text).not.toContain(params.client_assertion)
    const series = await seriesOf(service)
    expect(series.get('postern_client_authentications_total{method="private_key_jwt",result="ok"}')).toBe(2)
  })
})

describe('T3.24 forged and misdirected assertions', () => {
  it('T3.24 nobody gets in by alg none, another key, or one of the header', async () => {
    const service = await start()
    const stranger = await makeClientKey('ES256', { kid: 'one' })
    const none = (await assertion(key, { client: 'signer', audience: service.authUrl })).split('.')
    none[0] = Buffer.from('{"alg":"none"}').toString('base64url')
    const attempts = [
      assertedBy(`${none[0]}.${none[1]}.`),
      assertedBy(none.join('.')),
      await signed(service, {}, stranger),
      await signed(service, { header: { kid: 'one' } }, stranger),
      await signed(service, { header: { jwk: stranger.jwk } }, stranger),
      await signed(service, { client: 'nobody' }),
    ]
    const answers = await Promise.all(
      attempts.map((params) => post(service, '/connect/token', { ...LOGIN, ...params })),
    )
    for (const { status, json } of answers)
      expect([status, json]).toEqual([
        400,
        {
          error: 'invalid_client',
          error_description: 'Client authentication failed. Check the client id and secret.',
        },
      ])
  })

  it('T3.24 an assertion for another service too is none for this one', async () => {
    const service = await start()
    const elsewhere = 'https://other.example/token'
    for (const audience of [elsewhere, [service.authUrl, elsewhere], service.baseUrl.concat('/api')]) {
      const { json } = await logIn(service, { audience })
      expect(json.error_description).toContain('The claim aud ')
    }
  })

  it('T3.24 another Host, or a proxy that nobody trusts, does not change what the audience must be', async () => {
    const service = await start()
    const params = new URLSearchParams({
      ...LOGIN,
      ...(await signed(service, { audience: 'http://evil.example/connect/token' })),
    })
    const { body } = await send(service, {
      method: 'POST',
      target: '/connect/token',
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        'X-Forwarded-Host': 'evil.example',
        Forwarded: 'host=evil.example',
      },
      body: params.toString(),
    })
    expect(body).toContain('The claim aud ')
  })
})

describe('T3.24 an assertion that is sent many times at once', () => {
  const TIMES = 20

  it('T3.24 counts once', async () => {
    const service = await start()
    const params = { ...LOGIN, ...(await signed(service)) }
    const answers = await Promise.all(
      Array.from({ length: TIMES }, () => post(service, '/connect/token', params)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ json }) => json.error === 'invalid_client')).toHaveLength(TIMES - 1)
  })
})

describe('C6.1.2 keys at the client’s address', () => {
  it('C6.1.2 are read when they are needed, and again for another kid', async () => {
    const server = await startIssuerServer([{ ...key.jwk }])
    const service = await start({ jwksUri: `${server.url}${JWKS}` })
    expect((await logIn(service)).status).toBe(200)
    expect((await logIn(service, { header: { kid: 'one' } })).status).toBe(200)
    expect(server.asked(JWKS)).toHaveLength(1)
    for (let n = 0; n < 20; n += 1)
      expect((await logIn(service, { header: { kid: `kid-${n}` } })).status).toBe(400)
    expect(server.asked(JWKS)).toHaveLength(1)
  })

  it('T3.18 are not fetched from an address that is not public, and the log tells the operator what to do', async () => {
    const server = await startIssuerServer([{ ...key.jwk }])
    for (const host of ['127.0.0.1', 'localhost']) {
      const jwksUri = `http://${host}:${new URL(server.url).port}${JWKS}`
      const service = await start({ jwksUri }, { authUrl: 'https://id.example' })
      expect((await introspect(service)).status).toBe(503)
      const told = service.log().find(({ event }) => event === 'client_keys_unreachable')
      expect(told).toMatchObject({ client: 'signer', level: 'warn' })
      expect(JSON.stringify(told)).toContain('server.outbound.allow')
      const series = await seriesOf(service)
      expect(series.get('postern_client_key_fetches_total{result="refused"}')).toBe(1)
    }
    expect(server.requests).toEqual([])
    const allowing = await start(
      { jwksUri: `${server.url}${JWKS}` },
      { authUrl: 'https://id.example', outbound: { allow: ['127.0.0.0/8'] } },
    )
    expect(await introspect(allowing)).toMatchObject({ status: 200, json: { active: false } })
  })

  it('T3.18 are not fetched behind a redirect', async () => {
    const inside = await startIssuerServer([{ ...key.jwk }])
    const server = await startIssuerServer()
    server.answers.set(JWKS, (response) =>
      response.writeHead(302, { Location: `${inside.url}${JWKS}` }).end(JSON.stringify({ keys: [key.jwk] })),
    )
    const service = await start({ jwksUri: `${server.url}${JWKS}` })
    expect((await logIn(service)).status).toBe(503)
    expect(server.asked(JWKS)).toHaveLength(1)
    expect(inside.requests).toEqual([])
  })
})
