import { describe, expect, it, onTestFinished } from 'vitest'
import { dataFolder } from '../support/data-folder.ts'
import { isLong } from '../support/long.ts'
import { postForm } from '../support/oauth.ts'
import { type SpawnedPostern, spawnPostern } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

// T3.6, T5.7: a service that is killed in the middle of refreshes, again and again.

/** The real service in a process of its own. */
async function serve(data: string): Promise<SpawnedPostern> {
  const served = await spawnPostern({ environment: { POSTERN_DATA: data } })
  onTestFinished(async () => {
    await served.stop()
  })
  return served
}

/** Sends a refresh, again with the same token while the store is too busy to answer in time (C6.1.4). */
async function refresh(served: Pick<SpawnedPostern, 'authUrl'>, token: string) {
  const params = { grant_type: 'refresh_token', refresh_token: token }
  for (;;) {
    const answer = await postForm(served, '/connect/token', { params })
    if (answer.status !== 503) return answer
  }
}

/** Refreshes one family as fast as it goes until the service dies; the last refresh token that was answered. */
async function refreshUntilDeath(served: Pick<SpawnedPostern, 'authUrl'>, token: string): Promise<string> {
  let last = token
  for (;;) {
    const answer = await refresh(served, last).catch(() => undefined)
    if (answer === undefined) return last
    expect(answer.status).toBe(200)
    last = answer.json.refresh_token
  }
}

/** Refreshes of one more family before each death. */
const ROUNDS = isLong ? [3, 10, 25] : [3, 15]

describe('T5.7 a service killed in the middle of refreshes', () => {
  it('C6.1.7 loses no family: the last token that each client was answered is good after every death', async () => {
    const data = await dataFolder()
    let served: Pick<SpawnedPostern, 'authUrl'>
    let dying = await serve(data)
    served = dying
    const scope = 'offline_access fund.read target:b/ACME'
    const families = await Promise.all([1, 2, 3, 4].map(() => issueToken(served, { scope })))
    let tokens = families.map(({ refresh_token = '' }) => refresh_token)
    for (const [at, answers] of ROUNDS.entries()) {
      const started = tokens.map((token) => refreshUntilDeath(served, token))
      // So many further refreshes later, in the middle of others.
      let { refresh_token: own = '' } = await issueToken(served, { scope })
      for (let count = 0; count < answers; count++) own = (await refresh(served, own)).json.refresh_token
      process.kill(dying.pid, 'SIGKILL')
      await dying.stop()
      tokens = await Promise.all(started)
      // The last one is only asked.
      served = at < ROUNDS.length - 1 ? (dying = await serve(data)) : await postern({ data })
    }
    for (const token of tokens) expect((await refresh(served, token)).status).toBe(200)
  })
})
