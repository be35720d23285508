/** A store that answers slowly: the machine or its disk is busy. The deadline is the default. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, onTestFinished } from 'vitest'
import { dataFolder } from '../support/data-folder.ts'
import { expectPatience } from '../support/slow-writes.ts'
import { ENDS_AT_ONCE, ROOT, spawnPostern } from '../support/spawn-postern.ts'
import { startStoreProcess } from '../support/store-process.ts'

describe('T5.5 a store that takes 3 s makes logins, refreshes and revocations slow, and fails none', () => {
  it('in a file that another process has locked', async () => {
    const config = join(await dataFolder(), 'postern.yaml')
    writeFileSync(config, `extends: ${join(ROOT, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    const postern = await spawnPostern({ config })
    onTestFinished(async () => {
      await postern.stop()
    })
    await expectPatience(postern, {
      begin: async () => {
        const holder = startStoreProcess('hold', join(postern.data, 'postern.sqlite'))
        await holder.line('held')
        return { end: () => holder.process.stdin?.write('release\n') }
      },
    })
  })
})
