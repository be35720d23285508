import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { runCommandLine } from '../../src/cli/command-line.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { openStore } from '../../src/state/stores/open-store.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

const postern = (data: string, ...args: readonly string[]) => posternOn(DEMO, data, ...args)

async function posternOn(file: string, data: string, ...args: readonly string[]) {
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const env = { POSTERN_CONFIG: file, POSTERN_DATA: data }
  const code = await runCommandLine(args, { env, stdin: process.stdin, stdout, stderr })
  stdout.end()
  stderr.end()
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

describe('postern backup', () => {
  it('copies the store of the configuration while it is open', async () => {
    const data = await dataFolder()
    const store = await openStore(PATIENT_STORE, data, systemClock)
    const copy = join(data, 'copy.sqlite')
    const { code, stdout, stderr } = await postern(data, 'backup', copy)
    expect([code, stderr]).toEqual([0, ''])
    // What is not in it, and where that is.
    for (const name of ['keys', 'audit']) expect(stdout).toContain(`copy ${join(data, name)} `)
    await store.close()
    expect(existsSync(copy)).toBe(true)
    expect(await postern(data, 'backup', copy)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exists already'),
    })
  })

  it('says where it looked, if there is no store', async () => {
    const data = await dataFolder()
    const { code, stderr } = await postern(data, 'backup', join(data, 'copy.sqlite'))
    expect(code).toBe(1)
    expect(stderr).toContain(join(data, 'postern.sqlite'))
  })

  it.each([
    ['store: { kind: other }', /a\.yaml:2 +store\.kind +expected one of/],
    ['data: 5', /a\.yaml:2 +data +expected/],
    ['audit: 5', /a\.yaml:2 +audit +expected/],
    ['issuers: 5', /a\.yaml:2 +issuers +expected/],
  ])('reports the problems of a configuration that does not say what to copy: %s', async (line, told) => {
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n${line}\n` })('a.yaml')
    const data = await dataFolder()
    const { code, stderr } = await posternOn(file, data, 'backup', join(data, 'copy.sqlite'))
    expect([code, stderr]).toEqual([2, expect.stringMatching(told)])
  })

  it.each(['admin: 5', 'admin: { token: { env: MISSING } }', 'actions: 5'])(
    'copies the store beside other problems of the configuration: %s',
    async (line) => {
      const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n${line}\n` })('a.yaml')
      const data = await dataFolder()
      await (await openStore(PATIENT_STORE, data, systemClock)).close()
      const copy = join(data, 'copy.sqlite')
      const { code, stderr } = await posternOn(file, data, 'backup', copy)
      expect([code, stderr]).toEqual([0, ''])
      expect(existsSync(copy)).toBe(true)
    },
  )

  it('refuses a command line without a file, with exit code 2', async () => {
    expect((await postern(await dataFolder(), 'backup')).code).toBe(2)
  })
})
