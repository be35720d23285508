import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SECRET, SIGNING_KEY } from '../../../src/base/contracts/records/store.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { Seals } from '../../../src/identity/keys/signing/seal.ts'
import { copyKeys, SealedKeys } from '../../../src/extensions/postgres/sealed-keys.ts'
import { openKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { sealKey } from '../../support/seal-key.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'

/** A folder that a service has used, and a store that nobody has used. */
async function opened() {
  const clock = movableClock()
  const folder = join(await dataFolder(), 'keys')
  const from = new FolderKeys(folder)
  const plan = { algorithms: ['ES256' as const], rotation: ROTATION }
  const before = await openKeys({ place: from, ...plan }, clock)
  clock.advance(29 * 86_400_000)
  await before.rotateIfDue()
  const store = new MemoryStore(clock)
  const to = new SealedKeys(store, new Seals([sealKey('a')]))
  return { folder, from, to, before, store, after: () => openKeys({ place: to, ...plan }, clock) }
}

describe('copying keys to a store that nodes share', () => {
  it('C6.3.4 keeps every key with its times, and the secret: no token is lost', async () => {
    const { from, to, before, after } = await opened()
    expect(await copyKeys(from, to)).toEqual(['ES256-1', 'ES256-2', 'secret of refresh tokens'])
    const keys = await after()
    expect(keys.states).toBe(before.states)
    expect(keys.secretId).toBe(before.secretId)
    expect(keys.made).toBe(false)
  })

  it('C6.3.4 goes on where an earlier copy ended, and changes nothing that is there', async () => {
    const { from, to, store, before, after } = await opened()
    await to.put('ES256-1', await from.textOf('ES256-1'))
    await copyKeys(from, to)
    const rows = JSON.stringify([await store.list(SIGNING_KEY), await store.list(SECRET)])
    await copyKeys(from, to)
    expect(JSON.stringify([await store.list(SIGNING_KEY), await store.list(SECRET)])).toBe(rows)
    expect((await after()).states).toBe(before.states)
  })

  it('T7 writes nothing to a store that has other keys, or another secret', async () => {
    const { from, to, after, store } = await opened()
    const { kids } = await after()
    await expect(copyKeys(from, to)).rejects.toThrow(/The store has keys of its own/)
    expect((await after()).kids).toEqual(kids)
    for (const name of await to.names()) await to.remove(name)
    await expect(copyKeys(from, to)).rejects.toThrow(/The store has keys of its own/)
    expect(await store.list(SIGNING_KEY)).toEqual([])
  })

  it('T7 writes nothing if a key cannot be read', async () => {
    const { folder, from, to, store } = await opened()
    await writeFile(join(folder, 'ES256-2.jwk'), 'damaged')
    await expect(copyKeys(from, to)).rejects.toThrow(/ES256-2\.jwk is damaged/)
    expect([await store.list(SIGNING_KEY), await store.list(SECRET)]).toEqual([[], []])
    expect(await readFile(join(folder, 'ES256-2.jwk'), 'utf8')).toBe('damaged')
  })
})
