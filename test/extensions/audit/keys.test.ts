import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPublicKey } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  auditKeyFolder,
  isAuditSignature,
  openAuditKeys,
  presentAuditKeys,
} from '../../../src/extensions/audit/format/keys.ts'
import { dataFolder } from '../../support/data-folder.ts'

const fileOf = (folder: string): string => join(auditKeyFolder(folder), 'audit-keys.json')

it('C12.4.4 the audit keys are made once, by whoever is first, and only their owner can read them', async () => {
  const folder = await dataFolder()
  const all = await Promise.all([openAuditKeys(folder), openAuditKeys(folder), openAuditKeys(folder)])
  expect(new Set(all.map(({ bodyKey }) => bodyKey)).size).toBe(1)
  expect(new Set(all.map(({ publicPem }) => publicPem)).size).toBe(1)
  expect((await stat(fileOf(folder))).mode & 0o777).toBe(0o600)
  expect((await stat(auditKeyFolder(folder))).mode & 0o777).toBe(0o700)
})

it('C12.4.4 a signature of the key is verified by its public half alone', async () => {
  const keys = await openAuditKeys(await dataFolder())
  const key = createPublicKey(keys.publicPem)
  expect(isAuditSignature('a line', keys.sign('a line'), key)).toBe(true)
  expect(isAuditSignature('another line', keys.sign('a line'), key)).toBe(false)
  expect(isAuditSignature('a line', 'no signature', key)).toBe(false)
})

it('C12.4.4 audit keys that others may read, or that are damaged, are refused without a word of them', async () => {
  const folder = await dataFolder()
  const { bodyKey } = await openAuditKeys(folder)
  await chmod(fileOf(folder), 0o644)
  await expect(openAuditKeys(folder)).rejects.toThrow(/open to other users.*sign a forged audit trail/)
  await chmod(fileOf(folder), 0o600)
  await writeFile(fileOf(folder), (await readFile(fileOf(folder), 'utf8')).replace('"crv"', '"cvr"'))
  const refused = await openAuditKeys(folder).catch((error: unknown) => error)
  expect(refused).toMatchObject({ name: 'KeyError', message: expect.stringMatching(/damaged/) })
  expect(JSON.stringify([refused, (refused as Error).cause])).not.toContain(bodyKey)
})

it('C12.4.4 keys that are not there are not made where they are only read', async () => {
  const folder = await dataFolder()
  await openAuditKeys(folder)
  await rm(fileOf(folder))
  await expect(presentAuditKeys(folder)).rejects.toThrow(/There are no audit keys/)
})
