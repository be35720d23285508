/** Signing keys as operators list and rotate them, by the admin API and by commands (C11.5.3). */
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../support/audit-files.ts'
import { postForm } from '../support/oauth.ts'
import { operated, operatedHere, type Operated } from '../support/operated.ts'
import { shared } from '../support/shared.ts'
import { issueToken } from '../support/tokens.ts'
import { withoutAudit } from '../support/held-audit.ts'

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const CALLS = 8

/** Every worker answers some of so many. */
async function everywhere<T>(ask: () => Promise<T>): Promise<ReadonlySet<T>> {
  return new Set(await Promise.all(Array.from({ length: CALLS }, ask)))
}

const publishedKids = async ({ authUrl }: Operated): Promise<string> => {
  const response = await fetch(`${authUrl}/.well-known/jwks.json`, { headers: { connection: 'close' } })
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys
    .map(({ kid }) => kid)
    .sort()
    .join(' ')
}

const userinfo = async ({ baseUrl }: Operated, token: string): Promise<number> => {
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  return (await fetch(`${baseUrl}/api/1.0/u/connect/userinfo`, { headers })).status
}

/** Tests find other keys in it than each other, and no family of tokens that is alive. */
const one = shared(() => operatedHere({ keeps: 'trail' }))
const two = shared(() => operated(2))

const BOTH = [
  ['one worker', one],
  ['two workers', two],
] as const

const keysOf = async (service: Operated): Promise<readonly Record<string, string>[]> =>
  (await service.admin('GET', '/keys')).body.keys

/** The names that the next keys get, for the names of those that there are: the last one of each algorithm counts. */
const nextOf = (names: readonly string[]): readonly string[] =>
  ['ES256', 'RS256'].map((algorithm) => {
    const numbers = names
      .filter((name) => name.startsWith(algorithm))
      .map((name) => Number(name.split('-')[1]))
    return `${algorithm}-${Math.max(...numbers) + 1}`
  })

describe('operators', () => {
  it.each(BOTH)(
    'C11.5.3 rotate the keys: all workers publish the next one when it is answered: with %s',
    async (_name, start) => {
      const service = await start()
      const before = await service.admin('GET', '/keys')
      expect(before.body.keys).toMatchObject([
        { algorithm: 'ES256', state: 'signing', nextRotation: expect.stringMatching(/Z$/) },
        { algorithm: 'RS256', state: 'signing' },
      ])
      const names = before.body.keys.map(({ name }: { name: string }) => name)
      const made = nextOf(names)
      expect(JSON.stringify(before.body)).not.toMatch(/"(d|p|q|dp|dq|qi)"/)
      const preview = await service.admin('POST', '/keys/rotate', { preview: true })
      expect(preview.body).toMatchObject({ outcome: 'previewed', made, removed: [] })
      expect((await service.admin('GET', '/keys')).body).toEqual(before.body)
      const rotated = await service.admin('POST', '/keys/rotate', { reason: 'planned' })
      expect(rotated).toMatchObject({
        status: 200,
        body: { outcome: 'rotated', made },
      })
      const published = await everywhere(() => publishedKids(service))
      const { body } = await service.admin('GET', '/keys')
      const states = body.keys.map(({ name, state }: Record<string, string>) => `${name} ${state}`)
      expect(states).toEqual([
        `${names[0]} signing`,
        `${made[0]} announced`,
        `${names[1]} signing`,
        `${made[1]} announced`,
      ])
      const [signing, announced] = body.keys
      expect(signing).toMatchObject({ nextRotation: announced.signsFrom, ends: expect.stringMatching(/Z$/) })
      const kids = body.keys.map(({ kid }: { kid: string }) => kid).sort()
      expect(published).toEqual(new Set([kids.join(' ')]))
      const listed = await service.postern('keys', 'list', '--json')
      expect(JSON.parse(listed.out).keys).toMatchObject(kids.map(() => ({ kid: expect.any(String) })))
      await expect
        .poll(() => recordsOf(service, 'keys.announced'))
        .toMatchObject([
          { on: { id: made[0] }, actor: { operator: 'admin', via: 'admin' }, why: 'planned' },
          { on: { id: made[1] }, actor: { operator: 'admin', via: 'admin' }, why: 'planned' },
        ])
    },
  )

  it.each(BOTH)(
    'C11.5.3 T3.10 replace stolen keys, after a preview: when it is answered, what they signed is refused, and what is issued is good: with %s',
    async (_name, start) => {
      const service = await start()
      const removed = (await keysOf(service)).map(({ name = '' }) => name)
      const made = nextOf(removed)
      const stolen = await issueToken(service, { scope: SCOPE })
      const preview = await service.admin('POST', '/keys/rotate', { compromised: true, preview: true })
      expect(preview.body).toMatchObject({
        ...{ outcome: 'previewed', made, removed, families: 1 },
        keys: [
          { name: made[0], file: `${made[0]}.jwk` },
          { name: made[1] },
          ...removed.map((name) => ({ name })),
        ],
      })
      expect(await userinfo(service, stolen.access_token)).toBe(200)
      const replaced = await service.admin('POST', '/keys/rotate', {
        compromised: true,
        reason: 'laptop lost',
      })
      const fresh = await Promise.all(
        Array.from({ length: CALLS }, () => issueToken(service, { scope: SCOPE })),
      )
      const statuses = await everywhere(() => userinfo(service, stolen.access_token))
      expect(statuses).toEqual(new Set([401]))
      for (const { access_token: token, refresh_token = '' } of fresh) {
        expect(await userinfo(service, token)).toBe(200)
        const { status } = await postForm(service, '/connect/token', {
          params: { grant_type: 'refresh_token', refresh_token },
        })
        expect(status).toBe(200)
      }
      expect(replaced.body).not.toHaveProperty('trouble')
      expect(replaced.body).toMatchObject({
        outcome: 'rotated',
        removed,
        families: 1,
      })
      const params = { grant_type: 'refresh_token', refresh_token: stolen.refresh_token ?? '' }
      expect((await postForm(service, '/connect/token', { params })).status).toBe(400)
      await expect
        .poll(() => recordsOf(service, 'keys.compromised'))
        .toMatchObject([
          { outcome: 'success', actor: { operator: 'admin' }, change: { families: 1 }, why: 'laptop lost' },
        ])
    },
  )

  it('C11.5.3, C12.1.4 replace stolen keys also while nothing can be recorded; that is recorded later', async () => {
    const service = await one()
    const { access_token: token } = await issueToken(service, { scope: SCOPE })
    const { status } = await withoutAudit(service.service, () =>
      service.admin('POST', '/keys/rotate', { compromised: true }),
    )
    expect(status).toBe(200)
    await expect.poll(() => userinfo(service, token)).toBe(401)
    await expect.poll(() => recordsOf(service.service, 'keys.compromised').length).toBe(1)
  })
})
