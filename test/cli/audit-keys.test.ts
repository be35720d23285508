import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openAuditKeys } from '../../src/state/audit/format/keys.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

const run = (args: readonly string[], data: string, changes = '') =>
  runVerb([...args, '--config', configFiles({ 'my.yaml': `extends: ${DEMO}\n${changes}` })('my.yaml')], {
    env: { POSTERN_DATA: data },
  })

it('C12.2.2 `postern audit hash` prints what the record of a body says, and `key` the public key', async () => {
  const data = await dataFolder()
  const { bodyKey, publicPem } = await openAuditKeys(join(data, 'audit'))
  const file = join(data, 'body.json')
  await writeFile(file, '{"Status":"Active"}')
  const expected = createHmac('sha256', bodyKey).update('{"Status":"Active"}').digest('base64url')
  expect(await run(['audit', 'hash', file], data)).toEqual({ code: 0, stdout: `${expected}\n`, stderr: '' })
  expect(await run(['audit', 'key'], data)).toEqual({ code: 0, stdout: publicPem, stderr: '' })
})

it('C12.2.2 `postern audit hash` says what stands in its way', async () => {
  const data = await dataFolder()
  const file = join(data, 'none.json')
  expect(await run(['audit', 'hash', file], data)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/audit keys/),
  })
  await openAuditKeys(join(data, 'audit'))
  expect(await run(['audit', 'hash', file], data)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/none\.json/),
  })
  expect(await run(['audit', 'hash'], data)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/expected FILE, got nothing/),
  })
  expect(await run(['audit', 'hash', file], data, 'audit: { enabled: false }\n')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no audit trail is kept/),
  })
})
