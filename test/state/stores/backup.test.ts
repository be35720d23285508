import { copyFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { backUpSqlite } from '../../../src/state/stores/read-store.ts'
import { StoreError } from '../../../src/state/stores/link/store-error.ts'
import { allChanges } from '../../support/all-changes.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { sqliteAt } from '../../support/patient-store.ts'
import { startStoreProcess } from '../../support/store-process.ts'

async function filled() {
  const folder = await dataFolder()
  const path = join(folder, 'postern.sqlite')
  const store = await sqliteAt(path)
  await store.create('code', 'k', { value: { a: 1 }, indexes: { client: 'c' } })
  await store.append('topic', { b: 2 })
  return { folder, path, store, copy: join(folder, 'copy.sqlite') }
}

describe('a backup', () => {
  it('holds what the live store held, for its owner only', async () => {
    const { path, store, copy } = await filled()
    backUpSqlite(path, copy)
    await store.remove('code', 'k')
    expect(statSync(copy).mode & 0o777).toBe(0o600)
    const restored = await sqliteAt(copy)
    expect(await restored.listBy('code', 'client', 'c')).toMatchObject([{ key: 'k', value: { a: 1 } }])
    expect(await allChanges(restored)).toMatchObject([{ topic: 'topic', value: { b: 2 } }])
  })

  it('is put back by copying the file', async () => {
    const { folder, path, store, copy } = await filled()
    backUpSqlite(path, copy)
    await store.remove('code', 'k')
    await store.close()
    expect(readdirSync(folder).sort()).toEqual(['copy.sqlite', 'postern.sqlite'])
    copyFileSync(copy, path)
    expect(await (await sqliteAt(path)).find('code', 'k')).toBeDefined()
  })

  it('is the store of one moment while another process writes', async () => {
    const { path, copy } = await filled()
    const writer = startStoreProcess('write', path)
    await writer.line('consumed')
    const before = writer.lines
      .filter((line) => line.startsWith('consumed'))
      .map((line) => line.split(' ')[1] ?? '')
    backUpSqlite(path, copy)
    const entries = await (await sqliteAt(copy)).list('key')
    const keys = new Set(entries.map(({ key }) => key))
    expect(before.filter((key) => !keys.has(key))).toEqual([])
    // One after the other was created and then consumed: at most the last is not consumed yet.
    expect(entries.filter(({ usedAt }) => usedAt === undefined).length).toBeLessThanOrEqual(1)
  })

  it('overwrites nothing, and leaves nothing behind', async () => {
    const { folder, path, copy } = await filled()
    writeFileSync(copy, 'precious')
    expect(() => backUpSqlite(path, copy)).toThrow(/exists already, and is left as it is/)
    expect(await readFile(copy, 'utf8')).toBe('precious')
    expect(() => backUpSqlite(path, join(folder, 'no-such-folder', 'copy'))).toThrow(StoreError)
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([])
  })

  it('of no store, or of something else, is refused', async () => {
    const { folder, copy } = await filled()
    expect(() => backUpSqlite(join(folder, 'none'), copy)).toThrow(/no store at/)
    writeFileSync(join(folder, 'text'), 'some text, long enough to be looked at\n'.repeat(100))
    expect(() => backUpSqlite(join(folder, 'text'), copy)).toThrow(/cannot be copied/)
  })
})
