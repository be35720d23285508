/** Two services on one data folder. */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { DEMO, spawnPostern, type SpawnedPostern } from '../support/spawn-postern.ts'

const WARNING = 'another service uses the data folder'

describe('a data folder', () => {
  it('C6.3.5 a second service on it is warned of; one that starts after the first was killed is not', async () => {
    const data = await dataFolder()
    let services = 0
    // Each has a trail of its own: on that of another one it would wait for the other's end.
    const start = async (): Promise<SpawnedPostern> => {
      services += 1
      const config = configFiles({
        'a.yaml': `extends: ${DEMO}\naudit: { folder: ${join(data, `trail-${services}`)} }\n`,
      })('a.yaml')
      const service = await spawnPostern({ config, environment: { POSTERN_DATA: data } })
      onTestFinished(async () => {
        await service.stop()
      })
      return service
    }
    const first = await start()
    const second = await start()
    // A service that ends leaves the others in use.
    const third = await start()
    for (const service of [second, third])
      await expect.poll(() => service.output()).toMatch(new RegExp(`warning: ${WARNING}.*${data}`))
    await expect.poll(() => second.output()).toContain('"event":"data_shared"')
    expect(first.output()).not.toContain(WARNING)
    for (const { pid } of [first, second, third]) process.kill(pid, 'SIGKILL')
    const last = await start()
    await expect.poll(() => last.output()).toContain('the token of the admin API is in')
    expect(last.output()).not.toContain(WARNING)
  })
})
