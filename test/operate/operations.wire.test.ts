import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FAULTS } from '../../src/base/kernel/fault-table.ts'
import { familiesWith } from '../../src/operate/watch/metrics/families.ts'
import { EXTENSIONS } from '../../src/serve/start/settings.ts'
import { movableClock } from '../support/movable-clock.ts'
import { bearer, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern()
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => gateway.close())

interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

async function scrape(of = gateway): Promise<readonly Series[]> {
  const response = await fetch(`${of.adminUrl}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text])
    return { name, labels: Object.fromEntries(pairs) as Series['labels'], value: Number(value) }
  })
}
const total = (series: readonly Series[], name: string, labels: Series['labels']): number =>
  series
    .filter(
      (each) =>
        each.name === name && Object.entries(labels).every(([key, text]) => each.labels[key] === text),
    )
    .reduce((sum, { value }) => sum + value, 0)

/** How much a series grew by what was done. */
async function growth(act: () => Promise<unknown>, name: string, labels: Series['labels'], of = gateway) {
  const before = total(await scrape(of), name, labels)
  await act()
  return total(await scrape(of), name, labels) - before
}
const ask = (target: string, headers: Record<string, string> = bearer(token)) =>
  send(gateway, { target, headers })

describe('C11.1: /metrics', () => {
  it('C11.1: requests by door, area, method and status', async () => {
    const labels = { door: 'api', area: 'fund-data', method: 'GET', status: '200' }
    expect(await growth(() => ask(LIST), 'postern_requests_total', labels)).toBe(1)
    const identity = { door: 'identity', area: '', method: 'GET', status: '200' }
    const act = () => ask('/.well-known/jwks.json')
    expect(await growth(act, 'postern_requests_total', identity)).toBe(1)
    const userinfo = { door: 'userinfo', status: '401' }
    const refused = () => ask('/api/1.0/u/connect/userinfo', {})
    expect(await growth(refused, 'postern_requests_total', userinfo)).toBe(1)
  })

  it('C11.1, C4: decisions by reason, area and action', async () => {
    const allowed = { reason: 'allowed', area: 'fund-data', action: 'fund-list' }
    expect(await growth(() => ask(LIST), 'postern_decisions_total', allowed)).toBe(1)
    const place = { reason: 'unknown_place', area: 'fund-data', action: 'fund-list' }
    expect(await growth(() => ask(LIST.replace('ACME', 'X')), 'postern_decisions_total', place)).toBe(1)
    const anonymous = { reason: 'no_credentials', area: '', action: '' }
    expect(await growth(() => ask(LIST, {}), 'postern_decisions_total', anonymous)).toBe(1)
  })

  it('C11.1: calls, their time and their failures by action', async () => {
    const labels = { area: 'fund-data', action: 'fund-list' }
    const refused = () => ask(LIST.replace('ACME', 'X'))
    expect(await growth(() => ask(LIST), 'postern_action_calls_total', labels)).toBe(1)
    expect(await growth(refused, 'postern_action_calls_total', labels)).toBe(1)
    expect(await growth(() => ask(LIST), 'postern_action_seconds_total', labels)).toBeGreaterThan(0)
    const series = await scrape()
    expect(total(series, 'postern_action_errors_total', {})).toBe(0)
    expect(series.filter(({ name }) => name === 'postern_action_errors_total').length).toBeGreaterThan(1)
  })

  it('C11.1: what became of the calls of a client that has proved who it is', async () => {
    const name = 'postern_client_decisions_total'
    expect(await growth(() => ask(LIST), name, { client: 'acme-books', class: 'allowed' })).toBe(1)
    const refused = () => ask(LIST.replace('ACME', 'X'))
    expect(await growth(refused, name, { client: 'acme-books', class: 'refused' })).toBe(1)
    const stranger = () => ask(LIST, bearer('a.b.c'))
    expect(await growth(stranger, name, {})).toBe(0)
  })

  it('C11.1: durations, total, of the gateway and of the upstream, in seconds', async () => {
    for (const [name, labels] of [
      ['postern_request_duration_seconds_count', { door: 'api', area: 'fund-data', class: '2xx' }],
      ['postern_gateway_duration_seconds_count', { door: 'api', area: 'fund-data' }],
      ['postern_upstream_duration_seconds_count', { backend: 'sample' }],
    ] as const)
      expect(await growth(() => ask(LIST), name, labels), name).toBe(1)
  })

  it('C11.1: durations in seconds, by the clock: what the upstream takes counts for the request', async () => {
    const clock = movableClock()
    const upstream = await startUpstream((connection) => {
      clock.advance(1250)
      answerJson({ Data: [] })(connection)
    })
    const slow = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      clock,
    })
    const { access_token } = await issueToken(slow, { scope: ALL_AT_ACME })
    const act = () => send(slow, { target: LIST, headers: bearer(access_token) })
    for (const [name, labels] of [
      ['postern_request_duration_seconds_sum', { door: 'api' }],
      ['postern_upstream_duration_seconds_sum', { backend: 'funds' }],
      ['postern_action_seconds_total', { area: 'fund-data', action: 'fund-list' }],
    ] as const)
      expect(await growth(act, name, labels, slow), name).toBeCloseTo(1.25)
    expect(await growth(act, 'postern_gateway_duration_seconds_sum', { door: 'api' }, slow)).toBeCloseTo(0)
  })

  it('C11.1: tokens by grant and result, and the cache', async () => {
    const issued = { grant: 'password', result: 'issued' }
    const issue = () => issueToken(gateway, { scope: 'openid' })
    expect(await growth(issue, 'postern_tokens_total', issued)).toBe(1)
    const refused = () => issueToken(gateway, { scope: 'no.such' }).catch(() => undefined)
    const invalid = { grant: 'password', result: 'invalid_scope' }
    expect(await growth(refused, 'postern_tokens_total', invalid)).toBe(1)
    expect(await growth(() => ask(LIST), 'postern_token_cache_total', { outcome: 'hit' })).toBe(1)
    const bad = () => ask(LIST, bearer('a.b.c'))
    expect(await growth(bad, 'postern_token_cache_total', { outcome: 'miss' })).toBe(1)
  })

  it('C11.1: the backend, build info and the process', async () => {
    expect(await growth(() => ask(LIST), 'postern_backend_calls_total', { backend: 'sample' })).toBe(1)
    const series = await scrape()
    expect(total(series, 'postern_build_info', {})).toBe(1)
    expect(total(series, 'process_resident_memory_bytes', {})).toBeGreaterThan(0)
  })

  it('C11.1: labels come from configuration and code only, never from a request', async () => {
    const odd = 'attacker-chosen'
    await Promise.all([
      ask(`/api/1.0/b/${odd}/fund-data/fund-list`),
      ask(`/api/1.0/b/ACME/${odd}/${odd}`),
      ask(`/${odd}`),
      send(gateway, { method: 'LOCK', target: LIST }),
      send(gateway, {
        target: LIST,
        headers: { 'User-Agent': odd, 'X-Request-Id': odd, Host: `${odd}.example` },
      }),
      issueToken(gateway, { client: odd, username: odd, scope: odd }).catch(() => undefined),
    ])
    const series = await scrape()
    const own = series.filter(({ name }) => name.startsWith('postern_'))
    expect(JSON.stringify(own)).not.toContain(odd)
    expect(JSON.stringify(own)).not.toContain('LOCK')
    const reasons = own.flatMap(({ name, labels }) =>
      name === 'postern_decisions_total' ? [labels['reason']] : [],
    )
    for (const reason of reasons) expect(['allowed', ...Object.keys(FAULTS)]).toContain(reason)
  })

  it('C11.1: names and label sets are those of the table', async () => {
    const added = EXTENSIONS.flatMap(({ counters = [] }) => counters)
    const families = new Map(familiesWith(added).map((family) => [family.name, family.labels]))
    for (const { name, labels } of await scrape()) {
      if (!name.startsWith('postern_')) continue
      const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''))
      expect(family, name).toBeDefined()
      expect(
        Object.keys(labels)
          .filter((label) => label !== 'le')
          .sort(),
        name,
      ).toEqual([...family!].sort())
    }
  })
})

describe('C11.1: health', () => {
  const status = async (path: string, of = gateway) => (await fetch(`${of.adminUrl}${path}`)).status

  it('C11.1: live and ready', async () => {
    expect(await status('/health/live')).toBe(200)
    expect(await status('/health/ready')).toBe(200)
  })

  it('C11.1: the admin listener has a port of its own: nothing of it on the public one, and the reverse', async () => {
    for (const target of ['/metrics', '/health/live', '/health/ready'])
      expect(await send(gateway, { target })).toMatchObject({ status: 404 })
    expect(await status(LIST)).toBe(404)
    expect(await status('/connect/token')).toBe(404)
  })

  it('C11.1: it listens on loopback by default', () => {
    expect(gateway.configuration.admin.listen).toMatch(/^127\.0\.0\.1:/)
    expect(gateway.configuration.server.listen).toMatch(/^127\.0\.0\.1:/)
  })

  it('C11.1: without a token /metrics answers under names of loopback only, so that no web page reads it', async () => {
    const port = Number(new URL(gateway.adminUrl).port)
    const under = async (host: string, path = '/metrics') => {
      const answer = await send({ port }, { target: path, headers: { Host: host } })
      return answer.status
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`])
      expect([host, await under(host)]).toEqual([host, 200])
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', '10.0.0.1'])
      expect([host, await under(host)]).toEqual([host, 421])
    // Probes of a balancer may name anything.
    expect(await under('evil.example', '/health/ready')).toBe(200)
  })

  it('C11.1: with a token it asks for it, but for health', async () => {
    const admin = 'an-admin-token-of-some-length'
    const own = await postern({
      keeps: 'nothing',
      change: (loaded) => ({ ...loaded, admin: { ...loaded.admin, token: admin } }),
    })
    expect(await status('/metrics', own)).toBe(401)
    expect(await status('/health/ready', own)).toBe(200)
    const headers = { Authorization: `Bearer ${admin}` }
    expect((await fetch(`${own.adminUrl}/metrics`, { headers })).status).toBe(200)
  })
})
