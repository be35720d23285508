import type { Explanation } from '../../src/base/contracts/calls/explanation.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import { NO_HOLDINGS, type Holdings } from '../../src/identity/directory/records/holdings.ts'
import { CLIENT } from '../../src/identity/directory/records/stored-directory.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { RECORD_KINDS } from '../../src/identity/directory/editors/editors.ts'
import { adminRoutes } from '../../src/operate/openapi.ts'
import { startAdminListener } from '../../src/operate/listener.ts'
import { Operators } from '../../src/operate/operation/operators.ts'
import type { ServiceContext } from '../../src/operate/operation/context.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { Health } from '../../src/base/kernel/health.ts'
import { MaintenanceRecords } from '../../src/gateway/maintenance/records.ts'
import { MaintenanceSwitches } from '../../src/gateway/maintenance/maintenance.ts'
import { ChangeFeed } from '../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../src/state/stores/sqlite/memory.ts'
import { keepEvents } from '../support/listener.ts'
import { movableClock } from '../support/movable-clock.ts'
import { lint } from '../support/openapi.ts'
import { addedOperations, SETTINGS } from '../../src/serve/start/settings.ts'

const TOKEN = 'a-token-of-some-length'

const ENDED = { sessions: 1, families: 2, codes: 3, consents: 0 }

const { configuration: demo } = SETTINGS.read('config/demo.yaml', { POSTERN_PORT: '8080' })
if (demo === undefined) throw new Error('the demo cannot be read')
const [someClient] = Object.values(demo.directory.clients)
const CONFIGURATION = {
  ...demo,
  vendor: 'postern',
  directory: { ...demo.directory, clients: { c: someClient } },
} as Configuration

const HOLDINGS: Holdings = {
  ...NO_HOLDINGS,
  clients: new Map([['c', { mayHold: true, businesses: [], scopes: [] }]]),
  users: new Map([['s', { username: 'ann', mayHold: true, password: '', access: {}, customers: [] }]]),
  businesses: new Map([['ACME', { mayHold: true, funds: 'any' }]]),
}

const EXPLANATION: Explanation = {
  ...{ outcome: 'unknown', method: 'GET', path: '/connect/token', kind: 'identity', refusal: undefined },
  ...{ reportOnly: undefined, caller: undefined, action: undefined, checks: [] },
}

async function startApi(overrides: Partial<ServiceContext> = {}) {
  const clock = movableClock()
  const recorder = keepEvents()
  const feed = await ChangeFeed.open({
    store: new MemoryStore(clock),
    clock,
    recorder,
    after: () => () => undefined,
  })
  const switches = new MaintenanceSwitches(clock)
  const maintenance = new MaintenanceRecords({ feed, switches, clock, recorder, audit: NO_TRAIL })
  const store = new MemoryStore(clock)
  await store.create(CLIENT, 'stored', { value: {} })
  const asked: unknown[] = []
  const context: Partial<ServiceContext> = {
    audit: NO_TRAIL,
    recorder,
    store,
    maintenance,
    lockouts: {
      list: () => [{ user: 'ann', client: 'c', network: '::1', failures: 7, delay: 1000, at: clock.now() }],
      clear: (...told) => Promise.resolve(asked.push(told)),
    },
    configuration: () => CONFIGURATION,
    settings: SETTINGS,
    holdings: () => HOLDINGS,
    pool: {
      explain: (...told) => (asked.push(told), Promise.resolve(EXPLANATION)),
    } as ServiceContext['pool'],
    tokenRevoker: {
      preview: (...told) => (asked.push(told), Promise.resolve(ENDED)),
      end: (...told) => (asked.push(told), Promise.resolve(ENDED)),
    },
    reload: (...told) => Promise.resolve({ outcome: 'reloaded', warnings: [], revoked: asked.push(told) }),
    trail: undefined,
    trailOwner: undefined,
    restart: () => Promise.resolve({ outcome: 'refused', problems: ['one process serves'] }),
    ...overrides,
  }
  const routes = adminRoutes('1.2.3', RECORD_KINDS, await addedOperations())
  const admin = await startAdminListener({
    config: { listen: '127.0.0.1:0', tokens: [] },
    operators: new Operators(TOKEN, [], clock),
    health: new Health(),
    recorder,
    metrics: () => Promise.resolve({ contentType: 'text/plain', text: Promise.resolve('') }),
    api: { audit: NO_TRAIL, routes, context: Promise.resolve(context as ServiceContext) },
  })
  onTestFinished(() => admin.close())
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${admin.port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return { call, routes, asked, switches, clock, recorder }
}

describe('admin API', () => {
  it('C11.1 asks for its token on every route', async () => {
    const { call, routes } = await startApi()
    for (const { method, path } of routes)
      expect((await call(method, path, undefined, { authorization: 'Bearer wrong' })).status).toBe(401)
  })

  it('C12.2.4 says whether a token is missing, or is nobody’s, and repeats nothing of it', async () => {
    const { call } = await startApi()
    const told = async (authorization: string): Promise<unknown> =>
      (await call('GET', '/maintenance', undefined, { authorization })).body['error']
    for (const none of ['', 'Basic YTpi', 'Bearer'])
      expect(await told(none)).toBe('send the admin token as "Authorization: Bearer"')
    expect(await told('Bearer mistyped-7f')).toBe(
      'this token is not that of the service, nor one of `admin.tokens`: it is mistyped, or was replaced',
    )
  })

  it('describes every route of the listener, and no other', async () => {
    const { call, routes } = await startApi()
    const { body } = await call('GET', '/openapi.json')
    expect(body).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } })
    const described = Object.entries(body['paths'] as Record<string, object>).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const served = routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
    const probes = ['GET /metrics', 'GET /health/live', 'GET /health/ready']
    expect(described.toSorted()).toEqual([...served, ...probes].toSorted())
    const ids = JSON.stringify(body).match(/"operationId":"\w+"/g) ?? []
    expect(new Set(ids).size).toBe(described.length)
  })

  it('C11.5 has a description in which linters find nothing wrong, with schemas that have names', async () => {
    const { call } = await startApi()
    const { body } = await call('GET', '/openapi.json')
    expect(await lint(body)).toEqual([])
    const { schemas } = body['components'] as { readonly schemas: Readonly<Record<string, unknown>> }
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(['Failure', 'Problems', 'AddClientRequest', 'ListKeysResponse']),
    )
    expect(new Set(Object.values(schemas)).size).toBe(Object.keys(schemas).length)
  })

  it('C9.1 switches on, tells, and switches off', async () => {
    const { call, switches } = await startApi()
    const set = await call('PUT', '/maintenance', {
      scope: 'business/ACME',
      message: 'moving',
      retryAfter: 60,
      clients: ['c'],
      by: 'ann',
      reason: 'upgrade',
    })
    expect(set).toMatchObject({ status: 200, body: { scope: 'business/ACME', state: 'on', by: 'ann' } })
    expect(switches.place('ACME', '', '')).toMatchObject({ message: 'moving', retryAfter: 60 })
    const plan = await call('PUT', '/maintenance', { scope: 'service', from: '2027-01-01T00:00:00+10:00' })
    expect(plan.body).toMatchObject({ state: 'planned', from: '2026-12-31T14:00:00.000Z' })
    expect((await call('GET', '/maintenance')).body['switches']).toHaveLength(2)
    expect((await call('DELETE', '/maintenance?scope=business/ACME')).body['switches']).toHaveLength(1)
    expect(switches.place('ACME', '', '')).toBeUndefined()
    const { id } = plan.body as { id: string }
    expect((await call('DELETE', `/maintenance?id=${id}`)).body['switches']).toHaveLength(1)
    expect((await call('GET', '/maintenance')).body).toEqual({ switches: [] })
  })

  it('C9.2 lets clients that stand in the store pass, too', async () => {
    const { call, switches } = await startApi()
    expect((await call('PUT', '/maintenance', { scope: 'service', clients: ['stored', 'c'] })).status).toBe(
      200,
    )
    expect(switches.service()?.clients).toEqual(new Set(['stored', 'c']))
  })

  it.each([
    [{}, 'body.scope  is required'],
    [{ scope: 'everything' }, 'body.scope  must match'],
    [{ scope: 'business/NOBODY' }, 'scope  names no business: "NOBODY"'],
    [{ scope: 'service', untl: 'x' }, 'body.untl  is not known here'],
    [{ scope: 'service', until: 'tomorrow' }, 'body.until  must match'],
    [{ scope: 'service', until: '2026-01-14T00:00Z' }, 'until  is over already'],
    [{ scope: 'service', clients: ['c', 'nobody', 'stored'] }, 'clients  names no client: "nobody"'],
    [{ scope: 'service', retryAfter: '60' }, 'body.retryAfter  must be a whole number'],
    [{ scope: 'service', addresses: ['10.0.0.0/99'] }, 'addresses  "10.0.0.0/99" has a prefix'],
  ])('C9.1 refuses a switch that says %j', async (sent, problem) => {
    const { call, switches } = await startApi()
    const answer = await call('PUT', '/maintenance', sent)
    expect(answer.status).toBe(400)
    expect((answer.body['problems'] as readonly string[]).join('\n')).toContain(problem)
    expect(switches.service()).toBeUndefined()
  })

  it('refuses what is no JSON, and another type, in its own words', async () => {
    const { call } = await startApi()
    expect(await call('POST', '/revoke', '{"client":')).toMatchObject({
      status: 400,
      body: { error: 'the request does not fit' },
    })
    expect((await call('POST', '/revoke', 'x=1', { 'content-type': 'text/plain' })).status).toBe(415)
  })

  it('revokes by what the members have in common, and refuses combinations that no rule has', async () => {
    const { call, asked } = await startApi()
    const sent = { client: 'c', subject: 's', business: 'ACME', reason: 'lost' }
    expect(await call('POST', '/revoke', sent)).toEqual({
      status: 200,
      body: { outcome: 'revoked', sessions: 1, families: 2, codes: 3, consents: 0 },
    })
    expect(asked).toEqual([
      [
        { client: 'c', subject: 's', business: 'ACME' },
        {
          ...{ preview: false, consents: false, force: false },
          cause: { operator: 'admin', by: undefined, reason: 'lost', via: '127.0.0.1' },
        },
      ],
    ])
    await call('POST', '/revoke', { client: 'c', preview: true, consents: true, force: true })
    expect(asked.at(-1)).toEqual([{ client: 'c' }, { preview: true, consents: true, force: true }])
    expect(await call('POST', '/revoke', { client: 'nobody' })).toMatchObject({
      status: 404,
      body: { problems: ['client  is not known: "nobody" — force it if it is right'] },
    })
    await call('POST', '/revoke', { jti: 'j', issuer: 'staff', force: true })
    expect(asked.at(-1)).toMatchObject([{ jti: 'j', issuer: 'staff' }, { force: true }])
    for (const wrong of [
      {},
      { issuer: 'staff' },
      { jti: 'j', client: 'c' },
      { client: '' },
      { client: 'c', preview: 'yes' },
    ])
      expect((await call('POST', '/revoke', wrong)).status).toBe(400)
  })

  it('T3.7 answers 503 if the store could not keep it', async () => {
    const { call } = await startApi({
      tokenRevoker: {
        preview: () => Promise.resolve(ENDED),
        end: () => Promise.reject(new Fault('identity_unavailable')),
      },
    })
    expect(await call('POST', '/revoke', { client: 'c' })).toEqual({
      status: 503,
      body: { error: 'the store is out of reach; what was asked is not done, or in part: try again' },
    })
  })

  it('reloads, with a body or without, and tells every problem of a refusal', async () => {
    const { call, asked } = await startApi()
    expect(await call('POST', '/reload')).toMatchObject({ status: 200, body: { outcome: 'reloaded' } })
    await call('POST', '/reload', { by: 'ann' })
    expect(asked).toMatchObject([[{ by: undefined }], [{ by: 'ann' }]])
    const refused = await startApi({
      reload: () => Promise.resolve({ outcome: 'refused', problems: ['a.yaml:1  vendor  is wrong'] }),
    })
    expect(await refused.call('POST', '/reload')).toEqual({
      status: 409,
      body: {
        error: 'the configuration was refused; nothing has changed',
        problems: ['a.yaml:1  vendor  is wrong'],
      },
    })
  })

  it('C6.3.5 lists and clears lockouts', async () => {
    const { call, asked } = await startApi()
    expect((await call('GET', '/lockouts')).body['lockouts']).toMatchObject([
      { user: 'ann', failures: 7, at: '2026-01-15T00:00:00.000Z' },
    ])
    expect((await call('DELETE', '/lockouts?user=ann&by=bob')).body).toEqual({ cleared: 1 })
    expect(asked).toEqual([[{ user: 'ann' }]])
    expect((await call('DELETE', '/lockouts')).status).toBe(400)
  })

  it('shows the configuration in force', async () => {
    const { call } = await startApi()
    expect((await call('GET', '/configuration')).body).toMatchObject({ vendor: 'postern' })
    expect((await call('POST', '/restart')).status).toBe(409)
  })

  it('C14.1 hands a described call to the service, and its answer back', async () => {
    const { call, asked } = await startApi()
    const described = {
      ...{ method: 'POST', path: '/api/1.0/b/A/x/y?z=1', headers: ['Accept: text/plain', 'X-Time:12:30'] },
      ...{ body: '{"a":1}', from: '192.0.2.9', client: 'c', user: 'u', target: 'b/A', scope: 's', by: 'ann' },
    }
    expect(await call('POST', '/explain', described)).toMatchObject({
      status: 200,
      body: { outcome: 'unknown', kind: 'identity' },
    })
    expect(asked).toMatchObject([
      [
        {
          ...{ method: 'POST', path: '/api/1.0/b/A/x/y?z=1', from: '192.0.2.9', token: undefined },
          headers: [
            ['Accept', 'text/plain'],
            ['X-Time', '12:30'],
          ],
          body: Buffer.from('{"a":1}'),
          caller: { client: 'c', user: 'u', target: 'b/A', scope: 's' },
        },
      ],
    ])
  })

  it.each([
    [{}, 'body.method'],
    [{ method: 'GET', path: '/', token: 't', client: 'c', user: 'u' }, 'not both'],
    [{ method: 'GET', path: '/', user: 'u' }, 'expected `client` beside `user`'],
    [{ method: 'GET', path: '/', scope: 's' }, 'expected `client` beside `user`'],
    [{ method: 'GET', path: '/', body: 'a', bodyBase64: 'YQ==' }, 'not both'],
    [{ method: 'GET', path: '/', headers: ['no colon'] }, 'Name: value'],
    [{ method: 'GET', path: '/', more: 1 }, 'more'],
  ])('C14.1 refuses the description %j', async (described, why) => {
    const { call, asked } = await startApi()
    const { status, body } = await call('POST', '/explain', described)
    expect([status, asked]).toEqual([400, []])
    expect(JSON.stringify(body['problems'])).toContain(why)
  })
})
