import { describe, expect, it, onTestFinished } from 'vitest'
import { Problems } from '../../src/base/config/problems.ts'
import { NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { type AdminApi, type AdminParts, startAdminListener } from '../../src/operate/listener.ts'
import { ok, type AdminOperation } from '../../src/operate/operation/operation.ts'
import { Operators } from '../../src/operate/operation/operators.ts'
import { compileAdmin } from '../../src/operate/settings/admin.ts'
import { Health } from '../../src/base/kernel/health.ts'
import { eventually } from '../support/eventually.ts'
import { openRaw } from '../support/raw-http.ts'
import { keepEvents } from '../support/listener.ts'

async function startAdmin(overrides: Partial<AdminParts> = {}) {
  const health = new Health()
  const events = keepEvents()
  const admin = await startAdminListener({
    config: { listen: '127.0.0.1:0', tokens: [] },
    operators: new Operators(TOKEN, [], systemClock),
    health,
    recorder: events,
    metrics: () =>
      Promise.resolve({ contentType: 'text/plain; version=0.0.4', text: Promise.resolve('some_metric 1\n') }),
    ...overrides,
  })
  onTestFinished(() => admin.close())
  const get = (path: string, headers: Record<string, string> = {}, port = admin.port): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers })
  return { admin, health, events, get }
}

const TOKEN = 'a-token-of-some-length'
const ROUTE: AdminOperation = {
  method: 'GET',
  path: '/',
  operationId: 'x',
  summary: 'x',
  needs: 'view',
  answers: {},
  handle: () => ok('done'),
}
/** Routes that ask nothing of the service. */
const apiOf = (...routes: AdminOperation[]): AdminApi => ({
  audit: NO_TRAIL,
  routes,
  context: undefined as never,
})

describe('admin listener', () => {
  it('C11.1 serves metrics, liveness and readiness', async () => {
    const { get } = await startAdmin()
    const metrics = await get('/metrics')
    expect(await metrics.text()).toBe('some_metric 1\n')
    expect(metrics.headers.get('content-type')).toContain('version=0.0.4')
    expect(await (await get('/health/live')).json()).toEqual({ status: 'live' })
    expect(await (await get('/health/ready')).json()).toEqual({
      status: 'ready',
      failing: [],
      degraded: [],
    })
  })

  it('C11.1.1 lets operations wait until the service is there, and health tells meanwhile', async () => {
    const context = Promise.withResolvers<never>()
    const api = { ...apiOf(ROUTE), context: context.promise }
    const { admin, get, health } = await startAdmin({ api })
    let there = false
    health.add({ name: 'starting', healthy: () => there })
    const asked = get('/', { Authorization: `Bearer ${TOKEN}` })
    expect((await get('/health/live')).status).toBe(200)
    expect(await (await get('/health/ready')).json()).toMatchObject({ failing: ['starting'] })
    expect((await get('/', { Authorization: 'Bearer of-nobody' })).status).toBe(401)
    there = true
    context.resolve(undefined as never)
    expect(await (await asked).text()).toBe('done')
    expect((await get('/health/ready')).status).toBe(200)
    await admin.close()
  })

  it('C11.1.1 takes 64 connections, and for a further one closes the one that has been idle for longest', async () => {
    const { admin } = await startAdmin()
    const opened = await Promise.all(Array.from({ length: 64 }, () => openRaw(admin.port)))
    onTestFinished(() => opened.forEach((connection) => connection.destroy()))
    const further = await openRaw(admin.port)
    onTestFinished(() => further.destroy())
    further.send('GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    expect((await further.response()).status).toBe(200)
    await eventually(() => expect(opened.filter(({ isClosed }) => isClosed)).toHaveLength(1))
  })

  it('C11.1 is not ready while draining or while a check says no or throws, and says which', async () => {
    const { get, health } = await startAdmin()
    health.add({ name: 'store', healthy: () => false })
    health.add({
      name: 'backend sample',
      healthy: () => {
        throw new Error('10.0.0.1')
      },
    })
    health.drain()
    const ready = await get('/health/ready')
    expect(ready.status).toBe(503)
    expect(await ready.json()).toEqual({
      status: 'not ready',
      failing: ['draining', 'store', 'backend sample'],
      degraded: [],
    })
    expect((await get('/health/live')).status).toBe(200)
  })

  it('C11.1 asks for its token, but for health', async () => {
    const token = 'a-token-of-some-length'
    const { get } = await startAdmin({ config: { listen: '127.0.0.1:0', token, tokens: [] } })
    expect((await get('/health/ready')).status).toBe(200)
    const refused = await get('/metrics')
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toContain('Bearer')
    expect((await get('/metrics', { authorization: `Bearer ${token}x` })).status).toBe(401)
    expect((await get('/metrics', { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  it('C11.1 gives probes and scrapers a read-only listener without a token', async () => {
    const config = { listen: '127.0.0.1:0', token: TOKEN, probes: '127.0.0.1:0', tokens: [] }
    const { get, admin } = await startAdmin({
      config,
      api: apiOf({ ...ROUTE, method: 'POST', path: '/change' }),
    })
    expect((await get('/metrics', {}, admin.probesPort)).status).toBe(200)
    expect((await get('/health/live', {}, admin.probesPort)).status).toBe(200)
    const change = await fetch(`http://127.0.0.1:${admin.probesPort}/change`, { method: 'POST' })
    expect(change.status).toBe(404)
  })

  it('C11.5 answers 405 to a method that a path does not take, and names those it takes', async () => {
    const { admin } = await startAdmin({
      config: { listen: '127.0.0.1:0', token: TOKEN, probes: '127.0.0.1:0', tokens: [] },
      api: apiOf(
        { ...ROUTE, path: '/things/:id' },
        { ...ROUTE, method: 'PATCH', path: '/things/:id', operationId: 'editThing' },
      ),
    })
    for (const [port, method, path, allow] of [
      [admin.port, 'DELETE', '/things/x', 'GET, PATCH'],
      [admin.port, 'POST', '/things/x', 'GET, PATCH'],
      [admin.port, 'POST', '/health/ready', 'GET'],
      [admin.probesPort, 'PUT', '/metrics', 'GET'],
    ] as const) {
      const body = method === 'DELETE' ? null : '{'
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body, headers })
      expect([answer.status, answer.headers.get('allow'), await answer.json()]).toEqual([
        405,
        allow,
        { error: `this path takes only ${allow}` },
      ])
    }
  })

  it('answers its own errors as JSON that echoes nothing, and logs what failed', async () => {
    const { get, events } = await startAdmin({
      api: apiOf({
        ...ROUTE,
        path: '/broken',
        handle: () => {
          throw new Error('secret 10.0.0.1')
        },
      }),
    })
    const broken = await get('/broken', { authorization: `Bearer ${TOKEN}` })
    expect([broken.status, await broken.json()]).toEqual([
      500,
      { error: 'something went wrong; the log tells more' },
    ])
    expect(events.notes).toMatchObject([{ level: 'error', event: 'admin_failed' }])
    for (const path of ['/%3Cscript%3E', '/%ff', '/%zz', `/a/${'x'.repeat(3000)}`]) {
      const missing = await get(path)
      expect([path, missing.status, await missing.text()]).toEqual([
        path,
        404,
        '{"error":"there is nothing at this path"}',
      ])
    }
  })

  it('T7 C11.1 refuses a listener off loopback without authentication, and a token that can be guessed', () => {
    const problems = (config: { listen: string; token?: string }): readonly string[] => {
      const problems = new Problems()
      compileAdmin({ ...config, tokens: [] }, problems)
      return problems.list.map(({ path }) => path.join('.'))
    }
    expect(problems({ listen: '127.0.0.1:9090' })).toEqual([])
    expect(problems({ listen: '[::1]:9090' })).toEqual([])
    expect(problems({ listen: '0.0.0.0:9090' })).toEqual(['admin.listen'])
    expect(problems({ listen: '0.0.0.0:9090', token: 'x'.repeat(32) })).toEqual([])
    expect(problems({ listen: '127.0.0.1:9090', token: 'short' })).toEqual(['admin.token'])
  })
})
