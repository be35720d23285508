import { mkdtempSync } from 'node:fs'
import { chmod, chown, lstat, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { whoMayReplace } from '../../src/base/files/file-modes.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { takeBackFromGroup } from '../../src/serve/parts/data-folder.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { needing } from '../support/machine.ts'
import { DEMO, spawnPostern, type SpawnedPostern, type SpawnOptions } from '../support/spawn-postern.ts'
import { startPostern } from '../support/start-postern.ts'
import { withAudit } from '../support/with-audit.ts'

/** T7: private files that a Kubernetes `fsGroup` has opened to the group of the volume. */

const modeOf = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o7777).toString(8)

async function* below(folder: string): AsyncGenerator<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    yield path
    if (entry.isDirectory()) yield* below(path)
  }
}

/** What the kubelet does to a volume: every file and folder for the group, folders with their group's bit. */
async function asFsGroupLeaves(data: string): Promise<void> {
  for await (const path of below(data)) await chmod(path, (await lstat(path)).isDirectory() ? 0o2770 : 0o660)
  await chmod(data, 0o2775)
}

const configured = (dataGroup: string, more = ''): string =>
  configFiles({ 'a.yaml': `extends: ${DEMO}\ndataGroup: ${dataGroup}\n${more}` })('a.yaml')

const serving = async (
  data: string,
  dataGroup: string,
  user: Pick<SpawnOptions, 'uid' | 'gid'> = {},
  {
    more = '',
    environment = {},
  }: { readonly more?: string | undefined; readonly environment?: SpawnOptions['environment'] } = {},
): Promise<SpawnedPostern> => {
  const config = configured(dataGroup, more)
  // Another user must find it.
  await chmod(dirname(config), 0o755)
  const running = await spawnPostern({ config, environment: { POSTERN_DATA: data, ...environment }, ...user })
  onTestFinished(async () => {
    await running.stop()
  })
  return running
}

/** What `serve` says, in this process: it ends before it serves. */
const refusal = async (data: string, dataGroup: string): Promise<string> => {
  const { code, stderr } = await runVerb(['serve', configured(dataGroup)], {
    env: { POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: data },
  })
  expect(code).toBe(1)
  return stderr
}

const keysOf = async ({ authUrl }: Pick<SpawnedPostern, 'authUrl'>): Promise<unknown> =>
  (await fetch(`${authUrl}/.well-known/jwks.json`)).json()

describe('T7 a data folder as fsGroup leaves it', () => {
  it('serves again with the same keys where its group is the service alone, and is private again', async () => {
    const data = await dataFolder()
    const first = await startPostern({ data })
    const keys = await keysOf(first)
    await first.close()
    await asFsGroupLeaves(data)
    const second = await serving(data, 'own')
    expect(await keysOf(second)).toEqual(keys)
    expect(second.output()).toContain('withdrew the rights of the group to')
    expect(await modeOf(join(data, 'keys'))).toBe('700')
    for (const name of await readdir(join(data, 'keys')))
      expect(await modeOf(join(data, 'keys', name))).toBe('600')
    for (const name of ['admin-token', 'postern.sqlite']) expect(await modeOf(join(data, name))).toBe('600')
  })

  it('is refused otherwise, and the words name the setting', async () => {
    const data = await dataFolder()
    await (await startPostern({ data, keeps: 'store' })).close()
    await asFsGroupLeaves(data)
    expect(await refusal(data, 'others')).toMatch(/can be written by other users.*`dataGroup: own`/)
    expect(await modeOf(join(data, 'keys'))).toBe('2770')
  })

  it('is refused where anybody else may do anything, whatever its group is', async () => {
    const data = await dataFolder()
    await (await startPostern({ data, keeps: 'store' })).close()
    await asFsGroupLeaves(data)
    const [key = ''] = await readdir(join(data, 'keys'))
    await chmod(join(data, 'keys', key), 0o664)
    expect(await refusal(data, 'own')).toMatch(/is open to other users \(mode 0664\)/)
  })
})

describe('T7 what is taken back from a group', () => {
  it('is what this user owns, two levels deep, and no link is followed', async () => {
    const [data, other] = [await dataFolder(), await dataFolder()]
    for (const path of [join(other, 'x'), join(data, 'a'), join(data, 'open')]) await writeFile(path, '')
    await chmod(join(other, 'x'), 0o660)
    await chmod(join(data, 'a'), 0o460)
    await chmod(join(data, 'open'), 0o666)
    await symlink(join(other, 'x'), join(data, 'link'))
    await symlink(other, join(data, 'folder'))
    expect(await takeBackFromGroup(data)).toEqual([join(data, 'a')])
    expect(await modeOf(join(data, 'a'))).toBe('400')
    expect(await modeOf(join(data, 'open'))).toBe('666')
    expect(await modeOf(join(other, 'x'))).toBe('660')
    expect(await takeBackFromGroup(data)).toEqual([])
    expect(await takeBackFromGroup(join(data, 'nowhere'))).toEqual([])
  })

  it('is nothing of another group or of another user', needing('the rights of root'), async () => {
    const data = await dataFolder()
    for (const [name, uid, gid] of [
      ['group', 0, 54_321],
      ['user', 54_321, 0],
    ] as const) {
      await writeFile(join(data, name), '')
      await chown(join(data, name), uid, gid)
      await chmod(join(data, name), 0o660)
    }
    expect(await takeBackFromGroup(data)).toEqual([])
  })
})

/** Who owns a folder in these tests. */
const SERVICE = 54_321
const ANOTHER = 54_322
const ROOT_USER = 0

describe('T7 a data folder that others could change', () => {
  /** What Node keeps of its compiling for this user: it may neither read nor write what that of the tests has. */
  const compiled = mkdtempSync(join(tmpdir(), 'postern-compiled-'))
  afterAll(() => rm(compiled, { recursive: true, force: true }))
  const asService = async (data: string, dataGroup: string, more?: string): Promise<SpawnedPostern> => {
    await chown(compiled, SERVICE, SERVICE)
    const environment = { NODE_COMPILE_CACHE: compiled }
    return serving(data, dataGroup, { uid: SERVICE, gid: SERVICE }, { environment, more })
  }

  const judged = (uid: number, mode: number, group: 'own' | 'others', user = SERVICE) =>
    whoMayReplace('/data', { uid, mode }, group, user)

  it.each([
    ['its own', SERVICE, 0o700, 'others'],
    ['its own, which others may read', SERVICE, 0o755, 'others'],
    ['of root', ROOT_USER, 0o755, 'others'],
    ['its own and its group’s', SERVICE, 0o2770, 'own'],
    ['of root and its group’s', ROOT_USER, 0o2770, 'own'],
    ['of root, in any mode, as an emptyDir with fsGroup', ROOT_USER, 0o2777, 'own'],
  ] as const)('is taken: %s', (_, uid, mode, group) => {
    expect(judged(uid, mode, group)).toBeUndefined()
  })

  it.each([
    [ANOTHER, 0o700, 'others', 'belongs to the user 54322. As root, run chown -R 54321 /data'],
    [ANOTHER, 0o700, 'own', 'belongs to the user 54322. As root, run chown -R 54321 /data'],
    [SERVICE, 0o777, 'others', 'can be written by other users (mode 0777). Run chmod 700 /data'],
    [SERVICE, 0o777, 'own', 'can be written by other users (mode 0777). Run chmod 700 /data'],
    [
      SERVICE,
      0o770,
      'others',
      'can be written by other users (mode 0770). Run chmod 700 /data, or set `dataGroup: own` if its group is this service alone',
    ],
    [
      ROOT_USER,
      0o777,
      'others',
      'can be written by other users (mode 0777). As root, run chown 54321 /data and chmod 700 /data, or set `dataGroup: own` if its group is this service alone',
    ],
  ] as const)('is refused, with what mends it: user %i, mode %o, dataGroup %s', (uid, mode, group, words) => {
    expect(judged(uid, mode, group)).toBe(words)
  })

  it('is taken of root in any mode where root is the service too', () => {
    expect(judged(ROOT_USER, 0o2777, 'own', ROOT_USER)).toBeUndefined()
    expect(judged(ROOT_USER, 0o2777, 'others', ROOT_USER)).toContain('Run chmod 700 /data')
  })

  it('is refused before anything is made in it', async () => {
    const data = await dataFolder()
    await chmod(data, 0o777)
    await expect(startPostern({ data })).rejects.toThrow(
      `data folder, ${data}, can be written by other users (mode 0777). Run chmod 700 ${data}`,
    )
    expect(await readdir(data)).toEqual([])
  })

  it('is refused where it, or its token, is another user’s', needing('the rights of root'), async () => {
    const data = await dataFolder()
    await (await startPostern({ data, keeps: 'nothing' })).close()
    const token = join(data, 'admin-token')
    await chown(token, ANOTHER, ANOTHER)
    await expect(startPostern({ data })).rejects.toThrow(
      `The admin token ${token} belongs to the user ${ANOTHER}. Run rm ${token}`,
    )
    await chown(token, 0, 0)
    await chown(data, ANOTHER, ANOTHER)
    await expect(startPostern({ data })).rejects.toThrow(
      `belongs to the user ${ANOTHER}. As root, run chown -R root ${data}`,
    )
  })

  it(
    'serves another user from an emptyDir with fsGroup, as a program',
    needing('the rights of root'),
    async () => {
      const data = await dataFolder()
      await chown(data, 0, SERVICE)
      await chmod(data, 0o2777)
      await expect(asService(data, 'others')).rejects.toThrow(
        `run chown ${SERVICE} ${data} and chmod 700 ${data}`,
      )
      await asService(data, 'own')
      expect(await modeOf(join(data, 'admin-token'))).toBe('600')
    },
  )

  it(
    'C12.4.1 takes a trail on a volume of its own by the same rule, and makes it private again',
    needing('the rights of root'),
    async () => {
      const [data, trail] = [await dataFolder(), await dataFolder()]
      for (const folder of [data, trail]) {
        await chown(folder, 0, SERVICE)
        await chmod(folder, 0o2777)
      }
      const more = `audit: { folder: ${trail}, timeout: 20s }`
      const change = (loaded: Configuration): Configuration =>
        withAudit({ ...loaded, dataGroup: 'own' }, { folder: trail })
      await (await startPostern({ data, change })).close()
      for (const folder of [data, trail])
        for await (const path of below(folder)) await chown(path, SERVICE, SERVICE)
      await asFsGroupLeaves(trail)
      await chmod(data, 0o755)
      await expect(asService(data, 'others', more)).rejects.toThrow(
        /the audit trail: its folder, .* can be written by other users \(mode 0775\)/,
      )
      await chmod(data, 0o2777)
      const second = await asService(data, 'own', more)
      expect(second.output()).toContain(`withdrew the rights of the group to ${trail}/`)
      // A running service removes files while they are listed.
      expect(await second.stop()).toBe(0)
      for await (const path of below(trail))
        expect([path, (await lstat(path)).mode & 0o020]).toEqual([path, 0])
    },
  )
})
