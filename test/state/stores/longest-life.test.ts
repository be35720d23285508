import { expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { RecordedLife } from '../../../src/state/stores/feed/revocations.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const DAY = 86_400_000

it('T3.12 the longest life ever configured is recorded: a shorter one later does not lower it', async () => {
  const store = new MemoryStore(movableClock())
  const first = await RecordedLife.open(store, { tokens: DAY, all: 30 * DAY })
  await first.raise(90 * DAY)
  const later = await RecordedLife.open(store, { tokens: DAY, all: 7 * DAY })
  expect([later.tokens, later.all]).toEqual([DAY, 90 * DAY])
})

it('T3.12 of several that record at once the longest stays', async () => {
  const store = new MemoryStore(movableClock())
  const lives = [3, 90, 30, 7].map((days) => RecordedLife.open(store, { tokens: DAY, all: days * DAY }))
  await Promise.all(lives)
  expect((await RecordedLife.open(store, { tokens: DAY, all: DAY })).all).toBe(90 * DAY)
})

it('is known to this process also where the store cannot record it', async () => {
  const store = new MemoryStore(movableClock())
  store.create = () => Promise.reject(new Fault('identity_unavailable'))
  const life = await RecordedLife.open(store, { tokens: DAY, all: 90 * DAY })
  expect(life.all).toBe(90 * DAY)
  await expect(life.raise(91 * DAY)).rejects.toMatchObject({ code: 'identity_unavailable' })
})
