/** A store or a trail that answers slowly: the machine or its disk is busy. The deadlines are those that nobody has set. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { auditRecords } from '../support/audit-files.ts'
import { spawnVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { expectPatience } from '../support/slow-writes.ts'
import { DEMO, ENDS_AT_ONCE, ROOT, spawnPostern } from '../support/spawn-postern.ts'
import { giveKey } from '../support/ready-key.ts'
import { startStoreProcess } from '../support/store-process.ts'
import { issueToken } from '../support/tokens.ts'

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

describe('C12.1.2 a trail whose syncs take 3 s', () => {
  const preload = join(ROOT, 'test/support/troubled-audit.ts')

  it('makes logins slow, one after another and ten at once, and fails none', async () => {
    const config = join(await dataFolder(), 'postern.yaml')
    writeFileSync(config, `extends: ${join(ROOT, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    const postern = await spawnPostern({ config, node: ['--require', preload] })
    onTestFinished(async () => {
      await postern.stop()
    })
    const login = () =>
      issueToken(postern, { scope: 'openid offline_access business.fund.list target:b/ACME' })
    await login()
    writeFileSync(join(postern.data, 'audit.trouble'), 'slow')
    const first = login()
    // It rejects where it is refused.
    await Promise.all([first, ...Array.from({ length: 10 }, login)])
    expect(postern.output()).not.toMatch(/audit_(held|lost|dropped|unwritable)/)
  })

  it('fails no command that works without a service: neither what gives nor what takes away', async () => {
    const data = await dataFolder()
    await giveKey(data)
    writeFileSync(join(data, 'audit.trouble'), 'slow')
    const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO, NODE_OPTIONS: `--require ${preload}` }
    const lines = [
      'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid',
      'client disable tally',
      `backup ${join(data, 'copy.sqlite')}`,
    ]
    for (const line of lines) {
      const { code, stderr } = await spawnVerb(line.split(' '), { env })
      expect({ code, told: /record|trail/.exec(stderr) }).toEqual({ code: 0, told: null })
    }
    expect(auditRecords({ data }).filter(({ event }) => event === 'client.added')).toHaveLength(2)
  })

  it('holds no command for ever whose disk stands: nothing is given, and it says why', async () => {
    const data = await dataFolder()
    await giveKey(data)
    const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO, NODE_OPTIONS: `--require ${preload}` }
    const add =
      'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid'
    // The folder of the trail is there, and the manifest that is written in it before.
    await spawnVerb(['keys', 'list'], { env })
    writeFileSync(join(data, 'audit.trouble'), 'frozen')
    const given = spawnVerb(add.split(' '), { env })
    const { code, stdout, stderr } = await given
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('nothing was changed, because it could not be recorded')
  })
})
