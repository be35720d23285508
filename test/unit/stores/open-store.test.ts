import { join } from 'node:path'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Report } from '../../../src/config/report.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { compileStore } from '../../../src/stores/config.ts'
import { openStore } from '../../../src/stores/open-store.ts'
import { dataFolder } from '../../support/data-folder.ts'

describe('opening the store of a configuration', () => {
  it('keeps SQLite in the data folder, which is made if it is not there', async () => {
    const data = join(await dataFolder(), 'new', 'data')
    const store = await openStore({ kind: 'sqlite', synchronous: 'full' }, data, systemClock)
    expect(await store.create('code', 'k', { value: {} })).toBe(true)
    await store.close()
    expect(existsSync(join(data, 'postern.sqlite'))).toBe(true)
  })

  it('C11.2 leaves no trace on disk with memory', async () => {
    const data = join(await dataFolder(), 'data')
    const store = await openStore({ kind: 'memory' }, data, systemClock)
    await store.create('code', 'k', { value: {} })
    expect(existsSync(data)).toBe(false)
  })

  it('T7 refuses memory where there are several processes', () => {
    const report = new Report()
    compileStore({ kind: 'memory' }, 1, report)
    compileStore({ kind: 'sqlite', synchronous: 'normal' }, 4, report)
    expect(report.failed).toBe(false)
    compileStore({ kind: 'memory' }, 2, report)
    expect(report.problems).toMatchObject([{ path: ['store', 'kind'] }])
  })
})
