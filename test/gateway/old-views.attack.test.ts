import { describe, expect, it } from 'vitest'
import { cutOff } from '../support/cut-off.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import { bearer } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

/** A data call that alice's token allows. */
const call = (service: StartedPostern, token: string): Promise<Response> =>
  fetch(`${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })

const login = (service: StartedPostern) =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE },
  })

async function opened() {
  const clock = movableClock(Date.now())
  const service = await postern({ keeps: 'nothing', clock })
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
