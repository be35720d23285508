import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { RememberedBeginning } from '../../../src/audit/beginning.ts'
import { Fault } from '../../../src/kernel/faults.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'

it('C12.4.5 the beginning of a trail is compared again until the store can be asked, or the trail is closed', async () => {
  const folder = await dataFolder()
  writeFileSync(join(folder, 'manifest.jsonl'), '')
  const timers = manualAfter()
  const notes: string[] = []
  const beginning = new RememberedBeginning(
    folder,
    { note: (_level, event) => void notes.push(event) },
    timers.after,
  )
  const value = { host: '', folder, hash: 'of a trail that is gone', signed: '2026-01-01T00:00:00.000Z' }
  let isUp = false
  const store = {
    find: (_kind: string, key: string) =>
      isUp
        ? Promise.resolve({ key, value, version: 1, expiresAt: undefined, usedAt: undefined })
        : Promise.reject(new Fault('identity_unavailable')),
    create: () => Promise.resolve(true),
  }
  await beginning.compare(store, 'sqlite')
  expect([beginning.isReplaced, timers.delays()]).toEqual([false, [30_000]])
  isUp = true
  await timers.fire()
  await expect.poll(() => beginning.isReplaced).toBe(true)
  expect(notes).toEqual(['audit_beginning_unknown', 'audit_trail_replaced'])
  isUp = false
  await beginning.compare(store, 'sqlite')
  beginning.close()
  expect(timers.delays()).toEqual([])
})

const descriptorsOf = (path: string): readonly string[] =>
  readdirSync('/proc/self/fd').filter((each) => {
    try {
      return readlinkSync(join('/proc/self/fd', each)) === path
    } catch {
      return false
    }
  })

it('C12.4.5 leaves no descriptor behind, however often the beginning of a trail is compared', async () => {
  const folder = await dataFolder()
  const manifest = join(folder, 'manifest.jsonl')
  writeFileSync(manifest, '{}\n'.repeat(100_000))
  const beginning = new RememberedBeginning(folder, { note: () => undefined }, manualAfter().after)
  const store = { find: () => Promise.resolve(undefined), create: () => Promise.resolve(true) }
  for (let times = 0; times < 3; times += 1) await beginning.compare(store, 'sqlite')
  expect(descriptorsOf(manifest)).toEqual([])
})
