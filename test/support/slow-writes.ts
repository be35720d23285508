/** A store that answers no write for a while. The deadlines are those that nobody has set. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { postForm } from './oauth.ts'
import type { SpawnedPostern } from './spawn-postern.ts'
import { issueToken } from './tokens.ts'

/** Milliseconds for which no write is answered. */
const SLOW = 3000

interface Slow {
  /** Begins when it resolves; no write is answered until `end`. */
  readonly begin: () => Promise<{ readonly end: () => unknown }>
}

/** What is asked meanwhile: all of it is answered as ever, and only later. Calls do not wait. */
export async function expectPatience(postern: SpawnedPostern, { begin }: Slow): Promise<void> {
  const login = () => issueToken(postern, { scope: 'openid offline_access business.fund.list target:b/ACME' })
  const post = async (path: string, params: Record<string, string>): Promise<number> =>
    (await postForm(postern, path, { params })).status
  const refresh = (token = '') =>
    post('/connect/token', { grant_type: 'refresh_token', refresh_token: token })
  const [used, revoked] = [await login(), await login()]
  const { end } = await begin()
  let ended = false
  const slow = [
    login().then(() => 200),
    refresh(used.refresh_token),
    post('/connect/revocation', { token: revoked.refresh_token ?? '' }),
  ].map(async (status) => ({ status: await status, waited: ended }))
  const called = fetch(`${postern.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
    headers: { Authorization: `Bearer ${used.access_token}` },
  }).then(({ status }) => ({ status, waited: ended }))
  expect(await called).toEqual({ status: 200, waited: false })
  await delay(SLOW)
  ended = true
  await end()
  expect(await Promise.all(slow)).toEqual(slow.map(() => ({ status: 200, waited: true })))
  expect(await refresh(revoked.refresh_token)).toBe(400)
}
