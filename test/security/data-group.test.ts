import { chmod, chown, lstat, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { takeBackFromGroup } from '../../src/start/data-folder.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { needing } from '../support/machine.ts'
import { DEMO, spawnPostern, type SpawnedPostern } from '../support/spawn-postern.ts'
import { startPostern } from '../support/start-postern.ts'

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

const serving = async (data: string, dataGroup: string): Promise<SpawnedPostern> => {
  const config = configFiles({
    'a.yaml': `extends: ${DEMO}\ndataGroup: ${dataGroup}\n`,
  })
  const running = await spawnPostern({ config: config('a.yaml'), environment: { POSTERN_DATA: data } })
  onTestFinished(async () => {
    await running.stop()
  })
  return running
}

const keysOf = async ({ authUrl }: SpawnedPostern): Promise<unknown> =>
  (await fetch(`${authUrl}/.well-known/jwks.json`)).json()

describe('T7 a data folder as fsGroup leaves it', () => {
  it('serves again with the same keys where its group is the service alone, and is private again', async () => {
    const data = await dataFolder()
    const first = await serving(data, 'own')
    const keys = await keysOf(first)
    await first.stop()
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
    await (await startPostern({ data })).close()
    await asFsGroupLeaves(data)
    await expect(serving(data, 'others')).rejects.toThrow(/can be written by other users.*`dataGroup: own`/)
    expect(await modeOf(join(data, 'keys'))).toBe('2770')
  })

  it('is refused where anybody else may do anything, whatever its group is', async () => {
    const data = await dataFolder()
    await (await startPostern({ data })).close()
    await asFsGroupLeaves(data)
    const [key = ''] = await readdir(join(data, 'keys'))
    await chmod(join(data, 'keys', key), 0o664)
    await expect(serving(data, 'own')).rejects.toThrow(/is open to other users \(mode 0664\)/)
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
