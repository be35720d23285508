import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'

it('C10 C11.4 a first configuration has the pages', async () => {
  const folder = join(dirname(configFiles({ 'beside.txt': '' })('beside.txt')), 'own')
  expect((await runVerb(['init', folder, '--yes'])).code).toBe(0)
  expect(parse(readFileSync(join(folder, 'postern.yaml'), 'utf8'))).toMatchObject({ developers: 'on' })
})
