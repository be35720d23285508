import { describe, expect, it } from 'vitest'
import { movableClock } from '../support/movable-clock.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

// T3.5: keys that change under load, and tokens that name keys which nobody has.

const SCOPE = 'openid fund.read target:b/ACME'
const DAY = 86_400_000

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> =>
  (
    await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
      headers: { Authorization: `Bearer ${token}` },
    })
  ).status

const kidOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid

/** Another `kid` in the header: the signature then fits no longer, but the key is looked for first. */
function underKey(token: string, kid: string): string {
  const [header = '', ...rest] = token.split('.')
  const members = JSON.parse(Buffer.from(header, 'base64url').toString()) as object
  return [Buffer.from(JSON.stringify({ ...members, kid })).toString('base64url'), ...rest].join('.')
}

describe('T3.5 rotation while the service is used', () => {
  it('C6.3.4 no good token is ever refused, through announcement, change and retirement', async () => {
    const clock = movableClock(Date.now())
    const service = await postern({ clock, keeps: 'store' })
    const kids = new Set<string>()
    let before: string | undefined
    for (let day = 0; day <= 33; day++) {
      await service.world.keys!.rotateIfDue()
      const { access_token } = await issueToken(service, { scope: SCOPE })
      kids.add(kidOf(access_token))
      expect(await call(service, access_token)).toBe(200)
      // Most of a token's life later, after whatever the day's change was.
      clock.advance(890_000)
      await service.world.keys!.rotateIfDue()
      expect(await call(service, access_token)).toBe(200)
      if (before !== undefined) expect(await call(service, before)).toBe(401)
      before = access_token
      clock.advance(DAY - 890_000)
    }
    expect(kids.size).toBe(2)
    const published = service.world.keys!.jwks().keys.map((key) => key['kid'])
    expect(published).not.toContain([...kids][0])
  })

  it('C4.4 a flood of unknown keys is refused, and harms no good token', async () => {
    const service = await postern({ keeps: 'store' })
    const { access_token } = await issueToken(service, { scope: SCOPE })
    const flood = Array.from({ length: 200 }, (_, at) => call(service, underKey(access_token, `../${at}`)))
    const good = Array.from({ length: 50 }, () => call(service, access_token))
    expect(new Set(await Promise.all(flood))).toEqual(new Set([401]))
    expect(new Set(await Promise.all(good))).toEqual(new Set([200]))
  })
})
