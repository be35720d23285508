import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Problems } from '../../src/base/config/problems.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { explanationText } from '../../src/operate/explain/explanation-text.ts'
import { accessMatrix, type MatrixFilter } from '../../src/operate/settings/access-matrix.ts'
import { NOTHING_STORED, readParties } from '../../src/operate/settings/parties.ts'
import { recordsOf } from '../support/audit-files.ts'
import { configFiles } from '../support/config-files.ts'
import { explain } from '../support/explained.ts'
import { askAsMachine, withClient, withMachines } from '../support/machines.ts'
import { postForm } from '../support/oauth.ts'
import { bearer, send } from '../support/requests.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { READING, SETTINGS } from '../support/settings.ts'

/** C6.1.5a: tokens of machines, which act for nobody. */

let gateway: StartedPostern
let upstream: Upstream
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'trail',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) =>
      withClient(withMachines(loaded), 'watcher', {
        kind: 'customer',
        grants: ['password'],
        agreement: '2026-01-15',
        businesses: ['ACME'],
        scopes: ['fund.read'],
        resource: true,
      }),
  })
})
afterAll(() => Promise.all([gateway.close(), upstream.close()]))

const DEMO = join(ROOT, 'config/demo.yaml')
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const tokenOf = async (params: Readonly<Record<string, string>> = {}, client?: string): Promise<string> =>
  (await askAsMachine(gateway, params, client)).json.access_token

describe('C6.1.5a: the client credentials grant', () => {
  it('C6.1.5a: a machine of one business gets a token for it, and nothing that outlives or names anybody', async () => {
    const { status, json } = await askAsMachine(gateway)
    expect([status, json]).toEqual([
      200,
      {
        access_token: expect.any(String),
        token_type: 'bearer',
        expires_in: 900,
        scope: 'fund.read target:b/ACME',
      },
    ])
    const claims = decodeJwt(json.access_token)
    expect(claims).toMatchObject({ sub: 'nightly', client_id: 'nightly', machine: true })
    for (const absent of ['role', 'auth_time', 'family']) expect(claims).not.toHaveProperty(absent)
  })

  it('C6.1.5a: a target of its businesses is granted, a fund too', async () => {
    const scopes = ['fund.read target:b/ACME', 'fund.read target:f/ACME/SUPER1']
    for (const scope of scopes) expect((await askAsMachine(gateway, { scope })).json.scope).toBe(scope)
    const { json } = await askAsMachine(gateway, { scope: 'fund.read target:b/GLOBEX' }, 'both')
    expect(json.scope).toBe('fund.read target:b/GLOBEX')
  })

  it.each([
    ['no target, of several businesses', 'fund.read', 'both'],
    ['a bare target:b', 'fund.read target:b', 'nightly'],
    ['another business', 'fund.read target:b/GLOBEX', 'nightly'],
    ['a fund that there is not', 'fund.read target:f/ACME/NONE', 'nightly'],
    ['two targets', 'fund.read target:b/ACME target:b/GLOBEX', 'both'],
    ['nothing but a target', 'target:b/ACME', 'nightly'],
    ['nothing but what is about people', 'openid profile offline_access', 'nightly'],
    ['a value that there is not', 'fund.read nonsense', 'nightly'],
  ])('C6.1.5a: %s is invalid_scope', async (_, scope, client) => {
    const { status, json } = await askAsMachine(gateway, { scope }, client)
    expect([status, json.error]).toEqual([400, 'invalid_scope'])
  })

  it('C5.5: what is about people, and lasting access, is dropped', async () => {
    const scope = 'openid email offline_access fund.read service_profile'
    const { json } = await askAsMachine(gateway, { scope })
    expect(json.scope).toBe('fund.read target:b/ACME')
    expect(json).not.toHaveProperty('id_token')
    expect(json).not.toHaveProperty('refresh_token')
  })

  it('C6.1.5a: a machine may use no other grant, and no other client this one', async () => {
    const grants = [
      { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'fund.read' },
      { grant_type: 'authorization_code', code: 'c', redirect_uri: 'https://a.example/' },
      { grant_type: 'refresh_token', refresh_token: 't' },
    ]
    for (const params of grants) {
      const { status, json } = await askAsMachine(gateway, params)
      expect([status, json.error]).toEqual([400, 'unauthorized_client'])
    }
    for (const client of ['acme-books', 'ledgerline']) {
      const { status, json } = await askAsMachine(gateway, {}, client)
      expect([status, json.error]).toEqual([400, 'unauthorized_client'])
    }
  })

  it('C6.3.2: discovery names the grant where there is a machine, and only there', async () => {
    const grantsOf = async ({ authUrl }: StartedPostern): Promise<readonly string[]> => {
      const answer = await fetch(`${authUrl}/.well-known/openid-configuration`)
      return ((await answer.json()) as { grant_types_supported: readonly string[] }).grant_types_supported
    }
    expect(await grantsOf(gateway)).toContain('client_credentials')
    const demo = await startPostern({ keeps: 'trail' })
    try {
      expect(await grantsOf(demo)).toEqual(['password', 'authorization_code', 'refresh_token'])
    } finally {
      await demo.close()
    }
  })
})

describe('C6.1.5a: its token', () => {
  it('C8.2: opens data, and the service is told the client and no subject', async () => {
    upstream.requests.splice(0)
    const { status } = await send(gateway, { target: LIST, headers: bearer(await tokenOf()) })
    expect(status).toBe(200)
    const [received] = upstream.requests
    expect(received?.headers).toMatchObject({
      'x-postern-client': ['nightly'],
      'x-postern-business': ['ACME'],
    })
    expect(received?.headers).not.toHaveProperty('x-postern-subject')
  })

  it('C4.8: opens its own target only', async () => {
    const headers = bearer(await tokenOf({ scope: 'fund.read target:b/GLOBEX' }, 'both'))
    expect((await send(gateway, { target: LIST, headers })).status).toBe(404)
  })

  it('C6.3.1: gets nothing of userinfo: 401 insufficient_scope', async () => {
    const target = '/api/1.0/u/connect/userinfo'
    const { status, headers } = await send(gateway, { target, headers: bearer(await tokenOf()) })
    expect(status).toBe(401)
    expect(headers['www-authenticate']).toContain('error="insufficient_scope"')
  })

  it('C6.3.3: is introspected as its own, without a user name, and ends by revocation', async () => {
    const token = await tokenOf()
    const ask = async (client: string) =>
      (await postForm(gateway, '/connect/introspect', { client, params: { token } })).json as object
    for (const client of ['nightly', 'watcher']) {
      const told = await ask(client)
      expect(told).toMatchObject({ active: true, sub: 'nightly', client_id: 'nightly' })
      expect(told).not.toHaveProperty('username')
    }
    expect(await ask('both')).toEqual({ active: false })
    const revoked = await postForm(gateway, '/connect/revocation', { client: 'nightly', params: { token } })
    expect(revoked.status).toBe(200)
    expect(await ask('watcher')).toEqual({ active: false })
    expect((await send(gateway, { target: LIST, headers: bearer(token) })).status).toBe(401)
  })

  it('C12.3: is recorded with the machine as the actor, and no subject', async () => {
    const before = recordsOf(gateway, 'token.issued').length
    await askAsMachine(gateway)
    await expect.poll(() => recordsOf(gateway, 'token.issued').length).toBe(before + 1)
    const record = recordsOf(gateway, 'token.issued').at(-1)
    expect(record).toMatchObject({
      actor: { kind: 'client', client: 'nightly' },
      grant: { grant: 'client_credentials', scope: 'fund.read target:b/ACME', target: 'target:b/ACME' },
    })
    expect(record?.['actor']).not.toHaveProperty('subject')
    expect(record?.['on']).not.toHaveProperty('subject')
  })
})

describe('C14.1 C11.5.7: operators ask about machines', () => {
  it('C14.1: a call of a machine is explained without a user', async () => {
    const caller = { client: 'nightly', user: undefined, target: undefined, scope: 'fund.read' }
    const explanation = await explain(gateway, { target: LIST }, { caller })
    expect(explanation).toMatchObject({
      outcome: 'let in',
      caller: { client: 'nightly', subject: undefined, target: 'b/ACME', by: 'claimed' },
    })
    expect(explanationText(explanation)).toContain('machine nightly, target b/ACME')
  })

  it.each([
    ['a machine for a user', { client: 'nightly', user: 'alice' }, 'unauthorized_client'],
    ['another client for nobody', { client: 'acme-books', user: undefined }, 'invalid_grant'],
    [
      'a machine of several businesses without a target',
      { client: 'both', user: undefined },
      'invalid_scope',
    ],
  ])('C14.1: %s would get no token', async (_, parties, reason) => {
    const caller = { target: undefined, scope: undefined, ...parties }
    expect(await explain(gateway, { target: LIST }, { caller })).toMatchObject({ refusal: { reason } })
  })

  it('C11.5.7: a test token of a machine needs no user, and opens what the machine may', async () => {
    const admin = readFileSync(join(gateway.data, 'admin-token'), 'utf8').trim()
    const ask = async (wish: object) => {
      const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
      const sent = { method: 'POST', headers, body: JSON.stringify(wish) }
      const answer = await fetch(`${gateway.adminUrl}/test-tokens`, sent)
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    }
    const { status, body } = await ask({ client: 'nightly' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ client: 'nightly', scope: 'fund.maintain target:b/ACME' })
    expect(body).not.toHaveProperty('subject')
    const headers = bearer(String(body['token']))
    expect((await send(gateway, { target: LIST, headers })).status).toBe(200)
    expect((await ask({})).status).toBe(400)
    expect((await ask({ client: 'acme-books' })).status).toBe(409)
  })

  it('C14.5: a machine is in the matrix by itself, and for no user', async () => {
    const { configuration } = gateway
    const parts = { ...READING, stored: NOTHING_STORED, clock: systemClock }
    const parties = await readParties(configuration, parts, new Problems())
    const client = parties.clients.get('nightly')
    const access = (filter: MatrixFilter): readonly string[] =>
      [...accessMatrix(parties, { ...filter, business: 'ACME' })].flatMap(({ operations }) =>
        operations
          .filter(({ operation: { action, method } }) => action === 'fund-list' && method === 'GET')
          .map(({ access, missing }) => [access, ...missing.map(({ text }) => text)].join(': ')),
      )
    expect(access({ client })).toEqual(['yes'])
    expect(access({ client, user: parties.findUser('alice') })).toEqual([
      'no: nightly is a machine, which acts for no user',
    ])
  })
})

describe('C6.1.5a: check', () => {
  const told = async (upstreamOf: string, scopes: string) => {
    const at = configFiles({
      'a.yaml': [
        `extends: ${DEMO}`,
        'directory:',
        `  clients: { nightly: { kind: machine, name: N, secrets: ['sha256:${'A'.repeat(43)}'], grants: [client_credentials], businesses: [ACME], scopes: [${scopes}] } }`,
        'backends:',
        `  up: { kind: http, identity: headers, target: 'http://127.0.0.1:9' }`,
        'areas: { fund-data: { backend: up } }',
        'actions:',
        `  - { level: business, area: fund-data, action: mine, methods: { GET: { scopes: { any: [fund.maintain] }, upstream: { ${upstreamOf} } } } }`,
      ].join('\n'),
    })
    const { list } = await SETTINGS.check(at('a.yaml'), {})
    return list.filter(({ message }) => message.includes('{subject}')).map(({ message }) => message)
  }

  it('C6.1.5a: warns where a template names the user and a machine reaches it, and names both', async () => {
    const path = `path: '/users/{subject}'`
    expect(await told(path, 'fund.maintain')).toEqual([
      'names {subject}, and the machine "nightly" reaches GET fund-data/mine: a machine is no user, so its calls are 500',
    ])
    expect(await told(path, 'fund.read')).toEqual([])
    expect(await told('path: /users', 'fund.maintain')).toEqual([])
  })
})
