import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openAuditKeys } from '../../../src/extensions/audit/format/keys.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'

const DEMO = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

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

it('C11.6 `--json` prints the key, a hash, and the records of the trail as one list, also where there are none', async () => {
  const data = await dataFolder()
  const { publicPem } = await openAuditKeys(join(data, 'audit'))
  const answer = async (...args: readonly string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await run([...args, '--json'], data)
    expect([code, stderr]).toEqual([0, expect.any(String)])
    return JSON.parse(stdout)
  }
  expect(await answer('audit', 'key')).toEqual({ publicKey: publicPem })
  const file = join(data, 'body.json')
  await writeFile(file, '{}')
  expect(await answer('audit', 'hash', file)).toEqual({ file, hash: expect.stringMatching(/^[\w-]{43}$/) })
  for (const [code, name] of [
    ['PIEDPIPER', 'Pied'],
    ['HOOLI', 'Hooli'],
  ] as const)
    await answer('business', 'add', code, '--name', name)
  const added = { event: 'business.added' }
  expect(await answer('audit', 'find', '--event', 'business.added')).toMatchObject([added, added])
  expect(await answer('audit', 'find', '--event', 'client.removed')).toEqual([])
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
