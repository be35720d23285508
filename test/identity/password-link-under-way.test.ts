/** T6.7: what happens to a link between the form and the write. */
import { describe, expect, it, vi } from 'vitest'
import { type AuditTrail, NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { drawPasswordLink } from '../../src/identity/stored/password-links.ts'
import type { TestIdentity } from '../support/identity-under-test.ts'
import { CHOSEN } from '../support/password-links.ts'
import { openFlow, UserAgent } from '../support/user-agent.ts'

describe('T6.7 a form of a link that is under way', () => {
  const RECORD = {
    ...{ username: 'alice', subject: 'sub-alice', password: 'alice-password' },
    ...{ customers: ['acme-books'], disabled: false, locked: false, access: {}, claims: {} },
  }

  /** Alice's link, opened; `recorded` is called once its use is recorded, and nothing is written yet. */
  async function opened(recorded: (service: TestIdentity) => Promise<unknown>) {
    const audit: AuditTrail = {
      ...NO_TRAIL,
      require: async (entry) => {
        if (entry.event === 'user.password_set') await recorded(service)
        return NO_TRAIL.require(entry)
      },
    }
    const service: TestIdentity = openFlow({ deps: { audit } })
    const { clock, store } = service.identity.dependencies
    await store.create('directory_user', 'alice', { value: { record: RECORD } })
    const link = drawPasswordLink(RECORD, 3_600_000, { store, clock })
    await link.open()
    const agent = new UserAgent(service)
    const page = await agent.get(`/connect/link?code=${link.code}`)
    const choose = () => agent.submit(page, { password: CHOSEN, again: CHOSEN })
    const password = async () =>
      ((await store.find('directory_user', 'alice'))?.value['record'] as typeof RECORD).password
    return { ...{ service, agent, choose, password }, reload: () => agent.get('/connect/link') }
  }

  it.each<[string, (service: TestIdentity) => Promise<unknown>]>([
    ['is revoked', ({ identity }) => identity.dependencies.tokenRevoker.end({ subject: 'sub-alice' })],
    [
      'has a newer one beside it',
      ({ identity: { dependencies } }) => {
        const clock = { ...dependencies.clock, now: () => dependencies.clock.now() + 1 }
        return drawPasswordLink(RECORD, 3_600_000, { store: dependencies.store, clock }).open()
      },
    ],
  ])('T6.7 C6.3.7: sets nothing where the link %s before it is written', async (_, act) => {
    const { choose, password } = await opened(act)
    expect((await choose()).status).toBe(404)
    expect(await password()).toBe('alice-password')
  })

  it('T6.7 C6.3.7: uses nothing up where the store fails before the password is written', async () => {
    let fails = true
    const { choose, password, reload } = await opened(({ store }) => {
      if (fails) vi.spyOn(store, 'replace').mockRejectedValueOnce(new Fault('identity_unavailable'))
      fails = false
      return Promise.resolve()
    })
    expect((await choose()).status).toBe(503)
    expect([await password(), (await reload()).status]).toEqual(['alice-password', 200])
    expect((await choose()).text).toContain('Your password is set')
    expect(await password()).toBe(CHOSEN)
  })
})
