import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { accessTokenHash } from '../../src/identity/keys/verify/signatures.ts'
import { API, basic, client, verify, type TestIdentity } from '../support/identity-under-test.ts'
import {
  app,
  authorizePath,
  openFlow,
  partner,
  redeem,
  USERS,
  VERIFIER,
  obtainCode,
} from '../support/user-agent.ts'

const OFFLINE = { scope: 'openid fund.read offline_access target:b/ACME' }

const refresh = (service: TestIdentity, token: string) =>
  service.send({
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic('ledgerline') },
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token }).toString(),
  })

const isLive = (service: TestIdentity, token: string): Promise<boolean> =>
  Promise.resolve()
    .then(() => service.check.check(token))
    .then(
      () => true,
      () => false,
    )

describe('C6.1.6 redeeming a code', () => {
  it('C6.1.6 gives what was consented to', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    const { status, json } = await redeem(service, code)
    expect([status, json.token_type, json.scope]).toEqual([200, 'bearer', OFFLINE.scope])
    const { payload } = await verify(json.id_token, 'ledgerline', 'JWT', service.clock.at)
    const authTime = Math.floor(service.clock.at / 1000)
    expect(payload).toMatchObject({ sub: 'sub-alice', nonce: 'n-1', auth_time: authTime })
    expect(payload['at_hash']).toBe(accessTokenHash(json.access_token, 'RS256'))
    const access = await verify(json.access_token, API, 'at+jwt', service.clock.at)
    expect(access.payload).toMatchObject({ client_id: 'ledgerline', scope: OFFLINE.scope })
    expect((await refresh(service, json.refresh_token)).status).toBe(200)
  })

  it('C6.1.6 without offline_access and openid there is an access token only', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, { scope: 'fund.read target:b/ACME' })
    const { json } = await redeem(service, code)
    expect(Object.keys(json)).toEqual(['access_token', 'token_type', 'expires_in', 'scope'])
  })

  it('C6.1.6 by a public client, with its verifier alone', async () => {
    const service = openFlow()
    const redirect = 'http://127.0.0.1:51004/callback'
    const { code } = await obtainCode(service, { client_id: 'pocketbooks', redirect_uri: redirect })
    const params = { client_id: 'pocketbooks', redirect_uri: redirect }
    expect((await redeem(service, code, params, '')).status).toBe(200)
  })

  it('C6.2.4 the code is in the store as a hash, for 60 s', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service)
    expect(JSON.stringify(await service.store.list('code'))).not.toContain(code)
    service.clock.at += 60_000
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
  })

  it.each([
    ['another redirect_uri', { redirect_uri: 'https://app.test/other?fixed=1' }, 'invalid_grant'],
    ['no redirect_uri', { redirect_uri: undefined }, 'invalid_request'],
    ['another verifier', { code_verifier: VERIFIER.replace('d', 'e') }, 'invalid_grant'],
    ['no verifier', { code_verifier: undefined }, 'invalid_grant'],
    ['a verifier that is too short', { code_verifier: 'short' }, 'invalid_grant'],
  ])('C6.1.6 an attempt of its own client with %s fails, and takes the code', async (_, params, error) => {
    const service = openFlow()
    const { code } = await obtainCode(service)
    expect((await redeem(service, code, params)).json.error).toBe(error)
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
  })

  it('C6.1.4 without a code it is invalid_request', async () => {
    expect((await redeem(openFlow(), '', { code: undefined })).json.error).toBe('invalid_request')
  })

  it('C6.2.1 a verifier without a challenge is invalid_grant', async () => {
    const service = openFlow()
    const none = { code_challenge: undefined, code_challenge_method: undefined }
    const { code } = await obtainCode(service, none)
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
    const second = await obtainCode(service, none)
    expect((await redeem(service, second.code, { code_verifier: undefined })).status).toBe(200)
  })

  it('C6.1.6 another client’s attempt is invalid_grant and changes nothing', async () => {
    const thief = client('thief', { kind: 'partner', grants: ['authorization_code'] })
    const service = openFlow({ clients: [partner, app, thief] })
    const { code } = await obtainCode(service)
    expect((await redeem(service, code, {}, basic('thief'))).json.error).toBe('invalid_grant')
    const { status, json } = await redeem(service, code)
    expect(status).toBe(200)
    expect((await redeem(service, code, {}, basic('thief'))).json.error).toBe('invalid_grant')
    expect(await isLive(service, json.access_token)).toBe(true)
  })

  it.each([
    ['with', OFFLINE.scope],
    ['without', 'openid fund.read target:b/ACME'],
  ])('C6.1.6 a second use revokes what the first one gave, %s a refresh token', async (_, scope) => {
    const service = openFlow()
    const { code } = await obtainCode(service, { scope })
    const { json } = await redeem(service, code)
    expect(await isLive(service, json.access_token)).toBe(true)
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
    expect(await isLive(service, json.access_token)).toBe(false)
    expect(await service.store.list('refresh_family')).toHaveLength(0)
    if (json.refresh_token !== undefined)
      expect((await refresh(service, json.refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.6 one write uses the code and stores its family, so a death in between leaves neither', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    const redeeming = vi
      .spyOn(service.store, 'redeem')
      .mockRejectedValueOnce(new Fault('identity_unavailable'))
    expect((await redeem(service, code)).status).toBe(503)
    expect(await service.store.list('refresh_family')).toEqual([])
    const { json } = await redeem(service, code)
    expect(redeeming).toHaveBeenCalledTimes(2)
    expect((await refresh(service, json.refresh_token)).status).toBe(200)
    expect(await service.store.list('code')).toMatchObject([{ value: { settled: true } }])
  })

  it('C6.1.6 the process that gave out a code does not read it again', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    const finding = vi.spyOn(service.store, 'find')
    expect((await redeem(service, code)).status).toBe(200)
    expect(finding.mock.calls.filter(([kind]) => kind === 'code')).toEqual([])
  })

  it('C6.1.6 a code that another process has redeemed is a replay at the one that gave it out', async () => {
    const service = openFlow()
    const other = openFlow({ store: service.store })
    const { code } = await obtainCode(service, OFFLINE)
    const { json } = await redeem(other, code)
    expect(await service.store.list('refresh_family')).toHaveLength(1)
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
    expect(await service.store.list('refresh_family')).toHaveLength(0)
    expect((await refresh(other, json.refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.6 a code that was withdrawn is unknown at the process that gave it out, and no replay', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    for (const { key } of await service.store.list('code')) await service.store.remove('code', key)
    const { json } = await redeem(service, code)
    expect(json).toMatchObject({ error: 'invalid_grant' })
    expect(await service.store.list('refresh_family')).toEqual([])
    expect(service.notes.filter(({ event }) => event === 'code_replayed')).toEqual([])
  })

  it('C6.1.6 a second use is known until the last token has expired', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    const { json } = await redeem(service, code)
    service.clock.at += 29 * 86_400_000
    expect((await redeem(service, code)).json.error).toBe('invalid_grant')
    expect((await refresh(service, json.refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.6 of 50 parallel redemptions exactly one succeeds, and its tokens do not outlive the others', async () => {
    const service = openFlow()
    const { code } = await obtainCode(service, OFFLINE)
    const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(service, code)))
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    for (const { json, status } of answers) if (status !== 200) expect(json.error).toBe('invalid_grant')
    expect(await isLive(service, good[0]?.json.access_token)).toBe(false)
    expect(await service.store.list('refresh_family')).toHaveLength(0)
  })

  it('C6.1.6 a user who is gone, or has lost the business, gets nothing', async () => {
    for (const users of [[], [{ ...USERS[0]!, disabled: true }], [{ ...USERS[0]!, access: new Map() }]]) {
      const service = openFlow()
      const { code } = await obtainCode(service)
      const later = openFlow({ users, store: service.store })
      expect((await redeem(later, code)).json.error).toBe('invalid_grant')
    }
  })

  it('C6.1.6 a customer’s client may use the flow if it is configured so', async () => {
    const customer = client('acme-books', {
      grants: ['authorization_code'],
      redirectUris: ['https://app.test/callback'],
    })
    const service = openFlow({ clients: [customer] })
    const { code } = await obtainCode(service, { client_id: 'acme-books' }, { username: 'greta' })
    expect((await redeem(service, code, {}, basic('acme-books'))).status).toBe(200)
  })

  it('C6.1.8 auth_time is the login’s, however old', async () => {
    const service = openFlow()
    const loggedIn = Math.floor(service.clock.at / 1000)
    const { agent } = await obtainCode(service)
    service.clock.at += 3_600_000
    const { location } = await agent.get(authorizePath())
    const { json } = await redeem(service, location?.searchParams.get('code') ?? '')
    const { payload } = await verify(json.id_token, 'ledgerline', 'JWT', service.clock.at)
    expect(payload['auth_time']).toBe(loggedIn)
  })
})
