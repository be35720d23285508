import { readdirSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { openStore } from '../../../src/state/stores/open-store.ts'
import { inspectStore, openSqliteToRead } from '../../../src/state/stores/read-store.ts'
import { sqliteFile } from '../../../src/state/stores/schema.ts'
import { StoreError } from '../../../src/state/stores/link/store-error.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { PATIENT_STORE } from '../../support/patient-store.ts'

describe('C12.1.7 a store that is only read', () => {
  it('shows what is live, page by page, and makes nothing beside its file', async () => {
    const data = await dataFolder()
    const store = await openStore(PATIENT_STORE, data, systemClock)
    for (const key of ['a', 'b', 'é"c']) await store.create('client', key, { value: { name: key } })
    await store.create('client', 'gone', { value: {}, expiresAt: 1 })
    // While another process has it open, too.
    const beside = openSqliteToRead(data)
    expect(await beside.find('client', 'é"c')).toMatchObject({ value: { name: 'é"c' } })
    await store.close()
    const before = readdirSync(data)
    const reader = openSqliteToRead(data)
    expect(await reader.find('client', 'a')).toMatchObject({ key: 'a', value: { name: 'a' } })
    expect(await reader.find('client', 'gone')).toBeUndefined()
    expect((await reader.list('client', { after: 'a', limit: 5 })).map(({ key }) => key)).toEqual([
      'b',
      'é"c',
    ])
    await expect(reader.create('client', 'd', { value: {} })).rejects.toThrow(StoreError)
    expect(readdirSync(data)).toEqual(before)
  })

  it('is not passed over where a record is damaged: what inspects it is told', async () => {
    const data = await dataFolder()
    const store = await openStore(PATIENT_STORE, data, systemClock)
    await store.create('client', 'a', { value: { name: 'a' } })
    await store.close()
    const list = () =>
      inspectStore({ config: PATIENT_STORE, data, kinds: new Map() }, async (reader) => {
        await reader.list('client')
      })
    await list()
    using db = new DatabaseSync(sqliteFile(data))
    db.exec("UPDATE record SET value = '{broken'")
    await expect(list()).rejects.toThrow(StoreError)
  })

  it('is empty where there is no file, unless there was one', async () => {
    const data = await dataFolder()
    expect(await openSqliteToRead(data).list('client')).toEqual([])
    await (await openStore(PATIENT_STORE, data, systemClock)).close()
    rmSync(sqliteFile(data))
    expect(() => openSqliteToRead(data)).toThrow(/is gone/)
  })
})
