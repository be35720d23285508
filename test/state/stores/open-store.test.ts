import { join } from 'node:path'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { compileStore } from '../../../src/state/stores/schema.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { openStore, startPurging } from '../../../src/state/stores/open-store.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { PATIENT_STORE } from '../../support/patient-store.ts'

describe('opening the store of a configuration', () => {
  it('keeps SQLite in the data folder, which is made if it is not there', async () => {
    const data = join(await dataFolder(), 'new', 'data')
    const store = await openStore(
      { kind: 'sqlite', synchronous: 'full', deadline: 10_000 },
      data,
      systemClock,
    )
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
    const problems = new Problems()
    compileStore({ kind: 'memory' }, 1, problems)
    compileStore(PATIENT_STORE, 4, problems)
    expect(problems.failed).toBe(false)
    compileStore({ kind: 'memory' }, 2, problems)
    expect(problems.list).toMatchObject([{ path: ['store', 'kind'] }])
  })

  it('T5.5 refuses a deadline within which no disk is sure to answer', () => {
    const problems = new Problems()
    compileStore({ kind: 'sqlite', synchronous: 'normal', deadline: 100 }, 1, problems)
    expect(problems.failed).toBe(false)
    compileStore({ kind: 'sqlite', synchronous: 'normal', deadline: 99 }, 1, problems)
    expect(problems.list).toMatchObject([{ path: ['store', 'deadline'] }])
  })
})

function started(random = 0.5) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const timers = manualAfter()
  const recorder = keepNotes()
  const stop = startPurging({ store, recorder, after: timers.after, random: () => random })
  return { clock, store, timers, recorder, stop }
}

describe('the purge', () => {
  it('runs once a minute, give or take a quarter', () => {
    expect(started(0).timers.delays()).toEqual([45_000])
    expect(started(0.5).timers.delays()).toEqual([60_000])
    expect(started(1).timers.delays()).toEqual([75_000])
  })

  it('goes on in small batches until nothing is left', async () => {
    const { clock, store, timers } = started()
    for (let n = 0; n < 300; n += 1)
      await store.create('code', `${n}`, { value: {}, expiresAt: clock.now() + 1 })
    clock.advance(1)
    await timers.fire()
    expect(timers.delays()).toEqual([50])
    await timers.fire()
    await timers.fire()
    expect(timers.delays()).toEqual([60_000])
    expect(await store.purge(1000)).toBe(0)
  })

  it('T5.5 survives a store that is out of reach, and tells', async () => {
    const { store, timers, recorder } = started()
    store.purge = () => Promise.reject(new Fault('identity_unavailable'))
    await timers.fire()
    expect(recorder.events).toEqual(['store.purge_failed'])
    expect(timers.delays()).toEqual([60_000])
  })

  it('stops', async () => {
    const { timers, stop } = started()
    stop()
    await timers.fire()
    expect(timers.delays()).toEqual([])
  })
})
