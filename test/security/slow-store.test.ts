/** A store that answers slowly: the machine or its disk is busy. The deadlines are those that nobody has set. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { dataFolder } from '../support/data-folder.ts'
import { postForm } from '../support/oauth.ts'
import { ENDS_AT_ONCE, ROOT, spawnPostern } from '../support/spawn-postern.ts'
import { startStoreProcess } from '../support/store-process.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** Milliseconds for which no write is answered. */
const SLOW = 3000

it('T5.5 a store that takes 3 s makes logins, refreshes and revocations slow, and fails none; calls do not wait', async () => {
  const config = join(await dataFolder(), 'postern.yaml')
  writeFileSync(config, `extends: ${join(ROOT, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
  const postern = await spawnPostern({ config })
  onTestFinished(async () => {
    await postern.stop()
  })
  const login = () => issueToken(postern, { scope: `${ALL_AT_ACME} offline_access` })
  const post = async (path: string, params: Record<string, string>): Promise<number> =>
    (await postForm(postern, path, { params })).status
  const [used, revoked] = [await login(), await login()]
  const holder = startStoreProcess('hold', join(postern.data, 'postern.sqlite'))
  await holder.line('held')
  let released = false
  const slow = [
    ...[1, 2, 3].map(async () => ((await login()).refresh_token === undefined ? 0 : 200)),
    post('/connect/token', { grant_type: 'refresh_token', refresh_token: used.refresh_token ?? '' }),
    post('/connect/revocation', { token: revoked.refresh_token ?? '' }),
  ].map(async (status) => ({ status: await status, waited: released }))
  const called = fetch(`${postern.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
    headers: { Authorization: `Bearer ${used.access_token}` },
  }).then(({ status }) => ({ status, waited: released }))
  expect(await called).toEqual({ status: 200, waited: false })
  await delay(SLOW)
  released = true
  holder.process.stdin?.write('release\n')
  expect(await Promise.all(slow)).toEqual(slow.map(() => ({ status: 200, waited: true })))
  expect(
    await post('/connect/token', { grant_type: 'refresh_token', refresh_token: revoked.refresh_token ?? '' }),
  ).toBe(400)
})
