import { cpSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  BEGINNING_KIND,
  placeOfTrail,
  RememberedBeginning,
  rememberedTrails,
  type TrailBeginning,
} from '../../../src/extensions/audit/format/beginning.ts'
import { openAuditKeys } from '../../../src/extensions/audit/format/keys.ts'
import { makeManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { moveFormer } from '../../../src/extensions/audit/write/move-former.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { writeFormerTrail } from './support/former-trail.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { restarted } from './support/recorded-trail.ts'

const HEAD = { writer: 'w', seq: 0, hash: '' }
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
    replace: () => Promise.resolve(true),
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
    replace: () => Promise.resolve(true),
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
    writeFileSync(
      join(folder, 'manifest.jsonl'),
      makeManifestLine({ time, head: HEAD }, undefined, keys).text,
    )
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
  const { line, text } = makeManifestLine({ time: '2026-01-01T00:00:00.000Z', head: HEAD }, undefined, keys)
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

describe('C12.4.8 the beginning of a trail of Postern 0.2', () => {
  /** The beginning that a start compares, and the one that a verification is told then. */
  async function compared(
    folder: string,
    store: MemoryStore,
    node: typeof ALONE & { audit?: { folder: string } } = ALONE,
  ) {
    const notes: string[] = []
    const recorder = { note: (_level: string, event: string) => void notes.push(event) }
    const beginning = new RememberedBeginning(folder, recorder, manualAfter().after)
    await beginning.compare(store, node)
    return { notes, isReplaced: beginning.isReplaced, remembered: await beginning.read() }
  }
  const valueOf = async (store: MemoryStore, folder: string) =>
    (await store.find(BEGINNING_KIND, `:${folder}`))?.value

  /** The store remembers the trail as 0.2 had it there. */
  async function remembering(folder: string) {
    const { first, last } = await writeFormerTrail(folder)
    const store = new MemoryStore(systemClock)
    const value = { host: '', folder, hash: first.hash, signed: first.time }
    await store.create(BEGINNING_KIND, `:${folder}`, { value })
    return { store, first, last }
  }

  /** The first start of this version, which moves it. */
  async function started(folder: string): Promise<void> {
    await moveFormer(folder)
    await restarted(folder, movableClock())
  }

  it('C12.4.8 is replaced by that of the trail that begins when it is moved, which is remembered then', async () => {
    const folder = await dataFolder()
    const { store, first } = await remembering(folder)
    await started(folder)
    for (let starts = 0; starts < 2; starts += 1) {
      const { notes, isReplaced, remembered } = await compared(folder, store)
      expect([notes, isReplaced]).toEqual([[], false])
      expect(verifyTrail({ folder, ...remembered })).toMatchObject({ findings: [], beginningAnchored: true })
      expect(await valueOf(store, folder)).toMatchObject({ folder, earlier: first.hash })
    }
    expect((await valueOf(store, folder))?.['hash']).not.toBe(first.hash)
  })

  it.each<[string, (first: { hash: string; time: string }) => string]>([
    ['a hash that is not its own', ({ hash, time }) => JSON.stringify({ v: 1, n: 1, time, hash })],
    [
      'a signature of nobody',
      ({ hash, time }) => `{"v":1,"n":1,"time":"${time}","hash":"${hash}","signature":"${'A'.repeat(86)}"}`,
    ],
  ])('T5.17 C12.4.5 is not taken from a manifest that was put there, with %s', async (_, forge) => {
    const folder = await dataFolder()
    const store = new MemoryStore(systemClock)
    await restarted(folder, movableClock())
    await compared(folder, store)
    const remembered = await valueOf(store, folder)
    const hash = String(remembered?.['hash'])
    // All of the trail is removed, but its keys.
    for (const name of readdirSync(folder))
      if (!name.startsWith('keys')) rmSync(join(folder, name), { recursive: true })
    mkdirSync(join(folder, '0.2'))
    writeFileSync(
      join(folder, '0.2', 'manifest.jsonl'),
      `${forge({ hash, time: '2026-01-15T00:00:00.000Z' })}\n`,
    )
    await restarted(folder, movableClock(Date.UTC(2026, 1, 1)))
    expect(await compared(folder, store)).toMatchObject({ notes: ['audit_trail_replaced'], isReplaced: true })
    expect(await valueOf(store, folder)).toEqual(remembered)
  })

  it('T5.17 C12.4.5 is not taken from a trail of it that another key has signed', async () => {
    const [folder, other] = [await dataFolder(), await dataFolder()]
    const store = new MemoryStore(systemClock)
    const { first } = await writeFormerTrail(other)
    await restarted(folder, movableClock())
    const value = { host: '', folder, hash: first.hash, signed: first.time }
    await store.create(BEGINNING_KIND, `:${folder}`, { value })
    cpSync(other, join(folder, '0.2'), { recursive: true })
    expect(await compared(folder, store)).toMatchObject({ isReplaced: true })
    // The private keys decide: what is beside the manifest may have been replaced with it.
    cpSync(join(other, 'manifest-key.pem'), join(folder, 'manifest-key.pem'))
    expect(await compared(folder, store)).toMatchObject({ isReplaced: true })
  })

  it('C12.4.8 is no finding of a verification before the store could be asked', async () => {
    const folder = await dataFolder()
    const { store } = await remembering(folder)
    await started(folder)
    const values = (await store.list(BEGINNING_KIND)).map(({ value }) => value)
    const remembered = await rememberedTrails(values, placeOfTrail(ALONE, folder), ALONE)
    expect(verifyTrail({ folder, ...remembered })).toMatchObject({ findings: [], beginningAnchored: false })
  })

  it('C12.4.5 still shows that the new trail was removed, and that it was with the old one', async () => {
    const folder = await dataFolder()
    const { store } = await remembering(folder)
    await started(folder)
    await compared(folder, store)
    rmSync(join(folder, 'manifest.jsonl'))
    await restarted(folder, movableClock(Date.UTC(2026, 1, 1)))
    expect(await compared(folder, store)).toMatchObject({ notes: ['audit_trail_replaced'], isReplaced: true })
    // Nobody has compared the first start, and all is gone.
    const other = await dataFolder()
    const removed = await remembering(other)
    rmSync(join(other, 'manifest.jsonl'))
    await restarted(other, movableClock())
    const { isReplaced, remembered } = await compared(other, removed.store)
    expect(isReplaced).toBe(true)
    expect(verifyTrail({ folder: other, ...remembered }).findings).toContainEqual({
      ...{ file: 'manifest.jsonl', line: 1, what: expect.stringContaining('it was removed') as string },
    })
  })

  it.each([false, true])(
    'C12.4.8 of data that was copied here is not missing, nor after retention has removed it (%s)',
    async (isRemoved) => {
      const [old, folder] = [await dataFolder(), await dataFolder()]
      const { store, first } = await remembering(old)
      cpSync(old, folder, { recursive: true })
      await started(folder)
      await compared(folder, store)
      expect(await valueOf(store, folder)).toMatchObject({ earlier: first.hash })
      if (isRemoved) rmSync(join(folder, '0.2'), { recursive: true })
      const { isReplaced, remembered } = await compared(folder, store)
      expect([isReplaced, remembered.former]).toEqual([false, []])
      expect(verifyTrail({ folder, ...remembered })).toMatchObject({ findings: [], beginningAnchored: true })
    },
  )

  it('C12.4.6 that is in another place, without a copy here, is missing; not where it is still there', async () => {
    const [old, folder] = [await dataFolder(), await dataFolder()]
    const { store, first } = await remembering(old)
    await restarted(folder, movableClock())
    const { remembered } = await compared(folder, store)
    expect(remembered.former).toEqual([{ folder: old, hash: first.hash, signed: first.time }])
    const named = { ...ALONE, audit: { folder } }
    expect((await compared(folder, store, named)).remembered.former).toEqual([])
    await moveFormer(old)
    await restarted(old, movableClock())
    expect((await compared(folder, store, named)).remembered.former).toEqual([])
    rmSync(join(old, '0.2'), { recursive: true })
    expect((await compared(folder, store, named)).remembered.former).toHaveLength(1)
  })
})
