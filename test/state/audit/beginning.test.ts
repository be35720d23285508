import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import {
  BEGINNING_KIND,
  RememberedBeginning,
  type TrailBeginning,
} from '../../../src/state/audit/format/beginning.ts'
import { openAuditKeys } from '../../../src/state/audit/format/keys.ts'
import { makeManifestLine } from '../../../src/state/audit/format/manifest.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'

const ALONE = { store: { kind: 'sqlite' }, server: { listen: '127.0.0.1:8080' } }

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
    list: () => Promise.resolve([]),
  }
  await beginning.compare(store, ALONE)
  expect([beginning.isReplaced, timers.delays()]).toEqual([false, [30_000]])
  isUp = true
  await timers.fire()
  await expect.poll(() => beginning.isReplaced).toBe(true)
  expect(notes).toEqual(['audit_beginning_unknown', 'audit_trail_replaced'])
  isUp = false
  await beginning.compare(store, ALONE)
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
  const store = {
    find: () => Promise.resolve(undefined),
    create: () => Promise.resolve(true),
    list: () => Promise.resolve([]),
  }
  for (let times = 0; times < 3; times += 1) await beginning.compare(store, ALONE)
  expect(descriptorsOf(manifest)).toEqual([])
})

it('C12.4.5 nodes in containers that share a host name have a beginning each, though their trails have one path', async () => {
  const folder = await dataFolder()
  const keys = await openAuditKeys(folder)
  const store = new MemoryStore(systemClock)
  const notes: string[] = []
  /** The start of a node in whose container this trail stands. */
  const start = async (port: number, time: string): Promise<boolean> => {
    writeFileSync(join(folder, 'manifest.jsonl'), makeManifestLine({ time, heads: [] }, undefined, keys).text)
    const recorder = { note: (_level: string, event: string) => void notes.push(event) }
    const beginning = new RememberedBeginning(folder, recorder, manualAfter().after)
    await beginning.compare(store, { store: { kind: 'postgres' }, server: { listen: `127.0.0.1:${port}` } })
    return beginning.isReplaced
  }
  const [one, other] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z']
  for (let times = 0; times < 2; times += 1)
    expect([await start(8081, one), await start(8082, other)]).toEqual([false, false])
  expect(notes).toEqual([])
  expect(await start(8081, other)).toBe(true)
  expect(notes).toEqual(['audit_trail_replaced'])
})

it('C12.4.5 the beginning of a trail is known again where its folder is named in another way', async () => {
  const folder = await dataFolder()
  const store = new MemoryStore(systemClock)
  const keys = await openAuditKeys(folder)
  const { line, text } = makeManifestLine({ time: '2026-01-01T00:00:00.000Z', heads: [] }, undefined, keys)
  writeFileSync(join(folder, 'manifest.jsonl'), text)
  const beginningOf = async (named: string): Promise<TrailBeginning | undefined> => {
    const beginning = new RememberedBeginning(named, { note: () => undefined }, manualAfter().after)
    await beginning.compare(store, ALONE)
    return (await beginning.read()).beginning
  }
  const expected = { hash: line.hash, signed: line.time }
  expect(await beginningOf(folder)).toEqual(expected)
  expect(await beginningOf(relative('.', folder))).toEqual(expected)
  expect(await store.list(BEGINNING_KIND)).toHaveLength(1)
})
