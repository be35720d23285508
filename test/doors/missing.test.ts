/** What is missing fails closed (`npm run doors`, which says what was deleted). */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'

const without = new Set((process.env['POSTERN_WITHOUT'] ?? '').split(' '))

it.runIf(without.has('from-openapi'))(
  'C10 without from-openapi `--from` is an unknown option, and nothing is written',
  async () => {
    const description = configFiles({ 'api.yaml': 'openapi: 3.0.3\n' })('api.yaml')
    const folder = join(dirname(description), 'own')
    const { code, stderr } = await runVerb(['init', folder, '--from', description])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--from')])
    expect(existsSync(folder)).toBe(false)
    expect((await runVerb(['init', '--help'])).stdout).not.toContain('--from')
  },
)
