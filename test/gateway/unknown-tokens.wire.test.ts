/** Calls with tokens that are not known yet: each is decided twice, and counted once (C4.4). */
import { expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { movableClock } from '../support/movable-clock.ts'
import { openRaw } from '../support/raw-http.ts'
import { bearer, requestBytes, send } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const USERINFO = '/api/1.0/u/connect/userinfo'

/** Each client may make ten calls. No token fits into the cache, so that each call verifies its own. */
const forgetful =
  (mode: 'enforce' | 'report-only') =>
  ({ load, areas, ...rest }: Configuration): Configuration => ({
    ...rest,
    tokenCache: { size: 1 },
    areas: { ...areas, 'fund-data': { backend: 'funds', mode } },
    load: { ...load, clients: { ...load.clients, rate: { requests: 10, per: 100_000, burst: 10 } } },
  })

async function start(mode: 'enforce' | 'report-only' = 'enforce') {
  const upstream = await startUpstream()
  const gateway = await postern({
    keeps: 'nothing',
    clock: movableClock(),
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: forgetful(mode),
  })
  const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  return { gateway, upstream, token }
}

/** What is left of the ten calls after one. */
async function left(gateway: StartedPostern, token: string, target = LIST): Promise<string | undefined> {
  const { status, headers } = await send(gateway, { target, headers: bearer(token) })
  expect(status).toBe(200)
  return /r=(\d+)/.exec(headers['ratelimit'] ?? '')?.[1]
}

const decisions = (gateway: StartedPostern): number =>
  gateway.log().filter(({ event, door }) => event === 'call' && door !== 'identity').length

it('C4.5 a call whose token is not known yet costs its rate once, and is logged once', async () => {
  const { gateway, upstream, token } = await start()
  expect(await left(gateway, token)).toBe('9')
  expect(await left(gateway, token, USERINFO)).toBe('8')
  expect(await left(gateway, token)).toBe('7')
  expect([decisions(gateway), upstream.requests.length]).toEqual([3, 2])
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  expect(metrics).toContain(`postern_token_cache_total{outcome="miss"} 3`)
})

it('C4.5 a call with such a token in a report-only area costs its rate once', async () => {
  const { gateway, upstream, token } = await start('report-only')
  expect(await left(gateway, token)).toBe('9')
  expect([decisions(gateway), upstream.requests.length]).toEqual([1, 1])
  expect(upstream.requests[0]?.headers['x-postern-decision']).toEqual(['allow'])
})

it('C4.2 C9.2 such a call costs its rate once where it passes maintenance because its client is on the list', async () => {
  const { gateway, token } = await start()
  gateway.switches.set([{ scope: { kind: 'service' }, retryAfter: 9, clients: ['acme-books'] }])
  expect(await left(gateway, token)).toBe('9')
  expect(decisions(gateway)).toBe(1)
})

it('C4.11 a body that comes while the token is verified goes on whole, and so does the request behind it', async () => {
  const { gateway, upstream, token } = await start()
  const body = JSON.stringify({ Code: 'NEW', Name: 'n'.repeat(200), Tags: Array(50).fill('t'.repeat(200)) })
  const headers = { 'Content-Type': 'application/json' }
  const client = await openRaw(gateway.port)
  client.send(
    Buffer.concat([
      requestBytes({ method: 'POST', target: CREATE, headers: { ...headers, ...bearer(token) }, body }),
      requestBytes({ target: LIST, headers: bearer(token) }),
    ]),
  )
  expect([(await client.response()).status, (await client.response()).status]).toEqual([200, 200])
  client.destroy()
  expect(upstream.requests.map(({ method }) => method)).toEqual(['POST', 'GET'])
  expect(JSON.parse(String(upstream.requests[0]?.body))).toEqual(JSON.parse(body))
})
