import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authorizeUrl, CALLBACK, VERIFIER } from '../support/audited-people.ts'
import { askAsMachine, withMachines } from '../support/machines.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { Person } from '../support/person.ts'
import { send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'

/** C6.1.3a: `resource` in place of a target (RFC 8707). */

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', change: withMachines })
})
afterAll(() => gateway.close())

const at = (path: string): string => `${gateway.baseUrl}/api/1.0/${path}`
const login = (params: Readonly<Record<string, string>>): Promise<OAuthAnswer> => {
  const alice = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'fund.read' }
  return postForm(gateway, '/connect/token', { params: { ...alice, ...params } })
}

describe('C6.1.3a: resource', () => {
  it('C6.1.3a: the API as a whole asks for no target, and changes no audience', async () => {
    for (const resource of [gateway.baseUrl, `${gateway.baseUrl}/`]) {
      const { json } = await login({ resource })
      expect(json.scope).toBe('fund.read')
      expect(decodeJwt(json.access_token).aud).toBe(gateway.baseUrl)
    }
  })

  it('C6.1.3a: a business or a fund stands for the target', async () => {
    expect((await login({ resource: at('b/ACME') })).json.scope).toBe('fund.read target:b/ACME')
    const { json } = await login({ resource: at('f/ACME/SUPER1') })
    expect(json.scope).toBe('fund.read target:f/ACME/SUPER1')
    expect(decodeJwt(json.access_token).aud).toBe(gateway.baseUrl)
    const scope = 'fund.read target:b/ACME'
    expect((await login({ scope, resource: at('b/ACME') })).json.scope).toBe(scope)
  })

  it('C6.1.3a, C6.1.5a: it is the target of a machine of several businesses', async () => {
    const { json } = await askAsMachine(gateway, { resource: at('b/GLOBEX') }, 'both')
    expect(json.scope).toBe('fund.read target:b/GLOBEX')
  })

  it.each([
    ['of another service', 'https://elsewhere.example/'],
    ['that begins like this one', '{base}.example/'],
    ['of another version', '{base}/api/2.0/b/ACME'],
    ['of an action', '{base}/api/1.0/b/ACME/fund-data'],
    ['of no business', '{base}/api/1.0/b/'],
    ['of a business that is not the client’s', '{base}/api/1.0/b/INITECH'],
    ['with a fragment', '{base}#x'],
  ])('C6.1.3a: one %s is invalid_target', async (_, written) => {
    const { status, json } = await login({ resource: written.replace('{base}', gateway.baseUrl) })
    expect([status, json.error]).toEqual([400, 'invalid_target'])
  })

  it('C6.1.3a, T3.25: one beside another target, and two, are invalid_target', async () => {
    const against = { scope: 'fund.read target:b/GLOBEX', resource: at('b/ACME') }
    expect((await login(against)).json.error).toBe('invalid_target')
    const fund = { scope: 'fund.read target:b/ACME', resource: at('f/ACME/SUPER1') }
    expect((await login(fund)).json.error).toBe('invalid_target')
    const params = new URLSearchParams({ grant_type: 'client_credentials', scope: 'fund.read' })
    for (const resource of [at('b/ACME'), at('b/ACME')]) params.append('resource', resource)
    const { body } = await send(gateway, {
      method: 'POST',
      target: '/connect/token',
      headers: {
        Authorization: `Basic ${Buffer.from('nightly:nightly-secret').toString('base64')}`,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: params.toString(),
    })
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_target' })
  })

  it('C6.1.3a, T3.25: at authorize it is the business, and code and refresh token take no other one', async () => {
    const person = new Person(gateway.authUrl)
    const url = authorizeUrl({ scope: 'openid offline_access fund.read target:b', resource: at('b/ACME') })
    const page = await person.logIn(await person.open(url))
    const { location } = await person.submit(page, { decision: 'allow' })
    const code = location?.searchParams.get('code') ?? ''
    const params = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    const ask = (more: Readonly<Record<string, string>>) =>
      postForm(gateway, '/connect/token', { client: 'ledgerline', params: { ...params, ...more } })
    const { json } = await ask({ resource: at('b/ACME') })
    expect(json.scope).toBe('openid offline_access fund.read target:b/ACME')
    const again = { grant_type: 'refresh_token', refresh_token: json.refresh_token as string }
    const other = await ask({ ...again, resource: at('b/GLOBEX') })
    expect([other.status, other.json.error]).toEqual([400, 'invalid_target'])
    expect((await ask({ ...again, resource: at('b/ACME') })).status).toBe(200)
  })
})

describe('C6.1.3a: resource of a pushed request', () => {
  const push = (more: Readonly<Record<string, string>>) => {
    const scope = 'openid fund.read target:b'
    const asked = Object.fromEntries(new URL(authorizeUrl({ scope }), gateway.authUrl).searchParams)
    return postForm(gateway, '/connect/par', { client: 'ledgerline', params: { ...asked, ...more } })
  }

  it('C6.1.3a, C6.2.1a: is taken where the client may have it, and is invalid_target before any browser comes else', async () => {
    expect((await push({ resource: at('b/ACME') })).status).toBe(201)
    for (const resource of [at('b/NOBODY'), 'https://elsewhere.example/'])
      expect(await push({ resource })).toMatchObject({ status: 400, json: { error: 'invalid_target' } })
  })
})

describe('C6.3.2a: metadata of the API', () => {
  const WELL_KNOWN = '/.well-known/oauth-protected-resource'
  const read = async (path: string) => {
    const { status, body } = await send(gateway, { target: `${WELL_KNOWN}${path}` })
    return { status, document: status === 200 ? (JSON.parse(body) as Record<string, unknown>) : undefined }
  }

  it('C6.3.2a: names the API, or a business of it by its form alone, and the issuer', async () => {
    for (const path of ['', '/api/1.0/b/ACME', '/api/1.0/b/NOBODY'])
      expect(await read(path)).toMatchObject({
        status: 200,
        document: { resource: gateway.baseUrl + path, authorization_servers: [gateway.authUrl] },
      })
  })

  it('C6.3.2a: names the algorithms of proofs, as discovery does', async () => {
    const algorithms = { dpop_signing_alg_values_supported: ['ES256', 'PS256', 'Ed25519', 'EdDSA'] }
    expect((await read('')).document).toMatchObject(algorithms)
    const { body } = await send(gateway, { target: '/.well-known/openid-configuration' })
    expect(JSON.parse(body)).toMatchObject(algorithms)
  })

  it('C4.13: its address stands in challenges of every scheme, where the configuration says so', async () => {
    const telling = await postern({
      keeps: 'nothing',
      change: ({ server, ...rest }) => ({ ...rest, server: { ...server, resourceMetadata: true } }),
    })
    const target = '/api/1.0/b/ACME/fund-data/fund-list'
    for (const authorization of [undefined, 'Bearer x', 'DPoP x']) {
      const headers = authorization === undefined ? {} : { Authorization: authorization }
      const challengeOf = async (at: StartedPostern) =>
        (await send(at, { target, headers })).headers['www-authenticate']
      const plain = await challengeOf(gateway)
      expect(plain).not.toContain('resource_metadata')
      expect(await challengeOf(telling)).toBe(
        `${plain?.replace(gateway.baseUrl, telling.baseUrl)}, resource_metadata="${telling.baseUrl}${WELL_KNOWN}"`,
      )
    }
  })

  it('C6.3.2a: is 404 for any other path', async () => {
    for (const path of ['/x', 'x', '/api/1.0/b', '/api/2.0/b/ACME', '/api/1.0/b/ACME/fund-data'])
      expect((await read(path)).status).toBe(404)
  })
})
