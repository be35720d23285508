import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openVerbs, spawnVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { shared } from '../support/shared.ts'
import { DEMO, ROOT } from '../support/spawn-postern.ts'

/** A folder with these files. */
const folderOf = (files: Readonly<Record<string, string>>): string => dirname(configFiles(files)('any'))

describe('the configuration of a command that was given none', () => {
  it('C10 is postern.yaml of the working folder, before the demo', async () => {
    const own = `extends: ${DEMO}\n`
    const cwd = folderOf({ 'postern.yaml': own, 'config/demo.yaml': 'nothing: of use\n' })
    expect(await spawnVerb(['check'], { cwd })).toMatchObject({
      code: 0,
      stdout: 'postern.yaml: can be served\n',
    })
    const named = await spawnVerb(['check'], { cwd, env: { POSTERN_CONFIG: 'config/demo.yaml' } })
    expect(named.stderr).toContain('config/demo.yaml:1  nothing')
  })

  const elsewhere = shared(() => Promise.resolve(openVerbs({ cwd: folderOf({ 'other.yaml': '' }) })))

  it.each([['serve'], ['client', 'list']])(
    'C10 is missing in a folder without one: %s says what to do, and where the demo is',
    async (...args) => {
      const { code, stdout, stderr } = await (await elsewhere())(args, {})
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain('postern: no configuration was named, and this folder has no postern.yaml.')
      expect(stderr).toMatch(/postern init .*\n {2}POSTERN_CONFIG .*\n/)
      expect(stderr).toContain(`postern serve ${ROOT}config/demo.yaml\n`)
    },
  )
})
