/** The release before, this version, and back, on one data folder. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasCommit, layOut } from '../support/earlier-postern.ts'
import { freePort } from '../support/free-port.ts'
import { collect, expectKept } from '../support/holdings.ts'
import { ROOT, spawnPostern, type SpawnedPostern, ENDS_AT_ONCE } from '../support/spawn-postern.ts'

const run = promisify(execFile)

/** The last commit of the release before. A release that follows changes it, and the versions below. */
const BEFORE = { commit: '6b86facdc453', version: '0.1.0' }

const versionOf = (root: string): string =>
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version

describe('an upgrade', { timeout: 180_000 }, () => {
  let folder: string
  let old: string
  let config: string
  /** It is a part of the issuer's URL, so it stays. */
  let port: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-upgrade-'))
    old = join(folder, 'old')
    if (!(await hasCommit(BEFORE.commit))) return
    await layOut(BEFORE.commit, old)
    config = join(folder, 'postern.yaml')
    await writeFile(config, `extends: ${join(old, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    port = String(await freePort())
  }, 180_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const environment = (data: string) => ({ POSTERN_DATA: data, POSTERN_PORT: port, POSTERN_CONFIG: config })

  /** Serves with the version in `root` while `use` runs. Nothing of its start may be an error. */
  async function served<T>(
    root: string,
    data: string,
    use: (service: SpawnedPostern) => Promise<T>,
  ): Promise<T> {
    const service = await spawnPostern({ root, config, environment: environment(data) })
    try {
      return await use(service)
    } finally {
      expect(await service.stop()).toBe(0)
      expect(service.output()).not.toContain('"level":"error"')
    }
  }

  const audited = (root: string, data: string) =>
    run(process.execPath, ['src/main.ts', 'audit', 'verify'], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...environment(data) },
    })

  it('goes on with all that the release before has written, and that release with all of this but refresh tokens', async (context) => {
    if (!(await hasCommit(BEFORE.commit)))
      context.skip(`the commit ${BEFORE.commit} is not in this copy of the repository`)
    expect(versionOf(old)).toBe(BEFORE.version)
    const data = join(folder, 'data')
    const first = await served(old, data, (service) => collect(service, data, 'dora'))
    const [second, gone] = await served(ROOT, data, async (service) => [
      await collect(service, data, 'erik'),
      await expectKept(service, first),
    ])
    const back = await served(old, data, async (service) => [
      await expectKept(service, second, false),
      await expectKept(service, gone, false),
    ])
    await served(ROOT, data, async (service) => {
      for (const held of back) await expectKept(service, held)
    })
    for (const root of [old, ROOT]) expect((await audited(root, data)).stdout).toContain('whole')
  })
})
