import { chmod, mkdir, mkdtemp, readdir, rename, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import {
  compareWithHistory,
  rememberKeys,
  historyWarning,
} from '../../../src/identity/keys/signing/watch-keys.ts'
import { openKeys, type ServiceKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import type { RotationPlan } from '../../../src/identity/keys/signing/schedule.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'

const DAY = 86_400_000
const ROTATION: RotationPlan = { automatic: true, every: 30 * 86_400, announce: 86_400, longestLife: 86_400 }

async function newFolder(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  return join(data, 'keys')
}

/** Only ES256, since an RSA key takes long to make; the rules are the same. */
const openAt = (folder: string, clock: MovableClock, rotation = ROTATION): Promise<ServiceKeys> =>
  openKeys({ place: new FolderKeys(folder), algorithms: ['ES256'], rotation }, clock)

const published = (keys: ServiceKeys): readonly unknown[] => keys.jwks().keys.map((key) => key['kid'])

async function signer(keys: ServiceKeys): Promise<unknown> {
  const [header = ''] = (await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })).token.split('.')
  return (JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }).kid
}

const keyFiles = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.jwk'))

describe('C6.3.4 rotation', () => {
  it('C6.3.4 announces, signs and retires, each at its time', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const keys = await openAt(folder, clock)
    const [first] = published(keys)
    clock.advance(29 * DAY - 1000)
    await keys.rotateIfDue()
    expect(published(keys)).toEqual([first])
    clock.advance(1000)
    await keys.rotateIfDue()
    const [, second] = published(keys)
    expect(second).toBeDefined()
    expect(await signer(keys)).toBe(first)
    clock.advance(DAY - 1000)
    await keys.refresh()
    expect(await signer(keys)).toBe(first)
    clock.advance(1000)
    await keys.refresh()
    expect(await signer(keys)).toBe(second)
    expect(published(keys)).toEqual([first, second])
    // The last token of the first one lives a day at most.
    clock.advance(DAY)
    await keys.rotateIfDue()
    expect(published(keys)).toContain(first)
    clock.advance(60_000)
    await keys.rotateIfDue()
    expect(published(keys)).toEqual([second])
    expect(await keyFiles(folder)).toEqual(['ES256-2.jwk'])
  })

  it('C6.3.4 goes on for years, with one key signing and never more than two published', async () => {
    const clock = movableClock()
    const keys = await openAt(await newFolder(), clock)
    const signers = new Set<unknown>()
    for (let day = 0; day < 400; day++) {
      await keys.rotateIfDue()
      signers.add(await signer(keys))
      expect(published(keys).length).toBeLessThanOrEqual(2)
      expect(published(keys)).toContain(await signer(keys))
      clock.advance(DAY)
    }
    expect(signers.size).toBe(14)
  })

  it('C6.3.4 every token is verifiable until it expires, whenever it was signed', async () => {
    const clock = movableClock()
    const keys = await openAt(await newFolder(), clock)
    const living: { kid: unknown; until: number }[] = []
    const life = ROTATION.longestLife * 1000
    for (let hour = 0; hour < 24 * 70; hour += 6) {
      await keys.rotateIfDue()
      living.push({ kid: await signer(keys), until: clock.now() + life })
      const known = new Set(published(keys))
      for (const { kid } of living.filter(({ until }) => until > clock.now())) expect(known).toContain(kid)
      clock.advance(6 * 3_600_000)
    }
  })

  it('C6.3.4 does nothing by itself where it is switched off', async () => {
    const clock = movableClock()
    const keys = await openAt(await newFolder(), clock, { ...ROTATION, automatic: false })
    clock.advance(400 * DAY)
    await keys.rotateIfDue()
    expect(published(keys)).toHaveLength(1)
  })

  it('C6.3.4 a service that was down for months announces before it signs', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const before = await signer(await openAt(folder, clock))
    clock.advance(200 * DAY)
    const keys = await openAt(folder, clock)
    await keys.rotateIfDue()
    expect(published(keys)).toHaveLength(2)
    expect(await signer(keys)).toBe(before)
  })

  it('C6.3.4 processes that share a folder make one key, and agree on who signs', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const processes = await Promise.all([1, 2, 3, 4].map(() => openAt(folder, clock)))
    clock.advance(29 * DAY)
    await Promise.all(processes.map((keys) => keys.rotateIfDue()))
    expect(await keyFiles(folder)).toHaveLength(2)
    clock.advance(DAY)
    for (const keys of processes) await keys.refresh()
    const signers = new Set(await Promise.all(processes.map(signer)))
    expect(signers.size).toBe(1)
    for (const keys of processes) expect(published(keys)).toEqual(published(processes[0] as ServiceKeys))
  })

  it('C6.3.4 a process that only looks finds the new key without a restart', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const [one, other] = [await openAt(folder, clock), await openAt(folder, clock)]
    clock.advance(29 * DAY)
    await one.rotateIfDue()
    await other.refresh()
    expect(published(other)).toEqual(published(one))
  })

  it('T3.5 a token of a key that another process has just made is verified; a flood of unknown ones looks once', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const [one, other] = [await openAt(folder, clock), await openAt(folder, clock)]
    clock.advance(29 * DAY)
    await one.rotateIfDue()
    const made = published(one).at(-1) as string
    const found = await Promise.all(Array.from({ length: 50 }, () => other.find(made, 'ES256')))
    expect(found.every((key) => key !== undefined)).toBe(true)
    // All of them share one reading; if the folder is gone, the known keys stay in use.
    await rm(folder, { recursive: true })
    const unknown = await Promise.all(
      Array.from({ length: 50 }, (_, at) => other.find(`unknown-${at}`, 'ES256')),
    )
    expect(unknown.every((key) => key === undefined)).toBe(true)
    expect(await other.find(made, 'ES256')).toBeDefined()
  })

  it('T3.5 keys in memory go on while the folder cannot be used', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const keys = await openAt(folder, clock)
    const [kid] = published(keys) as [string]
    await chmod(folder, 0o777)
    await expect(keys.rotateIfDue()).rejects.toThrow(/folder of the signing keys/)
    clock.advance(5000)
    expect(await keys.find('unknown', 'ES256')).toBeUndefined()
    expect(await keys.find(kid, 'ES256')).toBeDefined()
    expect(await signer(keys)).toBe(kid)
  })

  it('C6.3.4 a wall clock set back signs with the key that signed then', async () => {
    const clock = movableClock()
    const keys = await openAt(await newFolder(), clock)
    const first = await signer(keys)
    clock.advance(29 * DAY)
    await keys.rotateIfDue()
    clock.advance(DAY)
    await keys.refresh()
    expect(await signer(keys)).not.toBe(first)
    clock.advance(-DAY)
    await keys.refresh()
    expect(await signer(keys)).toBe(first)
    clock.advance(-300 * DAY)
    await keys.refresh()
    expect(await signer(keys)).toBe(first)
  })
})

describe('T3.10 key files that are removed', () => {
  it('C6.3.4 take their keys with them, also the last one: a new one is made, under a number of its own', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const [one, other] = [await openAt(folder, clock), await openAt(folder, clock)]
    const [kid] = published(one) as [string]
    const found = await one.find(kid, 'ES256')
    const { key } = await one.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    expect([found?.[0]?.standing.isTrusted(), key.isTrusted()]).toEqual([true, true])
    await rm(join(folder, 'ES256-1.jwk'))
    await one.refresh()
    expect([found?.[0]?.standing.isTrusted(), key.isTrusted()]).toEqual([false, false])
    expect(await one.find(kid, 'ES256')).toBeUndefined()
    // A signature that is requested meanwhile comes from the next key.
    const { key: next } = await one.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    expect(next.isTrusted()).toBe(true)
    expect(await keyFiles(folder)).toEqual(['ES256-2.jwk'])
    await other.rotateIfDue()
    expect(published(other)).toEqual(published(one))
    expect(one.schedule().map(({ state }) => state)).toEqual(['signing'])
  })

  it('C6.3.4 a key that is put back is believed again, and what it verified before is judged anew', async () => {
    const folder = await newFolder()
    const keys = await openAt(folder, movableClock())
    const [kid] = published(keys) as [string]
    const before = (await keys.find(kid, 'ES256'))?.[0]?.standing
    await rename(join(folder, 'ES256-1.jwk'), join(folder, 'away'))
    await keys.rotateIfDue()
    await rename(join(folder, 'away'), join(folder, 'ES256-1.jwk'))
    await keys.rotateIfDue()
    expect(before?.isTrusted()).toBe(false)
    expect((await keys.find(kid, 'ES256'))?.[0]?.standing.isTrusted()).toBe(true)
  })

  it('C6.3.4 a key that is read again from its file is the same key', async () => {
    const folder = await newFolder()
    const keys = await openAt(folder, movableClock())
    const [kid] = published(keys) as [string]
    const before = (await keys.find(kid, 'ES256'))?.[0]?.standing
    await utimes(join(folder, 'ES256-1.jwk'), 1, 1)
    await keys.refresh()
    expect(before?.isTrusted()).toBe(true)
  })
})

describe('C6.1.7 the secret that successors are derived with', () => {
  it('is the same in every process and after a restart, and another one elsewhere', async () => {
    const [folder, elsewhere] = [await newFolder(), await newFolder()]
    const clock = movableClock()
    const all = await Promise.all([1, 2, 3].map(() => openAt(folder, clock)))
    const derived = new Set(all.map((keys) => keys.derive('token')))
    expect(derived.size).toBe(1)
    expect((await openAt(elsewhere, clock)).derive('token')).not.toBe([...derived][0])
    expect([...derived][0]).toMatch(/^[\w-]{43}$/)
  })

  it('T3.10 is taken by every process once it is replaced', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const all = await Promise.all([1, 2, 3].map(() => openAt(folder, clock)))
    const before = all[0]?.derive('token')
    await new FolderKeys(folder).replaceSecret()
    expect(await Promise.all(all.map((keys) => keys.refreshSecret()))).toEqual([true, true, true])
    const derived = new Set(all.map((keys) => keys.derive('token')))
    expect(derived.size).toBe(1)
    expect(derived).not.toContain(before)
    expect(await all[0]?.refreshSecret()).toBe(false)
  })

  it('is followed by a new one where it is lost, and by none in a folder that stands in the place of its own', async () => {
    const folder = await newFolder()
    const clock = movableClock()
    const [one, other] = [await openAt(folder, clock), await openAt(folder, clock)]
    await rm(join(folder, 'successors.secret'))
    await one.refreshSecret()
    await other.refreshSecret()
    expect(one.derive('token')).toBe(other.derive('token'))
    await rename(folder, `${folder}.away`)
    await mkdir(folder, { mode: 0o700 })
    expect(await one.refreshSecret()).toBe(false)
    expect(await readdir(folder)).toEqual([])
  })
})

describe('C6.3.4 a lost or foreign key folder', () => {
  const look = async (store: MemoryStore, folder?: string): Promise<string> =>
    compareWithHistory(await openAt(folder ?? (await newFolder()), movableClock()), store)

  it('is told from a first start and from its own', async () => {
    const store = new MemoryStore(movableClock())
    const folder = await newFolder()
    expect(await look(store, folder)).toBe('first')
    expect(await look(store, folder)).toBe('known')
    await rm(folder, { recursive: true })
    expect(await look(store, folder)).toBe('lost')
    expect(await look(store, folder)).toBe('known')
    const foreign = await newFolder()
    await openAt(foreign, movableClock())
    expect(await look(store, foreign)).toBe('foreign')
  })

  it('is not suspected after rotations that no start has seen', async () => {
    const store = new MemoryStore(movableClock())
    const folder = await newFolder()
    const clock = movableClock()
    const keys = await openAt(folder, clock)
    await compareWithHistory(keys, store)
    for (let day = 0; day < 100; day++) {
      clock.advance(DAY)
      await keys.rotateIfDue()
      await rememberKeys(keys.kids, store)
    }
    expect(await compareWithHistory(await openAt(folder, clock), store)).toBe('known')
  })

  it('is told with what it means', () => {
    expect(historyWarning('first', { name: '/keys' })).toBeUndefined()
    expect(historyWarning('known', { name: '/keys' })).toBeUndefined()
    for (const finding of ['lost', 'foreign'] as const)
      expect(historyWarning(finding, { name: '/keys' })).toMatch(/\/keys.*issued before are refused.*backup/s)
  })
})
