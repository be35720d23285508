import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { recordsOf } from '../../support/audit-files.ts'
import { onOf } from '../../support/audited-people.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { sized } from '../../support/long.ts'
import { postForm } from '../../support/oauth.ts'
import { ROOT, spawnPostern, WITHOUT_WAITS, type SpawnedPostern } from '../../support/spawn-postern.ts'
import { issueToken } from '../../support/tokens.ts'

// T5.7: a service that is killed with all its processes while tokens are given and revoked.

/** The real service. Its processes are killed all at once. */
async function serve(
  workers: number,
): Promise<{ readonly service: SpawnedPostern; readonly kill: () => void }> {
  const config = join(await dataFolder(), 'config.yaml')
  await writeFile(
    config,
    `extends: ${join(ROOT, 'config/upstream.yaml')}\nworkers: ${workers}\n${WITHOUT_WAITS}\n`,
  )
  const service = await spawnPostern({ config, detached: true })
  onTestFinished(async () => {
    await service.stop()
  })
  return { service, kill: () => void process.kill(-service.pid, 'SIGKILL') }
}

/** What a client was answered. */
interface Answered {
  readonly issued: string[]
  readonly revoked: string[]
}

const idOf = (token: string): string => {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { jti: string }
  return claims.jti
}

/** Refreshes a family as fast as it goes and revokes each access token, until the service dies. */
async function useUntilDeath(served: SpawnedPostern, first: string, answered: Answered): Promise<void> {
  let token = first
  for (;;) {
    const params = { grant_type: 'refresh_token', refresh_token: token }
    const { json, status } = await postForm(served, '/connect/token', { params })
    // A busy store or trail: the same token is good again.
    if (status === 503) continue
    const access = json.access_token as string
    answered.issued.push(idOf(access))
    token = json.refresh_token
    const revocation = await postForm(served, '/connect/revocation', { params: { token: access } })
    if (revocation.status === 200) answered.revoked.push(idOf(access))
  }
}

describe('T5.7 a service killed while it gives and revokes tokens', () => {
  it.each([1, 2])(
    'C12.1.4 of what %i worker(s) answered no record is missing',
    async (workers) => {
      const { service: served, kill } = await serve(workers)
      const scope = 'offline_access fund.read target:b/ACME'
      const families = await Promise.all([1, 2, 3, 4].map(() => issueToken(served, { scope })))
      const answered: Answered = { issued: [], revoked: [] }
      const lanes = families.map(({ refresh_token = '' }) =>
        useUntilDeath(served, refresh_token, answered).catch(() => undefined),
      )
      await expect
        .poll(() => answered.revoked.length, { timeout: 20_000, interval: 5 })
        .toBeGreaterThan(sized(15, 40))
      kill()
      await Promise.all(lanes)
      const idsOf = (event: string) => new Set(recordsOf(served, event).map((record) => onOf(record).id))
      const [issued, revoked] = [idsOf('token.issued'), idsOf('token.revoked')]
      expect(answered.issued.filter((id) => !issued.has(id))).toEqual([])
      expect(answered.revoked.filter((id) => !revoked.has(id))).toEqual([])
    },
    60_000,
  )
})
