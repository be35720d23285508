import { describe, expect, it } from 'vitest'
import type { Change, FeedReading, Store } from '../../../src/base/contracts/records/store.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { budget, withStoreBudget } from '../../../src/base/kernel/store-budget.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

async function opened(prepare: (store: Store) => Promise<unknown> = () => Promise.resolve()) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const timers = manualAfter()
  const recorder = keepNotes()
  await prepare(store)
  const openFeed = () => ChangeFeed.open({ store, clock, recorder, after: timers.after })
  return { clock, store, timers, recorder, openFeed, feed: await openFeed() }
}

/** A subscriber that keeps the changes it gets. */
function keeper() {
  const applied: unknown[] = []
  const expired: unknown[] = []
  return {
    applied,
    expired,
    apply: (change: Change) => void applied.push(change.value),
    expire: (change: Change) => void expired.push(change.value),
  }
}

const breakDown = (store: MemoryStore): (() => void) => {
  const changes = store.changes.bind(store)
  store.changes = () => Promise.reject(new Fault('identity_unavailable', { detail: 'frozen' }))
  return () => {
    store.changes = changes
  }
}

describe('the change feed', () => {
  it('tells a subscriber what was there before, by topic and in order', async () => {
    const { feed } = await opened(async (store) => {
      await store.append('a', { n: 1 })
      await store.append('b', { n: 2 })
      await store.append('a', { n: 3 })
    })
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 3 }])
  })

  it('follows what others append, four times a second, each change once', async () => {
    const { feed, store, timers } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    await store.append('a', { n: 1 })
    expect(timers.delays()).toEqual([250])
    await timers.fire()
    await timers.fire()
    expect(subscriber.applied).toEqual([{ n: 1 }])
    await store.append('a', { n: 2 })
    await timers.fire()
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('applies what is appended here before append resolves, after all that came before it', async () => {
    const { feed, store, timers } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    await store.append('a', { n: 1 })
    await feed.append('a', { n: 2 })
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }])
    await timers.fire()
    expect(subscriber.applied).toHaveLength(2)
  })

  it('is read at once when nudged, also while a reading is under way', async () => {
    const { feed, store } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    const before = feed.refresh()
    await store.append('a', { n: 1 })
    await Promise.all([before, feed.refresh(), feed.refresh()])
    expect(subscriber.applied).toEqual([{ n: 1 }])
  })

  it('T5.5 goes on with what it knows while the store is out of reach, and says so once', async () => {
    const { feed, store, timers, recorder, clock } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    const mend = breakDown(store)
    for (let n = 0; n < 3; n += 1) {
      clock.advance(250)
      await timers.fire()
    }
    expect(recorder.events).toEqual(['change_feed.unreachable'])
    expect(feed.age).toBe(750)
    await store.append('a', { n: 1 })
    mend()
    await timers.fire()
    expect(subscriber.applied).toEqual([{ n: 1 }])
    expect(recorder.events).toEqual(['change_feed.unreachable', 'change_feed.reachable_again'])
    expect(feed.age).toBe(0)
  })

  it('applies here what it has appended, even if it could not be read back; the order is made good later', async () => {
    const { feed, store, timers } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    await store.append('a', { n: 1 })
    const mend = breakDown(store)
    await feed.append('a', { n: 2 })
    expect(subscriber.applied).toEqual([{ n: 2 }])
    mend()
    await timers.fire()
    expect(subscriber.applied).toEqual([{ n: 2 }, { n: 1 }, { n: 2 }])
  })

  it('T5.5 is read in a time of its own, also if a request with little time asks for that', async () => {
    const { feed, store } = await opened()
    const seen: unknown[] = []
    const changes = store.changes.bind(store)
    store.changes = (...args) => {
      seen.push(budget())
      return changes(...args)
    }
    await withStoreBudget(() => feed.refresh(), 5)
    expect(seen).toEqual([undefined])
  })

  it('T5.5 keeps a request no longer than its time: what it appended is in force all the same', async () => {
    const { feed, store } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    store.changes = () => new Promise(() => undefined)
    await withStoreBudget(() => feed.append('a', { n: 1 }), 20)
    expect(subscriber.applied).toEqual([{ n: 1 }])
  })

  it('rejects, and applies nothing, if a change could not be kept', async () => {
    const { feed, store } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    store.append = () => Promise.reject(new Fault('identity_unavailable'))
    await expect(feed.append('a', { n: 1 })).rejects.toBeInstanceOf(Fault)
    expect(subscriber.applied).toEqual([])
  })

  it('drops what has expired, and tells the subscriber', async () => {
    const { feed, clock, timers } = await opened()
    const subscriber = keeper()
    feed.subscribe('a', subscriber)
    await feed.append('a', { n: 1 }, clock.now() + 20_000)
    clock.advance(19_999)
    await timers.fire()
    expect(subscriber.expired).toEqual([])
    clock.advance(10_001)
    await timers.fire()
    expect(subscriber.expired).toEqual([{ n: 1 }])
    const late = keeper()
    feed.subscribe('a', late)
    expect(late.applied).toEqual([])
  })

  it('cannot be opened without the store', async () => {
    const { store, openFeed } = await opened()
    breakDown(store)
    await expect(openFeed()).rejects.toBeInstanceOf(Fault)
  })

  it('stops', async () => {
    const { feed, timers } = await opened()
    await feed.stop()
    expect(timers.delays()).toEqual([])
  })
})

/** A feed of a process, and one of another process of its machine to which it hands over what it has read. */
async function followed() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const [timers, followerTimers] = [manualAfter(), manualAfter()]
  const held: FeedReading[] = []
  const recorder = keepNotes()
  const reader = await ChangeFeed.open({ store, clock, recorder, after: timers.after })
  reader.shareWith({ pollChanges: () => undefined, takeReading: (reading) => void held.push(reading) })
  let asked = 0
  const counting = new Proxy(store, {
    get: (target, name) => {
      if (name === 'changes') asked += 1
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const feed = await ChangeFeed.open({ store: counting, clock, recorder, after: followerTimers.after })
  const subscriber = keeper()
  feed.subscribe('a', subscriber)
  held.length = 0
  /** The reader reads; what it hands over comes at once, unless it is held back. */
  const read = async (): Promise<void> => {
    await reader.refresh()
  }
  const hand = (): void => held.splice(0).forEach((reading) => feed.take(reading))
  return {
    ...{ clock, store, feed, subscriber, held, read, hand },
    tick: () => followerTimers.fire(),
    /** How often the follower has asked the store since the last look. */
    asked: (): number => {
      const count = asked
      asked = 0
      return count
    },
  }
}

describe('C11.7.2 a change feed that another process of the machine reads', () => {
  it('takes over what was read, each change once, and asks the store nothing', async () => {
    const { store, subscriber, read, hand, tick, asked } = await followed()
    asked()
    for (const n of [1, 2, 3]) {
      await store.append('a', { n })
      await read()
      hand()
      await tick()
    }
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(asked()).toBe(0)
  })

  it('T5.9 reads itself when nothing is handed over for a while, and goes on with what is handed over then', async () => {
    const { clock, store, subscriber, read, hand, tick, asked } = await followed()
    await read()
    hand()
    asked()
    clock.advance(700)
    await store.append('a', { n: 1 })
    await tick()
    expect(subscriber.applied).toEqual([{ n: 1 }])
    expect(asked()).toBe(1)
    await read()
    await store.append('a', { n: 2 })
    await read()
    hand()
    await tick()
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }])
    expect(asked()).toBe(0)
  })

  it('is as old as the reading, however late that comes', async () => {
    const { clock, feed, read, hand } = await followed()
    clock.advance(1000)
    await read()
    clock.advance(5000)
    hand()
    expect(feed.age).toBe(5000)
  })

  it('reads itself where a reading was lost on its way, so that no change is left out', async () => {
    const { store, feed, subscriber, held, read, hand } = await followed()
    await store.append('a', { n: 1 })
    await read()
    held.length = 0
    await store.append('a', { n: 2 })
    await read()
    hand()
    await feed.refresh()
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('is not taken back by a reading that is older than its own', async () => {
    const { clock, store, feed, subscriber, read, hand } = await followed()
    await read()
    clock.advance(100)
    await store.append('a', { n: 1 })
    await feed.refresh()
    hand()
    expect(feed.age).toBe(0)
    await feed.refresh()
    expect(subscriber.applied).toEqual([{ n: 1 }])
  })

  it('takes only what is new of a reading that begins before its own', async () => {
    const { store, feed, subscriber, read, hand, asked } = await followed()
    await store.append('a', { n: 1 })
    await feed.refresh()
    await store.append('a', { n: 2 })
    await read()
    asked()
    hand()
    expect(subscriber.applied).toEqual([{ n: 1 }, { n: 2 }])
    expect(asked()).toBe(0)
  })
})
