import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'
const USERINFO = '/api/1.0/u/connect/userinfo'

describe('C5.2: a second deployment, whose actions need api1', () => {
  let demo: StartedPostern
  let sandbox: StartedPostern

  beforeAll(async () => {
    ;[demo, sandbox] = await Promise.all([
      startPostern({ keeps: 'nothing' }),
      startPostern({ keeps: 'nothing', config: 'sandbox.yaml' }),
    ])
  })

  afterAll(async () => {
    await Promise.all([demo.close(), sandbox.close()])
  })

  const call = (at: StartedPostern, path: string, token: string) =>
    fetch(`${at.baseUrl}${path}`, { headers: { Authorization: `Bearer ${token}` } })
  const tokenOf = async (at: StartedPostern, scope: string) => (await issueToken(at, { scope })).access_token
  const discover = async (at: StartedPostern) =>
    (await (await fetch(`${at.authUrl}/.well-known/openid-configuration`)).json()) as { issuer: string }

  it('is an issuer of its own, with an API of its own', async () => {
    expect((await discover(sandbox)).issuer).toBe(sandbox.authUrl)
    expect((await discover(demo)).issuer).not.toBe(sandbox.authUrl)
  })

  it('has ports and a data folder of its own, so that both can run on one machine', () => {
    const read = (name: string) =>
      SETTINGS.read(new URL(`../../config/${name}`, import.meta.url).pathname, {}).configuration!
    const [one, other] = [read('demo.yaml'), read('sandbox.yaml')]
    expect(other.server.listen).toBe('127.0.0.1:8180')
    expect(other.admin.listen).toBe('127.0.0.1:9190')
    expect(other.data).not.toBe(one.data)
  })

  it('C4.7 refuses a token without api1, and says which scopes are needed', async () => {
    const token = await tokenOf(sandbox, 'fund.maintain target:b/ACME')
    for (const [path, own] of [
      [FUNDS, 'fund.read'],
      [MEMBERS, 'fund.member.read'],
    ] as const) {
      const refused = await call(sandbox, path, token)
      expect(refused.status).toBe(401)
      const challenge = refused.headers.get('www-authenticate')
      expect(challenge).toContain('error="insufficient_scope"')
      expect(challenge).toContain(`scope="${own} api1"`)
    }
  })

  it('C4.7 refuses api1 alone, since the action needs its own scope too', async () => {
    const token = await tokenOf(sandbox, 'api1 target:b/ACME')
    expect((await call(sandbox, FUNDS, token)).status).toBe(401)
  })

  it('answers what the demo does to a token that has both', async () => {
    const token = await tokenOf(sandbox, ALL_AT_ACME)
    const answer = await call(sandbox, FUNDS, token)
    expect(answer.status).toBe(200)
    const same = await call(demo, FUNDS, await tokenOf(demo, 'fund.read target:b/ACME'))
    expect(await answer.json()).toEqual(await same.json())
  })

  it('C4.4 takes a token of one deployment for invalid at the other, userinfo included', async () => {
    const ofDemo = await tokenOf(demo, ALL_AT_ACME)
    const ofSandbox = await tokenOf(sandbox, ALL_AT_ACME)
    for (const path of [FUNDS, MEMBERS, USERINFO]) {
      for (const refused of [await call(sandbox, path, ofDemo), await call(demo, path, ofSandbox)]) {
        expect(refused.status).toBe(401)
        expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"')
      }
      expect((await call(demo, path, ofDemo)).status).toBe(200)
      expect((await call(sandbox, path, ofSandbox)).status).toBe(200)
    }
  })

  it('C6.1.7 takes no refresh token of the other', async () => {
    const { refresh_token = '' } = await issueToken(demo, { scope: 'offline_access fund.read target:b/ACME' })
    const response = await fetch(`${sandbox.authUrl}/connect/token`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token }),
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' })
  })
})
