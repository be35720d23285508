/** The release before, this version, and back, on one data folder. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORMER_ADVICE } from '../../src/extensions/audit/format/former.ts'
import { readTrail } from '../extensions/audit/support/audit-chain.ts'
import { hasCommit, layOut } from '../support/earlier-postern.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { collect, expectKept } from '../support/holdings.ts'
import { ROOT, spawnPostern, type SpawnedPostern, ENDS_AT_ONCE } from '../support/spawn-postern.ts'

const run = promisify(execFile)

/** The last commit of the release before. A release that follows changes it, and the versions below. */
const BEFORE = { commit: '4a4b8a62', version: '0.2.0' }

const versionOf = (root: string): string =>
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

describe('an upgrade', { timeout: 180_000 }, () => {
  let folder: string
  let old: string
  let config: string
  /** For the release before, once this version has served: it does not begin where this one's trail is. */
  let back: string
  /** For this version after that: it names its folder, so that a trail which is still in another one is not missing. */
  let again: string
  /** It is a part of the issuer's URL, so it stays. */
  let port: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-upgrade-'))
    old = join(folder, 'old')
    if (!(await hasCommit(BEFORE.commit))) return
    await layOut(BEFORE.commit, old)
    config = join(folder, 'postern.yaml')
    await writeFile(config, `extends: ${join(old, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    back = join(folder, 'back.yaml')
    await writeFile(back, `extends: ${config}\naudit: { folder: ${trailOfOld()} }\n`)
    again = join(folder, 'again.yaml')
    await writeFile(again, `extends: ${config}\naudit: { folder: ${join(folder, 'data', 'audit')} }\n`)
    port = String(await freePort())
  }, 180_000)
  const trailOfOld = (): string => join(folder, 'trail-of-old')
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const environment = (data: string, file = config) => ({
    POSTERN_DATA: data,
    POSTERN_PORT: port,
    POSTERN_CONFIG: file,
  })

  /** Serves with the version in `root` while `use` runs. Nothing of its start may be an error. */
  async function served<T>(
    root: string,
    data: string,
    use: (service: SpawnedPostern) => Promise<T>,
    file = config,
  ): Promise<T> {
    const service = await spawnPostern({ root, config: file, environment: environment(data, file) })
    try {
      return await use(service)
    } finally {
      expect(await service.stop()).toBe(0)
      expect(service.output()).not.toContain('"level":"error"')
    }
  }

  /** `audit verify` of the version in `root`: of the trail of its configuration, or of a folder. */
  const audited = (root: string, data: string, file: string, ...folders: readonly string[]): Promise<Ended> =>
    run(process.execPath, ['src/main.ts', 'audit', 'verify', ...folders], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...environment(data, file) },
    }).then(
      (ended) => ({ code: 0, ...ended }),
      (failed: unknown) => failed as Ended,
    )

  it('goes on with all that the release before has written but its trail, which that release still verifies, and that release with all of this in a trail of its own: C12.4.8', async (context) => {
    if (!(await hasCommit(BEFORE.commit)))
      context.skip(`the commit ${BEFORE.commit} is not in this copy of the repository`)
    expect(versionOf(old)).toBe(BEFORE.version)
    const data = join(folder, 'data')
    const trail = join(data, 'audit')
    const former = join(trail, '0.2')
    const first = await served(old, data, (service) => collect(service, data, 'dora'))
    const manifest = readFileSync(join(trail, 'manifest.jsonl'), 'utf8')
    const [second, gone] = await served(ROOT, data, async (service) => {
      const held = [await collect(service, data, 'erik'), await expectKept(service, first)] as const
      await eventually(() => expect(service.output()).toContain('"event":"audit_trail_moved"'))
      return held
    })
    // As it was, with how it ended told in the trail that follows it.
    expect(readFileSync(join(former, 'manifest.jsonl'), 'utf8')).toBe(manifest)
    const { n: line, hash } = JSON.parse(manifest.trim().split('\n').at(-1) ?? '') as {
      n: number
      hash: string
    }
    expect(readTrail(trail).filter(({ event }) => event === 'audit.trail_moved')).toMatchObject([
      { outcome: 'success', on: { kind: 'trail', id: '0.2' }, change: { line, hash } },
    ])
    expect(await audited(old, data, back, former)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('whole'),
    })
    expect(await audited(ROOT, data, config, former)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(FORMER_ADVICE),
    })
    // The release before begins nowhere where it cannot read how the trail ended.
    await expect(served(old, data, () => Promise.resolve())).rejects.toThrow(
      /The last line of the audit manifest .* is damaged or was changed/,
    )
    const returned = await served(
      old,
      data,
      async (service) => [await expectKept(service, second), await expectKept(service, gone)],
      back,
    )
    await served(
      ROOT,
      data,
      async (service) => {
        for (const held of returned) await expectKept(service, held)
      },
      again,
    )
    // By its folder: the store tells the release before also of the trail of this version, which it cannot read.
    expect(await audited(old, data, back, trailOfOld())).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('whole'),
    })
    const now = await audited(ROOT, data, again)
    expect(now).toMatchObject({ code: 0, stdout: expect.stringContaining('whole') })
    expect(now.stdout).toContain(former)
    expect(readTrail(trail).filter(({ event }) => event === 'audit.trail_moved')).toHaveLength(1)
  })
})
