import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { keysOf, newestGeneration } from '../../../src/identity/keys/signing/key-place.ts'
import { toSigningKey } from '../../../src/identity/keys/signing/stored-key.ts'
import { createPrivateFolder } from '../../../src/base/files/private-folder.ts'
import { openKeys, type ServiceKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { generatePrivateJwk } from '../../../src/identity/keys/verify/signatures.ts'
import { Standing, parseCompactToken } from '../../../src/identity/keys/verify/token-verifier.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { clockAt, NOW, ROTATION } from '../../support/keys-for-tests.ts'

const DAY = 86_400_000

async function newFolder(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  const folder = join(data, 'keys')
  await createPrivateFolder(folder)
  return folder
}

async function opened(): Promise<{
  readonly folder: string
  readonly clock: ReturnType<typeof movableClock>
  readonly keys: ServiceKeys
}> {
  const [folder, clock] = [await newFolder(), movableClock()]
  return {
    folder,
    clock,
    keys: await openKeys({ place: new FolderKeys(folder), algorithms: ['ES256'], rotation: ROTATION }, clock),
  }
}

const published = (keys: ServiceKeys): readonly unknown[] => keys.jwks().keys.map(({ kid }) => kid)

describe('the files of a key folder', () => {
  it('C6.3.4 are ordered by their numbers, not by their names', async () => {
    const folder = await newFolder()
    for (const generation of [10, 9, 2])
      await new FolderKeys(folder).create({ algorithm: 'ES256', generation }, clockAt(NOW))
    expect((await keysOf(new FolderKeys(folder))).map(({ generation }) => generation)).toEqual([2, 9, 10])
    expect(await newestGeneration(new FolderKeys(folder), 'ES256')).toBe(10)
    expect(await newestGeneration(new FolderKeys(folder), 'RS256')).toBe(0)
  })

  it('C6.3.4 say when a key was made and when it signs; what is no number counts as 0', async () => {
    const jwk = await generatePrivateJwk('ES256')
    const timesOf = async (members: object) => {
      const { createdAt, signsFrom } = await toSigningKey({ ...jwk, ...members }, 'ES256')
      return [createdAt, signsFrom]
    }
    expect(await timesOf({ iat: 5, nbf: 7 })).toEqual([5, 7])
    expect(await timesOf({ iat: 5 })).toEqual([5, 5])
    expect(await timesOf({ iat: '5', nbf: null })).toEqual([0, 0])
  })

  it('T7 the halves of an RSA key that do not belong together are refused', async () => {
    const [one, other] = [await generatePrivateJwk('RS256'), await generatePrivateJwk('RS256')]
    await expect(toSigningKey({ ...other, n: one['n'] }, 'RS256')).rejects.toThrow()
  })

  it('T7 a file that was damaged after the start keeps its key, and the trouble is told; others are read', async () => {
    const { folder, clock, keys } = await opened()
    const [first] = keys.kids
    await new FolderKeys(folder).create({ algorithm: 'ES256', generation: 2 }, clock)
    await writeFile(join(folder, 'ES256-1.jwk'), 'damaged')
    await expect(keys.refresh()).rejects.toThrow(/ES256-1\.jwk is damaged/)
    expect(keys.kids).toHaveLength(2)
    expect(keys.kids[0]).toBe(first)
  })

  it('T7 a damaged secret for refresh tokens stops the start; while the service runs, the one in memory stays', async () => {
    const { folder, clock, keys } = await opened()
    const before = keys.derive('token')
    const text = await readFile(join(folder, 'successors.secret'), 'utf8')
    await writeFile(join(folder, 'successors.secret'), text.slice(0, 20))
    await expect(keys.refreshSecret()).rejects.toThrow(/successors\.secret is damaged/)
    expect(keys.derive('token')).toBe(before)
    await expect(
      openKeys({ place: new FolderKeys(folder), algorithms: ['ES256'], rotation: ROTATION }, clock),
    ).rejects.toThrow(/damaged/)
  })
})

describe('the keys of the service', () => {
  it('T3.10 an empty folder in the place of theirs leaves them in use, and is told', async () => {
    const { folder, keys } = await opened()
    const before = published(keys)
    await rename(folder, `${folder}.away`)
    await mkdir(folder, { mode: 0o700 })
    await expect(keys.refresh()).rejects.toThrow(/replaced by an empty one/)
    expect(published(keys)).toEqual(before)
  })

  it('T3.10 a key that is announced or retired ends no other key', async () => {
    const { clock, keys } = await opened()
    const { key: first } = await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    clock.advance(29 * DAY)
    await keys.rotateIfDue()
    clock.advance(DAY)
    await keys.rotateIfDue()
    const { key: second } = await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    expect([first.isTrusted(), second.isTrusted()]).toEqual([true, true])
    clock.advance(DAY + 60_000)
    await keys.rotateIfDue()
    expect([first.isTrusted(), second.isTrusted()]).toEqual([false, true])
    // The file of the retired key is gone, and so is the key.
    expect(keys.kids).toEqual(published(keys))
  })

  it('T3.5 no reading of the folder is spent on a known key, a token without kid, or a signature', async () => {
    const { keys } = await opened()
    const [refresh, rotate] = [vi.spyOn(keys, 'refresh'), vi.spyOn(keys, 'rotateIfDue')]
    expect(await keys.find(keys.kids[0], 'ES256')).toHaveLength(1)
    expect(await keys.find(undefined, 'ES256')).toBeUndefined()
    await keys.sign({}, { typ: 'JWT', algorithm: 'ES256' })
    expect([refresh.mock.calls, rotate.mock.calls]).toEqual([[], []])
  })

  it('T3.5 at most a thousand tokens with unknown keys wait for a reading; all may wait for the next one', async () => {
    const { clock, keys } = await opened()
    const read = Promise.withResolvers<undefined>()
    const refresh = vi.spyOn(keys, 'refresh').mockImplementation(() => read.promise.then(() => undefined))
    for (let round = 1; round <= 2; round++) {
      clock.advance(1_000)
      const finished: string[] = []
      const calls = Array.from({ length: 1_001 }, (_, at) =>
        keys.find(`k${at}`, 'ES256').then(() => finished.push(`k${at}`)),
      )
      if (round === 1) {
        await calls[1_000]
        expect(finished).toEqual(['k1000'])
        read.resolve(undefined)
      }
      await Promise.all(calls)
      expect(refresh).toHaveBeenCalledTimes(round)
      // The call that does not wait ends before those that do.
      expect(finished[0]).toBe('k1000')
    }
  })
})

describe('a token that is not verified yet', () => {
  it('T3.2 may be 16 KiB long and no longer', () => {
    const detailOf = (length: number): unknown => {
      try {
        return parseCompactToken('x'.repeat(length))
      } catch (thrown) {
        return (thrown as { detail?: unknown }).detail ?? thrown
      }
    }
    expect(detailOf(16 * 1024 + 1)).toEqual(detailOf(100_000))
    expect(detailOf(16 * 1024)).toEqual(detailOf(1))
    expect(detailOf(16 * 1024)).not.toEqual(detailOf(16 * 1024 + 1))
  })

  it('T3.10 a key counts as asked for only once somebody asked', () => {
    const standing = new Standing()
    expect(standing.takeAsked()).toBe(false)
    expect(standing.isTrusted()).toBe(true)
    expect([standing.takeAsked(), standing.takeAsked()]).toEqual([true, false])
  })
})
