import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MeasuredStore, STORE_VERBS } from '../../../src/state/stores/measured-store.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { SqliteStore } from '../../../src/state/stores/sqlite/sqlite.ts'
import { movableClock } from '../../support/movable-clock.ts'

function measured() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const told: (readonly [string, number, boolean])[] = []
  return { clock, store, told, asked: new MeasuredStore(store, clock, (...call) => told.push(call)) }
}

describe('a store that is measured', () => {
  it('C11.1 tells the verb, the time and the success of each call, and passes the answer on', async () => {
    const { asked, told, store, clock } = measured()
    expect(await asked.create('kind', 'key', { value: { a: 1 } })).toBe(true)
    const slow = Promise.withResolvers<undefined>()
    store.find = () => slow.promise
    const found = asked.find('kind', 'key')
    clock.advance(250)
    slow.resolve(undefined)
    expect(await found).toBeUndefined()
    expect(told).toEqual([
      ['create', 0, false],
      ['find', 0.25, false],
    ])
  })

  it('C11.1 is up until a call fails, and again when one is answered', async () => {
    const { asked, told, store } = measured()
    expect(asked.isUp).toBe(true)
    const find = store.find.bind(store)
    store.find = () => Promise.reject(new Fault('identity_unavailable'))
    await expect(asked.find('kind', 'key')).rejects.toThrow(Fault)
    expect([asked.isUp, told.at(-1)]).toEqual([false, ['find', 0, true]])
    store.find = find
    await asked.find('kind', 'key')
    expect(asked.isUp).toBe(true)
  })

  it('C11.1 is down while it has a lasting problem, whatever it answers', async () => {
    const { asked, store } = measured()
    Object.defineProperty(store, 'trouble', { value: 'its file was deleted' })
    await asked.find('kind', 'key')
    expect([asked.isUp, asked.trouble]).toEqual([false, 'its file was deleted'])
  })

  it('C11.1 measures every method that asks the store something', () => {
    const { asked } = measured()
    const members = Object.entries(Object.getOwnPropertyDescriptors(SqliteStore.prototype))
    const methods = members
      .filter(([, descriptor]) => 'value' in descriptor)
      .map(([name]) => name)
      .filter((name) => name !== 'constructor' && name !== 'close' && name in asked)
    expect(methods.toSorted()).toEqual([...STORE_VERBS].toSorted())
  })
})
