import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { examineKeys } from '../../../src/identity/keys/signing/examine-keys.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { createPrivateFolder } from '../../../src/base/files/private-folder.ts'
import { compareWithHistory } from '../../../src/identity/keys/signing/watch-keys.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { clockAt, NOW, ROTATION } from '../../support/keys-for-tests.ts'

const { every, announce } = ROTATION

async function newFolder(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  return join(data, 'keys')
}

/** A folder with one ES256 key, made and signing from NOW on. */
async function folderWithKey(): Promise<string> {
  const folder = await newFolder()
  await createPrivateFolder(folder)
  await new FolderKeys(folder).create({ algorithm: 'ES256', generation: 1 }, clockAt(NOW))
  return folder
}

interface Circumstances {
  readonly now?: number
  readonly automatic?: boolean
  readonly algorithms?: readonly ('ES256' | 'RS256')[]
  readonly store?: MemoryStore
}

async function examine(
  folder: string,
  { now = NOW, automatic = true, algorithms = ['ES256'], store }: Circumstances = {},
) {
  const findings = await examineKeys(
    { place: new FolderKeys(folder), algorithms, rotation: { ...ROTATION, automatic } },
    now,
    store,
  )
  return findings.map(({ level, text }) => `${level}: ${text}`)
}

describe('the examination of a key folder', () => {
  it('C6.3.4 a folder that does not exist is created by the first start', async () => {
    expect(await examine(await newFolder())).toEqual([
      expect.stringMatching(/^warning: .* does not exist: the first start creates it/),
    ])
  })

  it('C6.3.4 names the key that signs, and says where an algorithm has none', async () => {
    expect(await examine(await folderWithKey(), { algorithms: ['ES256', 'RS256'] })).toEqual([
      'fine: ES256-1.jwk signs ES256.',
      'warning: There is no RS256 key: the next start creates one.',
    ])
  })

  it('T5.6 a key that signs only in the future shows a clock that is wrong', async () => {
    const folder = await folderWithKey()
    expect(await examine(folder, { now: NOW })).toHaveLength(1)
    expect(await examine(folder, { now: NOW - 1 })).toEqual([
      'fine: ES256-1.jwk signs ES256.',
      expect.stringMatching(/^warning: ES256-1\.jwk starts signing at a time that is in the future/),
    ])
  })

  it('C6.3.4 a key that was not replaced in time is told, with what to do', async () => {
    const folder = await folderWithKey()
    const late = NOW + every + announce
    expect(await examine(folder, { now: late })).toHaveLength(1)
    expect(await examine(folder, { now: late + 1 })).toContainEqual(
      expect.stringMatching(/^warning: ES256-1\.jwk should have been replaced by now/),
    )
    expect(await examine(folder, { now: late + 1, automatic: false })).toContainEqual(
      expect.stringMatching(/^warning: ES256-1\.jwk is older than .*postern keys rotate/),
    )
    // The next key exists, and signs soon.
    await new FolderKeys(folder).create(
      { algorithm: 'ES256', generation: 2, signsFrom: late + 10 },
      clockAt(late),
    )
    expect(await examine(folder, { now: late + 1 })).toEqual(['fine: ES256-1.jwk signs ES256.'])
  })

  it('C6.3.4 a draft of a key that was never finished is told, other files are not', async () => {
    const folder = await folderWithKey()
    await writeFile(join(folder, '.ES256-2.jwk.AbCdEf_-0123'), '', { mode: 0o600 })
    await writeFile(join(folder, 'README'), '')
    expect(await examine(folder)).toEqual([
      'fine: ES256-1.jwk signs ES256.',
      expect.stringMatching(/^warning: \.ES256-2\.jwk\.AbCdEf_-0123 was left by a process that died/),
    ])
  })

  it('T7 a key file that cannot be used is an error, and never thrown', async () => {
    const folder = await folderWithKey()
    await writeFile(join(folder, 'ES256-1.jwk'), '{}')
    expect(await examine(folder)).toEqual([expect.stringMatching(/^error: .*ES256-1\.jwk is damaged/)])
  })

  it('C6.3.4 the keys are compared with those that the store remembers', async () => {
    const folder = await folderWithKey()
    const own = new MemoryStore(movableClock())
    expect(await examine(folder, { store: own })).toContain('fine: The store remembers no keys yet.')
    // To examine changes nothing.
    expect(await examine(folder, { store: own })).toContain('fine: The store remembers no keys yet.')
    const { kid } = await new FolderKeys(folder).create({ algorithm: 'ES256', generation: 1 }, clockAt(NOW))
    await compareWithHistory({ kids: ['older', kid], made: false }, own)
    expect(await examine(folder, { store: own })).toContain('fine: The store knows these keys.')
    const other = new MemoryStore(movableClock())
    await compareWithHistory({ kids: ['another'], made: false }, other)
    expect(await examine(folder, { store: other })).toContainEqual(
      expect.stringMatching(/^error: The store remembers other keys/),
    )
  })

  it('C4.15 a store that cannot be reached is a fault, not a finding about the keys', async () => {
    const store = new MemoryStore(movableClock())
    store.find = () => Promise.reject(new Fault('identity_unavailable'))
    await expect(examine(await folderWithKey(), { store })).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
  })
})
