import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { FeedView } from '../../../src/state/stores/feed/view.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

const MINUTE = 60_000

async function opened() {
  const machine = movableClock()
  const store = new MemoryStore(machine)
  const [polls, timers] = [manualAfter(), manualAfter()]
  const recorder = keepNotes()
  const feed = await ChangeFeed.open({ store, clock: machine, recorder, after: polls.after })
  const advances: number[] = []
  const offset = { advance: (ms: number) => void advances.push(ms) }
  const view = new FeedView({ feed, machine, offset, maxAge: 15 * MINUTE, after: timers.after })
  let reads = 0
  const changes = store.changes.bind(store)
  const counted: typeof changes = (...args) => {
    reads += 1
    return changes(...args)
  }
  store.changes = counted
  /** Requests fail, or are never answered. */
  const breakStore = (how: 'fails' | 'hangs'): void => {
    store.changes = () => {
      reads += 1
      return how === 'hangs'
        ? new Promise(() => undefined)
        : Promise.reject(new Fault('identity_unavailable'))
    }
  }
  /** The next request is answered when the returned function is called, by what the store had when it was asked. */
  const holdNext = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    store.changes = async (...args) => {
      store.changes = counted
      const page = await counted(...args)
      await promise
      return page
    }
    return () => resolve(undefined)
  }
  return { machine, store, feed, view, timers, polls, advances, breakStore, holdNext, reads: () => reads }
}

/** What is under way goes on. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** 250 ms pass, and the timers of the view and of the feed fire. */
const tick = async ({ machine, timers, polls }: Awaited<ReturnType<typeof opened>>): Promise<void> => {
  machine.advance(250)
  await timers.fire()
  await polls.fire()
}

describe('C11.7.2 the view of the store', () => {
  it('is settled and current while time passes as it should, and reads nothing for that', async () => {
    const all = await opened()
    for (let n = 0; n < 8; n += 1) await tick(all)
    const before = all.reads()
    expect(all.view.isSettled()).toBe(true)
    await all.view.requireCurrent()
    expect(all.reads()).toBe(before)
  })

  it('is not settled in the first turn after a pause, and is when one reading has ended', async () => {
    const { machine, view, reads } = await opened()
    machine.advance(MINUTE)
    expect(view.isSettled()).toBe(false)
    await Promise.all([view.settle(), view.settle()])
    expect(reads()).toBe(1)
    expect(view.isSettled()).toBe(true)
  })

  it.each([
    ['the wall clock alone moved, as in a suspended machine', MINUTE],
    ['the wall clock was set back', -MINUTE],
  ])('is not settled when %s', async (_name, ms) => {
    const { machine, view } = await opened()
    machine.step(ms)
    expect(view.isSettled()).toBe(false)
  })

  it('tells the store’s clock of a suspension, in which monotonic time stood still, but not of a pause', async () => {
    const { machine, view, advances } = await opened()
    machine.advance(MINUTE)
    await view.settle()
    expect(advances).toEqual([])
    machine.step(MINUTE)
    await view.settle()
    expect(advances).toEqual([MINUTE])
  })

  it('keeps calls waiting for 300 ms at most, then they go on with what is known', async () => {
    const { machine, view, timers, breakStore } = await opened()
    breakStore('hangs')
    machine.advance(MINUTE)
    const settled = view.settle()
    expect(timers.delays()).toContain(300)
    machine.advance(300)
    await timers.fire()
    await settled
    expect(view.isSettled()).toBe(true)
    expect(view.isOutdated).toBe(false)
  })

  it('goes on as known while the store is out of reach, without a pause', async () => {
    const all = await opened()
    all.breakStore('fails')
    for (let n = 0; n < 40; n += 1) await tick(all)
    expect(all.view.isSettled()).toBe(true)
    expect(all.view.isOutdated).toBe(false)
  })

  it('issues nothing when it is older than a second and cannot be read at once', async () => {
    const all = await opened()
    all.breakStore('fails')
    for (let n = 0; n < 4; n += 1) await tick(all)
    await all.view.requireCurrent()
    await tick(all)
    await expect(all.view.requireCurrent()).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('issues after a pause when the feed was read again', async () => {
    const { machine, view, reads } = await opened()
    machine.advance(MINUTE)
    await view.requireCurrent()
    expect(reads()).toBe(1)
  })

  it('is outdated from store.maxAge on, until the feed is read', async () => {
    const all = await opened()
    const { machine, view, breakStore } = all
    breakStore('fails')
    machine.advance(15 * MINUTE + 1)
    await view.settle()
    expect(view.isOutdated).toBe(true)
  })

  it('counts the time of a suspension, in which monotonic time stood still', async () => {
    const { machine, view, breakStore } = await opened()
    breakStore('fails')
    machine.step(10 * 60 * MINUTE)
    await view.settle()
    expect(view.isOutdated).toBe(true)
  })

  it('T3.13 issues nothing by an answer that lay in the socket while the process was paused', async () => {
    const { machine, view, timers, polls, breakStore, holdNext } = await opened()
    const answer = holdNext()
    await polls.fire()
    breakStore('hangs')
    machine.advance(MINUTE)
    answer()
    const issued = expect(view.requireCurrent()).rejects.toMatchObject({ code: 'identity_unavailable' })
    machine.advance(300)
    await settled()
    await timers.fire()
    await issued
  })

  it('T3.13 is as old as the question to the store, not as the answer', async () => {
    const { machine, feed, polls, holdNext } = await opened()
    const answer = holdNext()
    await polls.fire()
    machine.advance(900)
    answer()
    await settled()
    expect(feed.age).toBe(900)
  })

  it('T3.13 reads once more if the process was paused while calls waited for a reading', async () => {
    const { machine, store, feed, view, holdNext } = await opened()
    const applied: unknown[] = []
    feed.subscribe('rules', { apply: ({ value }) => void applied.push(value['n']) })
    machine.advance(MINUTE)
    const answer = holdNext()
    const settling = view.settle()
    await settled()
    await store.append('rules', { n: 1 })
    machine.advance(MINUTE)
    answer()
    await settling
    expect(applied).toEqual([1])
  })

  it('T3.13 tells the store’s clock of each suspension once, also of one while calls waited', async () => {
    const { machine, view, advances, holdNext } = await opened()
    machine.step(MINUTE)
    const answer = holdNext()
    const settling = view.settle()
    await settled()
    machine.step(2 * MINUTE)
    answer()
    await settling
    expect(advances).toEqual([MINUTE, 2 * MINUTE])
    expect(view.isSettled()).toBe(true)
  })
})
