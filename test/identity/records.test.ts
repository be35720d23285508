import { describe, expect, it } from 'vitest'
import { type AuditEntry, type AuditTrail, NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import type { AuditEvent } from '../../src/base/kernel/audit-events.ts'
import type { TestIdentityOptions } from '../support/identity-under-test.ts'
import { app, authorizePath, obtainCode, openFlow, redeem, UserAgent, USERS } from '../support/user-agent.ts'

type Way = 'require' | 'settle' | 'keep' | 'refuse'

/** A trail that remembers what it was asked to record, and how. */
function remember() {
  const entries: (AuditEntry & { readonly way: Way })[] = []
  const put = (way: Way, entry: AuditEntry): number => entries.push({ ...entry, way })
  const trail: AuditTrail = {
    ...NO_TRAIL,
    on: true,
    require: (entry) => Promise.resolve(put('require', entry)),
    settle: (entry) => Promise.resolve(void put('settle', entry)),
    keep: (entry) => Promise.resolve(put('keep', entry) > 0),
    refuse: (_refusal, entry) => void put('refuse', entry()),
  }
  return { trail, of: (event: AuditEvent) => entries.filter((entry) => entry.event === event) }
}

function open(options: TestIdentityOptions = {}) {
  const { of, trail } = remember()
  return { of, trail, service: openFlow({ ...options, deps: { audit: trail } }) }
}

describe('C12.3 what identity records', () => {
  it('C12.3 a session whose user may not log in any more is revoked by the service, once', async () => {
    const { of, service, trail } = open()
    const { agent } = await obtainCode(service)
    const users = [{ ...USERS[0]!, disabled: true }]
    const later = new UserAgent(openFlow({ users, store: service.store, deps: { audit: trail } }))
    later.cookie = agent.cookie
    for (const path of ['/connect/account', authorizePath()]) await later.get(path)
    expect(of('session.revoked')).toMatchObject([
      { way: 'keep', actor: { kind: 'service' }, on: { kind: 'session', subject: 'sub-alice' } },
    ])
  })

  it('C12.1.4 of two redemptions at once, the second one takes back what it had recorded', async () => {
    const { of, service } = open()
    const { code } = await obtainCode(service)
    const statuses = (await Promise.all([redeem(service, code), redeem(service, code)])).map(
      ({ status }) => status,
    )
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 400])
    const given = of('token.issued').filter(({ way }) => way === 'require')
    expect(given).toHaveLength(2)
    expect(of('token.issued').filter(({ way }) => way === 'settle')).toMatchObject([
      { outcome: 'refused', reason: 'invalid_grant', intent: expect.any(Number) },
    ])
    expect(of('code.replayed')).toHaveLength(1)
  })

  it('C12.1.5 a code that gave nothing and comes back counts as a refusal', async () => {
    const { of, service } = open()
    const { code } = await obtainCode(service)
    await redeem(service, code, { code_verifier: 'short' })
    await redeem(service, code)
    const [replay] = of('code.replayed')
    expect(replay).toMatchObject({ way: 'refuse', outcome: 'refused', reason: 'invalid_grant' })
    expect(replay?.change).toBeUndefined()
  })

  it('C12.3 tokens of a public client tell the user as actor, and its refusals nobody', async () => {
    const { of, service } = open()
    const parameters = { client_id: app.id, redirect_uri: 'http://127.0.0.1:5000/callback' }
    const { code } = await obtainCode(service, parameters)
    await redeem(service, code, parameters, '')
    await redeem(service, code, parameters, '')
    expect(of('token.issued')).toMatchObject([
      { way: 'require', actor: { kind: 'user', subject: 'sub-alice', client: app.id } },
    ])
    expect(of('token.refused')).toMatchObject([
      { way: 'refuse', actor: { kind: 'anonymous' }, on: { client: app.id, subject: 'sub-alice' } },
    ])
  })

  it('C12.3 nothing is recorded of a page that is only shown', async () => {
    const { of, service } = open()
    await new UserAgent(service).get(authorizePath())
    expect(of('authorization.refused')).toEqual([])
    expect(of('login.refused')).toEqual([])
  })
})
