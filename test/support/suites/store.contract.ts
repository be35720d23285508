import { describe, expect, it, onTestFinished } from 'vitest'
import type {
  Entry,
  FeedPlace,
  IndexValues,
  NewEntry,
  NewRecord,
  Store,
} from '../../../src/base/contracts/records/store.ts'
import type { Clock } from '../../../src/base/kernel/clock.ts'
import { byKey } from '../../../src/base/kernel/key-order.ts'
import { allChanges } from '../all-changes.ts'
import { movableClock, type MovableClock } from '../movable-clock.ts'
import { atEnd, shared } from '../shared.ts'

/** A place for the data of a store. If the store is durable, opening it again finds the data. */
export interface StorePlace {
  open(clock: Clock): Promise<Store>
  /** Removes all that is in it, while stores have it open. Without it every test has a place of its own. */
  empty?(): void
}

export interface StoreUnderTest {
  readonly name: string
  /** Whether the data is still there after `close` and `open`. */
  readonly durable: boolean
  /** A new place, removed after the test. */
  place(): Promise<StorePlace>
}

const PARALLEL = 16
const HOSTILE: readonly (readonly [string, string])[] = [
  ['empty', ''],
  ['a NUL', 'a\0b'],
  ['another after the NUL', 'a\0c'],
  ['quotes', `'"\`); DROP TABLE record; --`],
  ['a backslash', '\\u0000'],
  ['wildcards', '%_*?[a-z]'],
  ['white space', ' \t\r\n'],
  ['a composed character', '\u00e9'],
  ['the same decomposed', 'e\u0301'],
  ['an emoji', '🗝️'],
  ['a lone surrogate', '\ud800'],
  ['another lone surrogate', '\udfff'],
  ['upper case', 'Key'],
  ['lower case', 'key'],
  ['a prototype', '__proto__'],
  ['10 KB', 'x'.repeat(10_240)],
  ['10 KB and one', 'x'.repeat(10_241)],
]

/** What every store must do. */
export function describeStore(subject: StoreUnderTest): void {
  const open = async () => {
    const clock = movableClock()
    const place = await subject.place()
    const store = await place.open(clock)
    atEnd(() => store.close())
    return { place, store, clock }
  }
  const kept = shared(open)
  /** A store with nothing in it. The tests share one where it can be emptied: to open one costs more than most of them. */
  const opened = async (): Promise<{ store: Store; clock: MovableClock }> => {
    const found = await kept()
    if (found.place.empty === undefined) return open()
    found.place.empty()
    return found
  }
  const valueOf = (entry: Entry | undefined): unknown => entry?.value
  const make = (value: NewEntry['value'] = {}, more: Omit<NewEntry, 'value'> = {}): NewEntry => ({
    value,
    ...more,
  })
  const keysOf = (entries: readonly Entry[]): string[] => entries.map(({ key }) => key).sort()

  describe(`${subject.name}: records`, () => {
    it('are found as they were created, at version 1 and unused', async () => {
      const { store, clock } = await opened()
      const value = { text: 'ä\0"', number: 1.5, list: [1, [null]], nested: { __proto__x: true } }
      expect(await store.create('code', 'k', make(value, { expiresAt: clock.now() + 5 }))).toBe(true)
      expect(await store.find('code', 'k')).toEqual({
        key: 'k',
        value,
        version: 1,
        expiresAt: clock.now() + 5,
        usedAt: undefined,
      })
    })

    it('may expire within a millisecond, as clients write a NumericDate with fractions', async () => {
      const { store, clock } = await opened()
      const expiresAt = clock.now() + 5.25
      await store.create('code', 'k', make({}, { expiresAt }))
      await store.replace('code', 'k', 1, {}, expiresAt)
      await store.redeem('code', 'k', { value: {}, expiresAt }, [])
      await store.append('topic', {}, { expiresAt })
      expect((await store.find('code', 'k'))?.expiresAt).toBe(clock.now() + 6)
    })

    it('are created once: a second create changes nothing', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make({ by: 1 }))
      expect(await store.create('code', 'k', make({ by: 2 }))).toBe(false)
      expect(valueOf(await store.find('code', 'k'))).toEqual({ by: 1 })
    })

    it('are created by exactly one of 16 parallel creates', async () => {
      const { store } = await opened()
      const made = await Promise.all(
        Array.from({ length: PARALLEL }, (_, by) => store.create('code', 'k', make({ by }))),
      )
      expect(made.filter(Boolean)).toHaveLength(1)
      expect(valueOf(await store.find('code', 'k'))).toEqual({ by: made.indexOf(true) })
    })

    it('of two kinds do not meet', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make({ a: 1 }))
      expect(await store.find('session', 'k')).toBeUndefined()
      expect(await store.create('session', 'k', make({ a: 2 }))).toBe(true)
      expect(valueOf(await store.find('code', 'k'))).toEqual({ a: 1 })
    })

    it('are copies, going in and coming out', async () => {
      const { store } = await opened()
      const value = { list: [1] }
      await store.create('code', 'k', make(value))
      value.list.push(2)
      const found = (await store.find('code', 'k'))?.value as { list: number[] }
      found.list.push(3)
      expect(valueOf(await store.find('code', 'k'))).toEqual({ list: [1] })
    })

    it.each(HOSTILE)('are told apart by any key: %s', async (_, key) => {
      const { store } = await opened()
      for (const [, other] of HOSTILE)
        if (other !== key) await store.create('code', other, make({ other }, { indexes: { client: other } }))
      expect(await store.find('code', key)).toBeUndefined()
      expect(await store.create('code', key, make({ key }, { indexes: { client: key } }))).toBe(true)
      expect(await store.find('code', key)).toMatchObject({ key, value: { key } })
      expect(keysOf(await store.listBy('code', 'client', key))).toEqual([key])
      expect(await store.consume('code', key)).toMatchObject({ first: true, entry: { key } })
      expect(await store.countBy('code', { client: key })).toBe(1)
      expect(await store.removeBy('code', { client: key })).toBe(1)
      expect(await store.list('code')).toHaveLength(HOSTILE.length - 1)
    })

    it('are removed in the version that is named, and stay in any other', async () => {
      const { store, clock } = await opened()
      await store.create('code', 'k', make({ by: 1 }, { expiresAt: clock.now() + 10 }))
      await store.replace('code', 'k', 1, { by: 2 }, clock.now() + 10)
      for (const version of [0, 1, 3]) expect(await store.remove('code', 'k', version)).toBe(false)
      expect(await store.find('code', 'k')).toMatchObject({ value: { by: 2 }, version: 2 })
      const removed = await Promise.all(Array.from({ length: PARALLEL }, () => store.remove('code', 'k', 2)))
      expect(removed.filter(Boolean)).toHaveLength(1)
      expect(await store.find('code', 'k')).toBeUndefined()
      expect(await store.remove('code', 'k', 2)).toBe(false)
      await store.create('code', 'k', make({ by: 3 }, { expiresAt: clock.now() + 10 }))
      clock.advance(10)
      expect(await store.remove('code', 'k', 1)).toBe(false)
    })

    it('are removed once', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make())
      expect(await store.remove('code', 'k')).toBe(true)
      expect(await store.remove('code', 'k')).toBe(false)
      expect(await store.find('code', 'k')).toBeUndefined()
    })
  })

  describe(`${subject.name}: expiry`, () => {
    it('keeps a record to its last millisecond, and not one longer', async () => {
      const { store, clock } = await opened()
      await store.create('code', 'k', make({}, { expiresAt: clock.now() + 1000, indexes: { client: 'c' } }))
      clock.advance(999)
      expect(await store.find('code', 'k')).toBeDefined()
      clock.advance(1)
      expect(await store.find('code', 'k')).toBeUndefined()
      expect(await store.consume('code', 'k')).toBeUndefined()
      expect(await store.replace('code', 'k', 1, {})).toBe(false)
      expect(await store.remove('code', 'k')).toBe(false)
      expect(await store.list('code')).toEqual([])
      expect(await store.listBy('code', 'client', 'c')).toEqual([])
      expect(await store.countBy('code', { client: 'c' })).toBe(0)
      expect(await store.removeBy('code', { client: 'c' })).toBe(0)
    })

    it('makes room for a new record, unused, with none of what the old one had', async () => {
      const { store, clock } = await opened()
      await store.create(
        'code',
        'k',
        make({ by: 1 }, { expiresAt: clock.now() + 10, indexes: { client: 'c' } }),
      )
      await store.consume('code', 'k')
      clock.advance(10)
      expect(await store.create('code', 'k', make({ by: 2 }))).toBe(true)
      expect(await store.find('code', 'k')).toEqual({
        key: 'k',
        value: { by: 2 },
        version: 1,
        expiresAt: undefined,
        usedAt: undefined,
      })
      expect(await store.listBy('code', 'client', 'c')).toEqual([])
    })

    it('purges what has expired, bounded, and nothing else', async () => {
      const { store, clock } = await opened()
      const expiresAt = clock.now() + 10
      for (let n = 0; n < 5; n += 1) await store.create('code', `dead-${n}`, make({}, { expiresAt }))
      await store.create('code', 'later', make({}, { expiresAt: expiresAt + 1 }))
      await store.create('code', 'kept', make())
      await store.append('topic', {}, { expiresAt })
      await store.append('topic', {})
      clock.advance(10)
      const purged = [await store.purge(3), await store.purge(3), await store.purge(3), await store.purge(3)]
      expect(purged).toEqual([3, 3, 0, 0])
      expect(keysOf(await store.list('code'))).toEqual(['kept', 'later'])
    })
  })

  describe(`${subject.name}: consume`, () => {
    it('C6.1.6 is first for exactly one of 16 in parallel; all find the record', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make({ a: 1 }))
      const taken = await Promise.all(Array.from({ length: PARALLEL }, () => store.consume('code', 'k')))
      expect(taken.filter((each) => each?.first)).toHaveLength(1)
      expect(taken.map((each) => valueOf(each?.entry))).toEqual(Array(PARALLEL).fill({ a: 1 }))
    })

    it('tells a replay when the record was first used', async () => {
      const { store, clock } = await opened()
      await store.create('code', 'k', make())
      const usedAt = clock.now()
      expect((await store.consume('code', 'k'))?.entry.usedAt).toBe(usedAt)
      clock.advance(7)
      expect(await store.consume('code', 'k')).toMatchObject({ first: false, entry: { usedAt, version: 1 } })
      expect((await store.find('code', 'k'))?.usedAt).toBe(usedAt)
    })

    it('of what is not there answers undefined', async () => {
      const { store } = await opened()
      expect(await store.consume('code', 'k')).toBeUndefined()
    })
  })

  describe(`${subject.name}: redeem`, () => {
    const family = (key: string, more: Partial<NewRecord> = {}): NewRecord => ({
      kind: 'family',
      key,
      value: { of: key },
      ...more,
    })

    it('C6.1.6 is first for exactly one of 16 in parallel, whose records alone are created', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make({ a: 1 }))
      const taken = await Promise.all(
        Array.from({ length: PARALLEL }, (_, n) =>
          store.redeem('code', 'k', { value: { by: n } }, [family(`f-${n}`), family(`g-${n}`)]),
        ),
      )
      const winner = taken.findIndex((each) => each?.first)
      expect(taken.filter((each) => each?.first)).toHaveLength(1)
      expect(taken.map((each) => valueOf(each?.entry))).toEqual(Array(PARALLEL).fill({ by: winner }))
      expect(keysOf(await store.list('family'))).toEqual([`f-${winner}`, `g-${winner}`])
    })

    it('gives the record its last value, a new version and, if wanted, another expiry', async () => {
      const { store, clock } = await opened()
      const now = clock.now()
      await store.create('code', 'k', make({ a: 1 }, { expiresAt: now + 10, indexes: { client: 'c' } }))
      expect(await store.redeem('code', 'k', { value: { a: 2 }, expiresAt: now + 50 }, [])).toEqual({
        first: true,
        entry: { key: 'k', value: { a: 2 }, version: 2, expiresAt: now + 50, usedAt: now },
      })
      clock.advance(20)
      expect(await store.redeem('code', 'k', { value: { a: 3 } }, [family('late')])).toMatchObject({
        first: false,
        entry: { value: { a: 2 }, version: 2, usedAt: now },
      })
      expect(keysOf(await store.listBy('code', 'client', 'c'))).toEqual(['k'])
      expect(await store.list('family')).toEqual([])
    })

    it('creates records with their indexes and expiry, and leaves one that exists as it is', async () => {
      const { store, clock } = await opened()
      const expiresAt = clock.now() + 10
      await store.create('code', 'k', make())
      await store.create('family', 'there', make({ old: true }))
      await store.redeem('code', 'k', { value: {} }, [
        family('there'),
        family('new', { expiresAt, indexes: { family: 'new', client: 'c' } }),
      ])
      expect(valueOf(await store.find('family', 'there'))).toEqual({ old: true })
      expect(await store.listBy('family', 'client', 'c')).toMatchObject([
        { key: 'new', expiresAt, version: 1 },
      ])
    })

    it('creates nothing for a record that is used, has expired or is not there', async () => {
      const { store, clock } = await opened()
      await store.create('code', 'used', make())
      await store.consume('code', 'used')
      await store.create('code', 'dead', make({}, { expiresAt: clock.now() + 1 }))
      clock.advance(1)
      expect(await store.redeem('code', 'used', { value: {} }, [family('1')])).toMatchObject({ first: false })
      expect(await store.redeem('code', 'dead', { value: {} }, [family('2')])).toBeUndefined()
      expect(await store.redeem('code', 'gone', { value: {} }, [family('3')])).toBeUndefined()
      expect(await store.list('family')).toEqual([])
    })
  })

  describe(`${subject.name}: replace`, () => {
    it('changes the value only if the version is still the one that was read', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make({ n: 0 }))
      expect(await store.replace('code', 'k', 1, { n: 1 })).toBe(true)
      expect(await store.replace('code', 'k', 1, { n: 2 })).toBe(false)
      expect(await store.find('code', 'k')).toMatchObject({ value: { n: 1 }, version: 2 })
    })

    it('succeeds for exactly one of 16 in parallel', async () => {
      const { store } = await opened()
      await store.create('code', 'k', make())
      const done = await Promise.all(
        Array.from({ length: PARALLEL }, (_, n) => store.replace('code', 'k', 1, { n })),
      )
      expect(done.filter(Boolean)).toHaveLength(1)
      expect(valueOf(await store.find('code', 'k'))).toEqual({ n: done.indexOf(true) })
    })

    it('keeps use, indexes and expiry, unless given another expiry', async () => {
      const { store, clock } = await opened()
      const expiresAt = clock.now() + 10
      await store.create('code', 'k', make({}, { expiresAt, indexes: { family: 'f' } }))
      await store.consume('code', 'k')
      await store.replace('code', 'k', 1, { n: 1 })
      expect(await store.listBy('code', 'family', 'f')).toMatchObject([{ expiresAt, usedAt: clock.now() }])
      await store.replace('code', 'k', 2, { n: 2 }, expiresAt + 10)
      clock.advance(10)
      expect(await store.find('code', 'k')).toMatchObject({ value: { n: 2 }, expiresAt: expiresAt + 10 })
    })

    it('creates nothing', async () => {
      const { store } = await opened()
      expect(await store.replace('code', 'k', 1, {})).toBe(false)
      expect(await store.find('code', 'k')).toBeUndefined()
    })
  })

  describe(`${subject.name}: indexes`, () => {
    const filled = async (): Promise<Store> => {
      const { store } = await opened()
      await store.create(
        'code',
        'a',
        make({}, { indexes: { family: 'f', client: 'c', subject: 's', business: 'b' } }),
      )
      await store.create('code', 'b', make({}, { indexes: { family: 'f', client: 'd' } }))
      await store.create('token', 'a', make({}, { indexes: { family: 'f' } }))
      await store.create('token', 'z', make())
      return store
    }

    it('list the records of one kind by each index', async () => {
      const store = await filled()
      expect(keysOf(await store.list('code'))).toEqual(['a', 'b'])
      expect(keysOf(await store.listBy('code', 'family', 'f'))).toEqual(['a', 'b'])
      expect(keysOf(await store.listBy('code', 'client', 'd'))).toEqual(['b'])
      expect(keysOf(await store.listBy('code', 'subject', 's'))).toEqual(['a'])
      expect(keysOf(await store.listBy('code', 'business', 'b'))).toEqual(['a'])
      expect(keysOf(await store.listBy('code', 'subject', 'c'))).toEqual([])
    })

    it('list the records of one kind in pages, each once, the empty key too', async () => {
      const { store } = await opened()
      const keys = HOSTILE.map(([, key]) => key)
      for (const key of keys) await store.create('code', key, make({ key }))
      await store.create('token', 'other', make())
      const listed: Entry[] = []
      for (;;) {
        const page = await store.list('code', { after: listed.at(-1)?.key, limit: 4 })
        listed.push(...page)
        expect(page.length).toBeLessThanOrEqual(4)
        if (page.length < 4) break
      }
      expect(keysOf(listed)).toEqual([...keys].sort())
    })

    it('list the records whose keys begin with a prefix, in the order of keys, in pages', async () => {
      const { store } = await opened()
      const end = '\u{10ffff}'
      const keys = ['a', 'ab', 'abc', 'ab\ue000', 'ab🗝️', `ab${end}`, `ab${end}z`, 'ac', 'aB', 'b', '%', '%_']
      for (const key of keys) await store.create('code', key, make())
      await store.create('token', 'abz', make())
      const listed = async (prefix: string, after?: string, limit = 100): Promise<string[]> =>
        (await store.list('code', { prefix, after, limit })).map(({ key }) => key)
      expect(await listed('ab')).toEqual(['ab', 'abc', 'ab\ue000', 'ab🗝️', `ab${end}`, `ab${end}z`])
      expect(await listed('ab', 'ab', 2)).toEqual(['abc', 'ab\ue000'])
      expect(await listed('ab', 'a')).toHaveLength(6)
      expect(await listed('ab', 'ab\ue000')).toEqual(['ab🗝️', `ab${end}`, `ab${end}z`])
      expect(await listed('ab', 'ac')).toEqual([])
      expect(await listed(`ab${end}`)).toEqual([`ab${end}`, `ab${end}z`])
      expect(await listed('%')).toEqual(['%', '%_'])
      expect(await listed('x')).toEqual([])
      expect(await listed('')).toEqual([...keys].sort(byKey))
    })

    it('list by a prefix that needs escapes, and by none of half a character', async () => {
      const { store } = await opened()
      const keys = ['"', '"a', '\\', '\\u0000', '\0', '\0\0', '\ud83d', '\ud83d\ud83d', '🗝']
      for (const key of keys) await store.create('code', key, make())
      const listed = async (prefix: string): Promise<string[]> =>
        (await store.list('code', { prefix, after: undefined, limit: 100 })).map(({ key }) => key)
      for (const [prefix, count] of [
        ['"', 2],
        ['\\', 2],
        ['\0', 2],
        ['\ud83d', 2],
        ['🗝', 1],
      ] as const)
        expect(await listed(prefix), JSON.stringify(prefix)).toHaveLength(count)
      expect(await listed('')).toEqual([...keys].sort(byKey))
    })

    it('remove the records of one kind that have all of some index values, and count them', async () => {
      const store = await filled()
      const [one, none] = [{ family: 'f' }, { family: 'f', client: 'x' }]
      expect([await store.countBy('token', one), await store.removeBy('token', one)]).toEqual([1, 1])
      expect([await store.countBy('code', none), await store.removeBy('code', none)]).toEqual([0, 0])
      expect([await store.countBy('code', one), await store.countBy('code', {})]).toEqual([2, 2])
      const all = { family: 'f', client: 'c', subject: 's', business: 'b' }
      expect([await store.countBy('code', all), await store.removeBy('code', all)]).toEqual([1, 1])
      expect(keysOf(await store.list('code'))).toEqual(['b'])
      expect(keysOf(await store.list('token'))).toEqual(['z'])
    })

    it('list the records that have all of some index values, in pages, in the order of keys', async () => {
      const { store, clock } = await opened()
      const expiresAt = clock.now() + 10
      for (const key of ['e', 'b', 'a', 'd', 'c'])
        await store.create(
          'code',
          key,
          make({}, { indexes: { client: 'c', subject: key < 'd' ? 's' : 't' } }),
        )
      await store.create('code', 'over', make({}, { expiresAt, indexes: { client: 'c', subject: 's' } }))
      await store.create('code', 'bb', make({}, { indexes: { client: 'x', subject: 's' } }))
      await store.create('token', 'bc', make({}, { indexes: { client: 'c', subject: 's' } }))
      clock.advance(10)
      const paged = async (where: IndexValues, after?: string, limit = 100): Promise<string[]> =>
        (await store.pageBy('code', where, { after, limit })).map(({ key }) => key)
      expect(await paged({ client: 'c' })).toEqual(['a', 'b', 'c', 'd', 'e'])
      expect(await paged({ client: 'c' }, 'a', 3)).toEqual(['b', 'c', 'd'])
      expect(await paged({ client: 'c', subject: 's' }, 'a')).toEqual(['b', 'c'])
      expect(await paged({}, 'b', 2)).toEqual(['bb', 'c'])
      expect(await paged({ business: 'b' })).toEqual([])
    })

    it('tell when one of the records with some index values was used last', async () => {
      const { store, clock } = await opened()
      for (const key of ['a', 'b', 'c'])
        await store.create('token', key, make({}, { indexes: { family: 'f' } }))
      expect(await store.lastUseBy('token', { family: 'f' })).toBeUndefined()
      clock.advance(5)
      await store.consume('token', 'b')
      clock.advance(5)
      await store.consume('token', 'a')
      expect(await store.lastUseBy('token', { family: 'f' })).toBe(clock.now())
      expect(await store.lastUseBy('token', { family: 'g' })).toBeUndefined()
      expect(await store.lastUseBy('code', { family: 'f' })).toBeUndefined()
    })

    it('with none, remove every record of the kind, however many', async () => {
      const { store } = await opened()
      for (let n = 0; n < 603; n += 9)
        await Promise.all(Array.from({ length: 9 }, (_, k) => store.create('code', `k${n + k}`, make())))
      await store.create('token', 'z', make())
      expect([await store.countBy('code', {}), await store.removeBy('code', {})]).toEqual([603, 603])
      expect([await store.countBy('code', {}), await store.countBy('token', {})]).toEqual([0, 1])
    })

    it('remove what has expired too, and do not count it: the clock may be set back', async () => {
      const { store, clock } = await opened()
      await store.create('code', 'k', make({}, { expiresAt: clock.now() + 10, indexes: { client: 'c' } }))
      clock.step(10)
      expect(await store.removeBy('code', { client: 'c' })).toBe(0)
      clock.step(-10)
      expect(await store.find('code', 'k')).toBeUndefined()
    })
  })

  describe(`${subject.name}: change feed`, () => {
    it('tells what was appended after a place, in order', async () => {
      const { store } = await opened()
      const places = [
        await store.append('a', { n: 1 }),
        await store.append('b', { n: 2 }),
        await store.append('a', {}),
      ]
      const sequences = places.map(({ sequence }) => sequence)
      expect(sequences).toEqual([...sequences].sort((a, b) => a - b))
      expect(new Set(sequences).size).toBe(3)
      expect((await allChanges(store)).map(({ sequence, topic }) => [sequence, topic])).toEqual([
        [sequences[0], 'a'],
        [sequences[1], 'b'],
        [sequences[2], 'a'],
      ])
      expect(await allChanges(store, places[0])).toHaveLength(2)
      expect(await store.changes(places[2], 10)).toMatchObject({
        changes: [],
        last: places[2],
        restarted: false,
        more: false,
      })
      expect((await allChanges(store, places[0]))[0]).toEqual({
        ...places[1],
        topic: 'b',
        value: { n: 2 },
        expiresAt: undefined,
        remaining: undefined,
      })
    })

    it('is read in pages, each change once', async () => {
      const { store } = await opened()
      const places = []
      for (let n = 0; n < 5; n += 1) places.push(await store.append('a', { n }))
      const first = await store.changes(undefined, 2)
      expect(first).toMatchObject({ changes: [{ value: { n: 0 } }, { value: { n: 1 } }], more: true })
      expect(first.last).toEqual(places[1])
      const second = await store.changes(first.last, 3)
      expect(second).toMatchObject({ last: places[4], more: false, restarted: false })
      expect(second.changes.map(({ value }) => value['n'])).toEqual([2, 3, 4])
    })

    it('of nothing has no place to go on from', async () => {
      const { store } = await opened()
      expect(await store.changes(undefined, 10)).toMatchObject({ changes: [], more: false, restarted: false })
      const place = await store.append('a', {})
      expect((await store.changes(undefined, 10)).last).toEqual(place)
    })

    it('loses and repeats nothing where many append and read at once', async () => {
      const { store } = await opened()
      const seen: number[] = []
      let at: FeedPlace | undefined
      let writing = true
      const read = async (): Promise<void> => {
        for (let last = false; !last;) {
          last = !writing
          const page = await store.changes(at, 7)
          at = page.last
          seen.push(...page.changes.map(({ value }) => Number(value['n'])))
          last &&= !page.more
        }
      }
      const reading = read()
      const appended = Array.from({ length: 60 }, (_, n) => store.append('a', { n }))
      const sequences = (await Promise.all(appended)).map(({ sequence }) => sequence)
      writing = false
      await reading
      expect(new Set(sequences).size).toBe(60)
      expect(seen.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 60 }, (_, n) => n))
    })

    it('leaves out what has expired, and never gives a sequence twice', async () => {
      const { store, clock } = await opened()
      const first = await store.append('a', {}, { expiresAt: clock.now() + 10 })
      clock.advance(9)
      expect(await allChanges(store)).toHaveLength(1)
      clock.advance(1)
      expect(await allChanges(store)).toEqual([])
      await store.purge(10)
      expect((await store.append('a', {})).sequence).toBeGreaterThan(first.sequence)
    })

    it('T3.12 numbers a change above what its caller has seen, and the later ones above that', async () => {
      const { store, clock } = await opened()
      const above = clock.now() + 90_000_000
      const { sequence } = await store.append('a', {}, { above })
      expect(sequence).toBe(above + 1)
      expect((await store.append('a', {})).sequence).toBe(sequence + 1)
      expect((await store.append('a', {}, { above: 1 })).sequence).toBe(sequence + 2)
    })

    it('numbers changes above the wall clock, and on from there when it is set back', async () => {
      const { store, clock } = await opened()
      const { sequence: first } = await store.append('a', {})
      expect(first).toBe(clock.now())
      clock.step(-90_000_000)
      const later = [await store.append('a', {}), await store.append('a', {})]
      expect(later.map(({ sequence }) => sequence)).toEqual([first + 1, first + 2])
    })

    it('T3.12 keeps a change until the service has run for as long as it was to live, whatever the wall clock says', async () => {
      const { store, clock } = await opened()
      await store.append('a', {}, { expiresAt: clock.now() + 100 })
      const { sequence } = await store.append('a', {})
      clock.step(90_000_000)
      expect(await store.purge(10)).toBe(0)
      clock.advance(60)
      expect(await allChanges(store)).toMatchObject([{ remaining: 40 }, { sequence }])
      clock.step(-90_000_000)
      clock.advance(39)
      expect(await allChanges(store)).toHaveLength(2)
      clock.advance(1)
      expect(await allChanges(store)).toMatchObject([{ sequence }])
      expect(await store.purge(10)).toBe(1)
    })
  })

  if (!subject.durable) return

  describe(`${subject.name}: reopened`, () => {
    it('finds everything that was answered', async () => {
      const place = await subject.place()
      const clock = movableClock()
      const before = await place.open(clock)
      await before.create(
        'code',
        'k',
        make({ a: 1 }, { expiresAt: clock.now() + 10, indexes: { client: 'c' } }),
      )
      await before.consume('code', 'k')
      await before.replace('code', 'k', 1, { a: 2 })
      const appended = await before.append('topic', { a: 1 })
      await before.close()
      const after = await place.open(clock)
      onTestFinished(() => after.close())
      expect(await after.consume('code', 'k')).toMatchObject({
        first: false,
        entry: { value: { a: 2 }, version: 2 },
      })
      expect(keysOf(await after.listBy('code', 'client', 'c'))).toEqual(['k'])
      expect(await allChanges(after)).toMatchObject([{ ...appended, value: { a: 1 } }])
    })

    it('T3.12 goes on counting how long the service has run, from the last purge on', async () => {
      const place = await subject.place()
      const clock = movableClock()
      const before = await place.open(clock)
      await before.append('a', {}, { expiresAt: clock.now() + 100 })
      clock.advance(30)
      await before.purge(10)
      await before.close()
      clock.step(90_000_000)
      const after = await place.open(clock)
      onTestFinished(() => after.close())
      expect(await allChanges(after)).toMatchObject([{ remaining: 70 }])
      expect(await after.purge(10)).toBe(0)
      clock.advance(70)
      expect(await allChanges(after)).toEqual([])
    })

    it('is one store for all who have it open', async () => {
      const place = await subject.place()
      const clock = movableClock()
      const stores = await Promise.all([place.open(clock), place.open(clock), place.open(clock)])
      onTestFinished(async () => {
        await Promise.all(stores.map((store) => store.close()))
      })
      await stores[0].create('code', 'k', make())
      const taken = await Promise.all(
        Array.from({ length: PARALLEL }, (_, n) => stores[n % 3]!.consume('code', 'k')),
      )
      expect(taken.filter((each) => each?.first)).toHaveLength(1)
    })
  })
}
