import { describe, expect, it } from 'vitest'
import type {
  AppendOptions,
  Change,
  FeedPage,
  FeedPlace,
  Store,
  StoredValue,
} from '../../../src/base/contracts/records/store.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { FeedView } from '../../../src/state/stores/feed/view.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

const MINUTE = 60_000
const PAGE = 5000

/** A feed that a failover can cut off behind a change. */
class LosingStore {
  changesNow: Change[] = []
  isFull = false
  appends = 0
  /** Called after each page. */
  read: () => void = () => undefined
  #marks = 0

  append(
    topic: string,
    value: StoredValue,
    { expiresAt, above = 0 }: AppendOptions = {},
  ): Promise<FeedPlace> {
    this.appends += 1
    if (this.isFull) return Promise.reject(new Fault('identity_unavailable', { detail: 'the disk is full' }))
    const sequence = Math.max(this.changesNow.at(-1)?.sequence ?? 0, above) + 1
    const place = { sequence, mark: `m${(this.#marks += 1)}` }
    this.changesNow.push({ ...place, topic, value, expiresAt })
    return Promise.resolve(place)
  }

  changes(after: FeedPlace | undefined, limit: number): Promise<FeedPage> {
    const at = this.changesNow.findIndex(
      ({ sequence, mark }) => sequence === after?.sequence && mark === after.mark,
    )
    const later = this.changesNow.slice(at + 1)
    const changes = later.slice(0, limit)
    const last = changes.at(-1) ?? this.changesNow.at(-1)
    const page = { last, now: 0, restarted: after !== undefined && at < 0, more: later.length > limit }
    this.read()
    return Promise.resolve({ ...page, changes })
  }

  lose(count: number): void {
    this.changesNow = this.changesNow.slice(0, -count)
  }

  said(topic: string): unknown[] {
    return this.changesNow.filter((change) => change.topic === topic).map(({ value }) => value['n'])
  }
}

async function opened(count: number) {
  const clock = movableClock()
  const store = new LosingStore()
  for (let n = 0; n < count; n += 1) await store.append('rule', { n })
  const open = async () => {
    const timers = manualAfter()
    const parts = { store: store as unknown as Store, clock, recorder: keepNotes(), after: timers.after }
    const feed = await ChangeFeed.open(parts)
    const applied: unknown[] = []
    feed.subscribe('rule', {
      apply: ({ value }) => void applied.push(value['n']),
      restore: ({ value }) => value,
    })
    return { feed, timers, applied }
  }
  return { clock, store, open, ...(await open()) }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

describe('T3.13 C11.7.3 what a store has lost', () => {
  it('does not keep a node from reading what others append while it is appended again', async () => {
    const { store, feed, applied } = await opened(1000)
    store.lose(900)
    const appended = store.append.bind(store)
    let other: Promise<FeedPlace> | undefined
    let appendsUntilKnown: number | undefined
    store.append = (...args) => {
      // When the first one is appended, another node appends too.
      other ??= appended('rule', { n: 'new' })
      if (applied.includes('new')) appendsUntilKnown ??= store.appends - 1001
      return appended(...args)
    }
    await feed.refresh()
    expect(appendsUntilKnown).toBeLessThanOrEqual(101)
    expect(new Set(store.said('rule'))).toEqual(new Set([...upTo(1000), 'new']))
  })

  it('leaves the view fresh for data calls while it cannot be appended again, but nothing is issued', async () => {
    const { clock, store, feed, timers } = await opened(2)
    const view = new FeedView({ feed, machine: clock, maxAge: 15 * MINUTE, after: timers.after })
    store.lose(1)
    store.isFull = true
    for (let ms = 0; ms < 20 * MINUTE; ms += 250) {
      clock.advance(250)
      await timers.fire()
    }
    expect(view.isOutdated).toBe(false)
    await expect(view.requireCurrent()).rejects.toMatchObject({ code: 'identity_unavailable' })
    store.isFull = false
    await view.requireCurrent()
    expect(store.said('rule')).toEqual([0, 1])
  })

  it('is not appended again by a node that finds it there already', async () => {
    const { store, feed, open } = await opened(3)
    const other = await open()
    store.lose(2)
    await feed.refresh()
    await other.feed.refresh()
    expect(store.said('rule')).toEqual([0, 1, 2])
  })

  it('is found, also if the store loses more while the whole feed is read', async () => {
    const { store, feed } = await opened(PAGE + 10)
    store.lose(1)
    let pages = 0
    store.read = () => {
      pages += 1
      if (pages === 1) store.lose(PAGE)
    }
    await feed.refresh()
    expect(new Set(store.said('rule'))).toEqual(new Set(upTo(PAGE + 10)))
  })
})

describe('C11.7.2 a change of this process', () => {
  it('that was read before its answer came is not applied again, behind a later one', async () => {
    const store = new LosingStore()
    await store.append('other', {})
    const parts = { store: store as unknown as Store, clock: movableClock(), recorder: keepNotes() }
    const feed = await ChangeFeed.open({ ...parts, after: manualAfter().after })
    const applied: unknown[] = []
    feed.subscribe('switch', { apply: ({ value }) => void applied.push(value['n']) })
    const append = store.append.bind(store)
    store.append = async (...args) => {
      store.append = append
      const place = await append(...args)
      await append('switch', { n: 'off' })
      await feed.refresh()
      return place
    }
    await feed.append('switch', { n: 'on' })
    expect(applied).toEqual(['on', 'off'])
    await feed.stop()
  })
})
