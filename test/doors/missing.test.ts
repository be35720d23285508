/** What is missing fails closed (`npm run doors`, which says what was deleted). */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'

const without = (process.env['POSTERN_WITHOUT'] ?? '').split(' ').filter((name) => name !== '')

/** Of each extension: what somebody is told who asks for it where it is not there. */
const MISSING: Readonly<Record<string, () => Promise<void>>> = {
  async 'from-openapi'() {
    const description = configFiles({ 'api.yaml': 'openapi: 3.0.3\n' })('api.yaml')
    const folder = join(dirname(description), 'own')
    const { code, stderr } = await runVerb(['init', folder, '--from', description])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--from')])
    expect(existsSync(folder)).toBe(false)
    expect((await runVerb(['init', '--help'])).stdout).not.toContain('--from')
  },
}

it('every extension has a test of what is told where it is missing', () => {
  expect(without.filter((name) => MISSING[name] === undefined)).toEqual([])
})

it.each(without)('without %s, whoever asks for it is told so, and nothing else happens', async (name) => {
  await MISSING[name]?.()
})
