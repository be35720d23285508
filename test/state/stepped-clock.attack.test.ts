import { describe, expect, it } from 'vitest'
import { movableClock } from '../support/movable-clock.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const LIFE = 900_000
/** Of the day of the demo's agreements: before it began there would be none, and no grant. */
const NOON = Date.UTC(2026, 0, 15, 12)

async function started() {
  const clock = movableClock(NOON)
  const gateway = await postern({ clock, keeps: 'store' })
  const { access_token: token, refresh_token: refresh } = await issueToken(gateway, {
    scope: 'fund.read offline_access target:b/ACME',
  })
  return { clock, gateway, token, refresh }
}

const statusOf = async (gateway: StartedPostern, token: string): Promise<number> =>
  (await fetch(`${gateway.baseUrl}${LIST}`, { headers: { Authorization: `Bearer ${token}` } })).status

describe('T5.6: a wall clock that somebody sets', () => {
  it.each([30_000, 120_000])(
    'C4.16: %d ms forth, a token expires so much earlier and not a moment later',
    async (step) => {
      const { clock, gateway, token } = await started()
      clock.step(step)
      expect(await statusOf(gateway, token)).toBe(200)
      clock.advance(LIFE - step - 1000)
      expect(await statusOf(gateway, token)).toBe(200)
      clock.advance(1000)
      expect(await statusOf(gateway, token)).toBe(401)
    },
  )

  it.each([30_000, 120_000])(
    'C4.16: %d ms back, a known token goes on, and ends by the clock as it is then',
    async (step) => {
      const { clock, gateway, token } = await started()
      clock.step(-step)
      expect(await statusOf(gateway, token)).toBe(200)
      clock.advance(LIFE + step)
      expect(await statusOf(gateway, token)).toBe(401)
    },
  )

  it('a token that expired stays expired, also in the cache, when the clock is set forth and back', async () => {
    const { clock, gateway, token } = await started()
    clock.advance(LIFE)
    expect(await statusOf(gateway, token)).toBe(401)
    clock.step(120_000)
    expect(await statusOf(gateway, token)).toBe(401)
  })

  it.each([-120_000, -30_000, 30_000, 120_000])(
    'new tokens are issued and good after a step of %d ms',
    async (step) => {
      const { clock, gateway } = await started()
      clock.step(step)
      const { access_token } = await issueToken(gateway, { scope: 'fund.read target:b/ACME' })
      expect(await statusOf(gateway, access_token)).toBe(200)
    },
  )

  it('C4.5: durations are measured by the monotonic clock, so a step neither sheds load nor stalls a call', async () => {
    const { clock, gateway, token } = await started()
    for (const step of [-120_000, 120_000, 3_600_000, -3_600_000]) {
      clock.step(step)
      expect(await statusOf(gateway, token)).not.toBe(503)
    }
    const durations = gateway.log().flatMap(({ event, ms }) => (event === 'call' ? [Number(ms)] : []))
    expect(durations.every((ms) => ms >= 0 && ms < 1000)).toBe(true)
  })
})
