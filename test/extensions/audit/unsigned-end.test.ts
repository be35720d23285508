/** A start on a trail whose end cannot be signed at first (C12.4.4): what stands behind a line that says `closed` counts for nothing. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { ManifestFile } from '../../../src/extensions/audit/format/manifest.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { readTrail } from './support/audit-chain.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { giveKey } from '../../support/ready-key.ts'
import { DEMO } from '../../support/spawn-postern.ts'
import { postern, startPostern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'

/** A data folder with a trail that has ended. Nothing can be added to its manifest until the returned function is called. */
async function ended() {
  const data = await dataFolder()
  await giveKey(data)
  await (await startPostern({ data })).close()
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  const append = vi.spyOn(ManifestFile.prototype, 'append').mockRejectedValue(full)
  const folder = join(data, 'audit')
  return { data, folder, free: () => append.mockRestore(), records: () => readTrail(folder) }
}

it('C12.4.4 a service on it writes no record before it has signed that it goes on, and then goes on by itself', async () => {
  const { data, folder, free, records } = await ended()
  const before = records()
  try {
    const service = await postern({ data })
    const token = () => issueToken(service, { scope: 'openid' })
    await expect(token()).rejects.toThrow(/503|temporarily_unavailable/)
    expect(service.log().map(({ event }) => event)).toContain('audit_manifest_unwritable')
    expect(records()).toEqual(before)
    free()
    await eventually(async () => expect((await token()).access_token).not.toBe(''))
    await service.close()
  } finally {
    free()
  }
  expect(records().slice(0, before.length)).toEqual(before)
  const events = records()
    .slice(before.length)
    .map(({ event }) => event)
  expect(events[0]).toBe('writer.opened')
  expect(events).toEqual(expect.arrayContaining(['service.started', 'token.issued', 'service.stopped']))
  expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, foundLate: 0 })
})

it('C12.1.7 C12.4.4 a command on it changes nothing, says why, and leaves the trail as it was', async () => {
  const { data, folder, free, records } = await ended()
  const [before, manifest] = [records(), readFileSync(join(folder, 'manifest.jsonl'), 'utf8')]
  const run = (...args: string[]) =>
    runVerb(args, { env: { POSTERN_DATA: data, POSTERN_CONFIG: DEMO }, alone: true })
  const refused = await run('keys', 'rotate').finally(free)
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(
    /^postern: nothing was changed, because it could not be recorded: .*no space left/,
  )
  expect(records()).toEqual(before)
  expect(readFileSync(join(folder, 'manifest.jsonl'), 'utf8')).toBe(manifest)
  expect(await run('keys', 'rotate')).toMatchObject({ code: 0, stderr: '' })
  expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, foundLate: 0 })
})
