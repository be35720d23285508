import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { needing } from '../support/machine.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import { bearer } from '../support/requests.ts'
import { onStore, sharedStore } from '../support/shared-store.ts'
import { postern, type StartedPostern, type StartOptions } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

/** The change feed cannot be read until the returned function is called. Everything else of the store answers. */
async function cutOff({ world: { store, state } }: StartedPostern): Promise<() => void> {
  const changes = store.changes.bind(store)
  const fail = (): Promise<never> =>
    Promise.reject(new Fault('identity_unavailable', { detail: 'the network is down' }))
  Object.assign(store, { changes: fail })
  // A reading that was under way may succeed still.
  await state.feed.refresh()
  return () => Object.assign(store, { changes })
}

/** A data call that alice's token allows. */
const call = (service: StartedPostern, token: string): Promise<Response> =>
  fetch(`${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })

const login = (service: StartedPostern) =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE },
  })

async function opened(options: StartOptions = {}) {
  const clock = movableClock(Date.now())
  const service = await postern({ keeps: 'nothing', clock, ...options })
  const { access_token, refresh_token = '' } = await issueToken(service, { scope: SCOPE })
  return { clock, service, token: access_token, refresh_token }
}

describe('T3.13 a process that does not hear of changes', () => {
  it('C11.7.2 issues no tokens after a second, and serves data calls', async () => {
    const { clock, service, token, refresh_token } = await opened()
    await cutOff(service)
    clock.advance(1001)
    const refreshed = await postForm(service, '/connect/token', {
      params: { grant_type: 'refresh_token', refresh_token },
    })
    for (const { status, json, headers } of [await login(service), refreshed]) {
      expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await call(service, token)).status).toBe(200)
  })

  it('C11.7.2 used nothing up with such a 503: the refresh token works when the feed can be read again', async () => {
    const { clock, service, refresh_token } = await opened()
    const putBack = await cutOff(service)
    clock.advance(1001)
    const refresh = () =>
      postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })
    expect((await refresh()).status).toBe(503)
    putBack()
    expect((await refresh()).status).toBe(200)
  })
})

describe('T3.13 a node that is cut off from the store of several', needing('postgresql'), () => {
  it('C11.7.2 C4.15 answers data calls with 503 from store.maxAge on, and says that it is not ready', async () => {
    const store = await sharedStore({ maxAge: 60_000 })
    const { clock, service, token } = await opened({ change: onStore(store) })
    const ready = async () => (await fetch(`${service.adminUrl}/health/ready`)).json()
    await cutOff(service)
    clock.advance(59_000)
    expect((await call(service, token)).status).toBe(200)
    expect(await ready()).toMatchObject({ status: 'ready', degraded: [{ name: 'store' }] })
    clock.advance(2000)
    await service.world.state.view.settle()
    const refused = await call(service, token)
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ Errors: [{ Code: 'API_UNAVAILABLE' }] })
    expect(await ready()).toMatchObject({ failing: ['store'] })
  })

  it('C11.7.1 issues tokens with the store’s time, though its own clock is an hour ahead', async () => {
    const HOUR = 3600
    const now = () => systemClock.now() + HOUR * 1000
    const service = await postern({
      keeps: 'nothing',
      clock: { now, monotonic: () => systemClock.monotonic() },
      change: onStore(await sharedStore()),
    })
    const { access_token } = await issueToken(service, { scope: SCOPE })
    const { iat } = JSON.parse(Buffer.from(access_token.split('.')[1]!, 'base64url').toString())
    // Half an hour tells whose time it is.
    expect(Math.round((now() / 1000 - iat) / HOUR)).toBe(1)
    const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
    const offset = Number(/^postern_clock_offset_seconds (.*)$/mu.exec(metrics)?.[1])
    expect(Math.round(offset / HOUR)).toBe(-1)
  })
})
