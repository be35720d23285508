import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/clock.ts'
import { openStore } from '../../../src/stores/open-store.ts'
import { copyIntoMemory } from '../../../src/stores/read-store.ts'
import { sqliteFile } from '../../../src/stores/schema.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { PATIENT_STORE } from '../../support/patient-store.ts'

describe('C12.1.7 a store in a folder that cannot be written', () => {
  it('is copied into memory, with its indexes and without what expires; nothing is made beside it', async () => {
    const data = await dataFolder()
    const store = await openStore(PATIENT_STORE, data, systemClock)
    const indexes = { client: 'é"tally', subject: 'S-1' }
    await store.create('client', 'é"tally', { value: { name: 'Tally' }, indexes })
    await store.create('refresh_family', 'f', { value: {}, expiresAt: Date.now() + 60_000 })
    await store.close()
    const before = readdirSync(data)
    const copy = await copyIntoMemory(sqliteFile(data), systemClock)
    expect(await copy.find('client', 'é"tally')).toMatchObject({ value: { name: 'Tally' } })
    for (const [index, value] of Object.entries(indexes))
      expect(await copy.listBy('client', index as keyof typeof indexes, value)).toHaveLength(1)
    expect(await copy.list('refresh_family')).toEqual([])
    expect(readdirSync(data)).toEqual(before)
  })

  it('is empty where there is no file', async () => {
    const copy = await copyIntoMemory(sqliteFile(await dataFolder()), systemClock)
    expect(await copy.list('client')).toEqual([])
  })
})
