import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { postForm } from '../support/oauth.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

// T3.7: an answer that says "revoked" though the store failed (CVE-2020-15223).

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const VERBS = ['find', 'append', 'removeBy'] as const

const revoke = (service: StartedPostern, token: string) =>
  postForm(service, '/connect/revocation', { params: { token } })

const isActive = async (service: StartedPostern, token: string): Promise<boolean> =>
  (await postForm(service, '/connect/introspect', { params: { token } })).json.active

/** Runs while one verb of the store fails. */
async function without<T>(
  { world: { store } }: StartedPostern,
  verb: (typeof VERBS)[number],
  act: () => Promise<T>,
): Promise<T> {
  const own = store[verb].bind(store)
  const fail = (): Promise<never> =>
    Promise.reject(new Fault('identity_unavailable', { detail: 'the disk is full' }))
  Object.assign(store, { [verb]: fail })
  try {
    return await act()
  } finally {
    Object.assign(store, { [verb]: own })
  }
}

describe('T3.7 a revocation that the store could not keep', () => {
  it.each(VERBS)('C6.3.3 of a refresh token is 503 where %s fails, and a repeat revokes it', async (verb) => {
    const service = await postern({ keeps: 'store' })
    const { access_token, refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    const { status, headers, json } = await without(service, verb, () => revoke(service, refresh_token))
    expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(JSON.stringify(json)).not.toContain('disk')
    // What was not said to be revoked is still there to be revoked.
    expect((await revoke(service, refresh_token)).status).toBe(200)
    expect(await isActive(service, refresh_token)).toBe(false)
    expect(await isActive(service, access_token)).toBe(false)
  })

  it('C6.3.3 of an access token is 503 where the rule cannot be kept, and the token lives on', async () => {
    const service = await postern({ keeps: 'store' })
    const { access_token } = await issueToken(service, { scope: SCOPE })
    const { status } = await without(service, 'append', () => revoke(service, access_token))
    expect(status).toBe(503)
    expect(await isActive(service, access_token)).toBe(true)
    expect((await revoke(service, access_token)).status).toBe(200)
    expect(await isActive(service, access_token)).toBe(false)
  })

  it('C6.1.7 a replay whose family cannot be ended is 503, not a refusal that forgets it', async () => {
    const service = await postern({
      keeps: 'store',
      change: (configuration) => ({
        ...configuration,
        identity: { ...configuration.identity, refreshToken: { lifetime: 3_600_000, grace: 0 } },
      }),
    })
    const { refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    const refresh = (token: string) =>
      postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token: token } })
    const { json } = await refresh(refresh_token)
    expect((await without(service, 'append', () => refresh(refresh_token))).status).toBe(503)
    expect(await isActive(service, json.access_token)).toBe(true)
    expect((await refresh(refresh_token)).json.error).toBe('invalid_grant')
    expect(await isActive(service, json.access_token)).toBe(false)
  })
})
