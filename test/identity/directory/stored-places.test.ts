import { MessageChannel } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type BusinessValues, NO_VALUES } from '../../../src/base/contracts/people/places.ts'
import type { Store } from '../../../src/base/contracts/records/store.ts'
import { BUSINESS, FUND, fundKey } from '../../../src/identity/directory/records/schema.ts'
import { LayeredPlaces, OpenedFunds } from '../../../src/identity/directory/records/places.ts'
import { announceChange } from '../../../src/identity/directory/records/stored-directory.ts'
import { StoredPlaces } from '../../../src/identity/directory/records/stored-places.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { budget, withStoreBudget } from '../../../src/base/kernel/store-budget.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { makeDirectory } from '../../support/directory.ts'
import { eventually } from '../../support/eventually.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { code } from '../../support/scope.ts'

const MINUTE = 60_000

/** A store that counts what is read, and can be cut off. */
async function opened() {
  const clock = movableClock()
  const kept = new MemoryStore(clock)
  const reads: string[] = []
  /** Of those reads. */
  const budgets: unknown[] = []
  const state = { isGone: false }
  /** Looks that wait until they are let go. */
  const held: (() => void)[] = []
  const hold = { on: false }
  const store: Pick<Store, 'find' | 'create' | 'list'> = {
    create: (...given) => kept.create(...given),
    list: async (...given) => {
      const found = await kept.list(...given)
      if (hold.on) await new Promise<void>((resolve) => held.push(resolve))
      if (state.isGone) throw new Fault('identity_unavailable')
      return found
    },
    find: async (kind, key) => {
      reads.push(key)
      budgets.push(budget())
      const found = await kept.find(kind, key)
      if (hold.on) await new Promise<void>((resolve) => held.push(resolve))
      if (state.isGone) throw new Fault('identity_unavailable')
      return found
    },
  }
  const feed = await ChangeFeed.open({
    store: kept,
    clock,
    recorder: keepNotes(),
    after: manualAfter().after,
  })
  onTestFinished(() => feed.stop())
  const places = new StoredPlaces({ store, feed, clock })
  const write = async (kind: string, key: string, record: object): Promise<void> => {
    const before = await kept.find(kind, key)
    if (before === undefined) await kept.create(kind, key, { value: { record } })
    else await kept.replace(kind, key, before.version, { record })
    await announceChange({ feed, clock }, { [kind === BUSINESS ? 'business' : 'fund']: key })
  }
  const business = (key: string, more: object = {}) =>
    write(BUSINESS, key, { code: key, name: `The ${key}`, ...more })
  const fund = (owner: string, key: string, more: object = {}) =>
    write(FUND, fundKey(owner, key), { business: owner, code: key, ...more })
  return { clock, kept, feed, places, reads, budgets, state, hold, held, business, fund }
}

describe('C4.8 places of the store', () => {
  it('T5.5 are known by an answer that came in time, also if its own process was held up meanwhile', async () => {
    const { places, business, hold, held } = await opened()
    await business('INITECH')
    hold.on = true
    const looked = places.look('INITECH')
    // Timers come next, and what has arrived after them.
    await new Promise((resolve) => setImmediate(resolve))
    // Its answer arrives as one of another thread does, while this process is busy for longer than a call waits.
    const { port1, port2 } = new MessageChannel()
    port2.once('message', () => {
      held[0]!()
      port2.close()
    })
    port1.postMessage('the answer')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
    expect(await looked).toBe(true)
  })

  it('T5.5 are read in a time of their own: a request with little time fails no other', async () => {
    const { places, business, hold, held, budgets } = await opened()
    await business('INITECH')
    hold.on = true
    const short = withStoreBudget(() => places.look('INITECH'), 20)
    const other = places.look('INITECH')
    await expect(short).rejects.toMatchObject({ code: 'identity_unavailable' })
    for (const release of held) release()
    expect(await other).toBe(true)
    expect(budgets).toEqual([undefined])
  })

  it('are not known until they are looked for, and then answered at once', async () => {
    const { places, reads, business, fund } = await opened()
    await business('INITECH')
    await fund('INITECH', 'LEGACY')
    expect([places.exists('INITECH'), places.exists('INITECH', 'LEGACY')]).toEqual([undefined, undefined])
    expect(await places.look('INITECH', 'LEGACY')).toBe(true)
    expect([places.exists('INITECH'), places.exists('INITECH', 'LEGACY')]).toEqual([true, true])
    expect(reads).toEqual(['INITECH', 'INITECH/LEGACY'])
    expect(await places.look('INITECH', 'LEGACY')).toBe(true)
    expect(reads).toHaveLength(2)
  })

  it('that do not exist are remembered too: guesses cost one look each', async () => {
    const { places, reads, business } = await opened()
    await business('INITECH')
    expect(await places.look('INITECH', 'NONE')).toBe(false)
    expect(await places.look('NOBODY')).toBe(false)
    expect([places.exists('INITECH', 'NONE'), places.exists('NOBODY', 'X')]).toEqual([false, false])
    expect(reads).toEqual(['INITECH', 'INITECH/NONE', 'NOBODY'])
  })

  it('have any fund if their record says so, and none that is disabled', async () => {
    const { places, reads, business, fund } = await opened()
    await business('OPEN', { funds: 'any' })
    await business('INITECH')
    await fund('INITECH', 'OFF', { disabled: true })
    await business('CLOSED', { disabled: true })
    expect(await places.look('OPEN', 'WHATEVER')).toBe(true)
    expect(reads).toEqual(['OPEN'])
    expect(await places.look('INITECH', 'OFF')).toBe(false)
    expect([await places.look('CLOSED'), places.exists('CLOSED', 'X')]).toEqual([false, false])
    expect([...(await places.findBusinesses(['OPEN', 'CLOSED', 'NONE'])).keys()]).toEqual(['OPEN'])
  })

  it('are read anew once a change is announced', async () => {
    const { places, business, fund, kept, feed, clock } = await opened()
    await business('INITECH')
    expect(await places.look('INITECH', 'NEW')).toBe(false)
    await fund('INITECH', 'NEW')
    expect(places.exists('INITECH', 'NEW')).toBeUndefined()
    expect(await places.look('INITECH', 'NEW')).toBe(true)
    await business('INITECH', { disabled: true })
    expect(await places.look('INITECH', 'NEW')).toBe(false)
    await business('INITECH')
    await kept.remove(FUND, 'INITECH/NEW')
    await announceChange({ feed, clock }, { business: 'INITECH' })
    expect(await places.look('INITECH', 'NEW')).toBe(false)
  })

  it('read while their change is announced are not remembered', async () => {
    const { places, hold, held, business } = await opened()
    await business('INITECH')
    hold.on = true
    const looked = places.look('INITECH')
    await eventually(() => expect(held).toHaveLength(1))
    await business('INITECH', { disabled: true })
    hold.on = false
    held.shift()?.()
    await looked
    expect(places.exists('INITECH')).toBeUndefined()
    expect(await places.look('INITECH')).toBe(false)
  })

  it('are read once for many who ask at the same time', async () => {
    const { places, reads, business, fund } = await opened()
    await business('INITECH')
    await fund('INITECH', 'LEGACY')
    const looks = Array.from({ length: 200 }, () => places.look('INITECH', 'LEGACY'))
    expect(new Set(await Promise.all(looks))).toEqual(new Set([true]))
    expect(reads).toEqual(['INITECH', 'INITECH/LEGACY'])
  })

  it('go on for fifteen minutes while the store cannot be reached, and are unknown then', async () => {
    const { places, clock, state, reads, business, fund } = await opened()
    await business('INITECH')
    await fund('INITECH', 'LEGACY')
    await places.look('INITECH', 'LEGACY')
    state.isGone = true
    clock.advance(14 * MINUTE)
    expect([places.exists('INITECH', 'LEGACY'), await places.look('INITECH', 'LEGACY')]).toEqual([true, true])
    expect([...(await places.findBusinesses(['INITECH'])).keys()]).toEqual(['INITECH'])
    expect(reads.length).toBeGreaterThan(2)
    await expect(places.look('GLOBEX')).rejects.toMatchObject({ code: 'identity_unavailable' })
    clock.advance(2 * MINUTE)
    expect(places.exists('INITECH')).toBeUndefined()
    await expect(places.look('INITECH')).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('are read again beside the calls that go on, once they are half a minute old', async () => {
    const { places, clock, kept, reads, business } = await opened()
    await business('INITECH')
    await places.look('INITECH')
    await kept.remove(BUSINESS, 'INITECH')
    clock.advance(31_000)
    expect([places.exists('INITECH'), places.exists('INITECH')]).toEqual([true, true])
    await eventually(() => expect(places.exists('INITECH')).toBe(false))
    expect(reads).toEqual(['INITECH', 'INITECH'])
  })

  it('are read a bounded number at once: the store has others to serve', async () => {
    const { places, hold, held } = await opened()
    hold.on = true
    const looks = Array.from({ length: 500 }, (_, number) => places.look(`B${number}`))
    await expect(places.look('ONE-MORE')).rejects.toMatchObject({ code: 'identity_unavailable' })
    await eventually(() => expect(held).toHaveLength(500))
    hold.on = false
    for (const letGo of held) letGo()
    expect(new Set(await Promise.all(looks))).toEqual(new Set([false]))
    expect(await places.look('ONE-MORE')).toBe(false)
  })

  it('C14.1 are looked at for an explanation, and nothing is remembered', async () => {
    const { places, business, fund } = await opened()
    await business('INITECH')
    await fund('INITECH', 'LEGACY')
    const preview = places.preview()
    expect(await preview.look('INITECH', 'LEGACY')).toBe(true)
    expect([preview.exists('INITECH', 'LEGACY'), places.exists('INITECH', 'LEGACY')]).toEqual([
      true,
      undefined,
    ])
  })

  it('forget all when a change is announced that this version does not know', async () => {
    const { places, business, feed, clock } = await opened()
    await business('INITECH')
    await places.look('INITECH')
    await announceChange({ feed, clock }, { client: 'tally' })
    expect(places.exists('INITECH')).toBe(true)
    await announceChange({ feed, clock }, { portfolio: 'INITECH' })
    expect(places.exists('INITECH')).toBeUndefined()
  })
})

describe('C8.7 values of a business of the store', () => {
  const texts = async (values: Promise<BusinessValues>) => ({ ...(await values).texts })

  it('are remembered with it, read once, and read again when it was announced', async () => {
    const { places, reads, business } = await opened()
    await business('ACME', { values: { db: 'one' } })
    expect(places.valuesOf('ACME')).toBeUndefined()
    expect(await texts(places.lookForValues('ACME'))).toEqual({ db: 'one' })
    expect(places.valuesOf('ACME')?.texts['db']).toBe('one')
    expect(reads).toEqual(['ACME'])
    await business('ACME', { values: { db: 'two' } })
    expect(places.valuesOf('ACME')).toBeUndefined()
    expect(await texts(places.lookForValues('ACME'))).toEqual({ db: 'two' })
  })

  it('are none of one that is disabled or does not exist', async () => {
    const { places, business } = await opened()
    await business('CLOSED', { disabled: true, values: { db: 'one' } })
    for (const code of ['CLOSED', 'NONE']) {
      expect(await texts(places.lookForValues(code))).toEqual({})
      expect(places.valuesOf(code)).toBe(NO_VALUES)
    }
  })

  it('stay known where the store is shared and gone, for as long as the places do', async () => {
    const { places, state, business, clock } = await opened()
    await business('ACME', { values: { db: 'one' } })
    await places.readAll()
    state.isGone = true
    clock.advance(60 * MINUTE)
    expect(places.valuesOf('ACME')?.texts['db']).toBe('one')
    expect(await texts(places.preview().lookForValues('ACME'))).toEqual({ db: 'one' })
    await business('NEW', { values: { db: 'one' } })
    await expect(places.preview().lookForValues('NEW')).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
  })

  it('that are sealed and cannot be opened are read again by each call', async () => {
    const { places, reads, business } = await opened()
    const sealed = { seal: 'gone', nonce: 'n', text: 't' }
    await business('ACME', { values: { db: 'one', key: { sealed } } })
    for (let count = 1; count <= 2; count++) {
      const values = await places.lookForValues('ACME')
      expect([{ ...values.texts }, [...values.secrets], places.valuesOf('ACME')]).toEqual([
        ...[{ db: 'one' }, ['key'], undefined],
      ])
      expect(reads).toHaveLength(count)
    }
  })

  it('of a configured business hide those of the store', async () => {
    const { places, business } = await opened()
    await business('ACME', { values: { db: 'stored' } })
    await business('INITECH', { values: { db: 'stored' } })
    const layered = new LayeredPlaces((await makeDirectory()).places, places)
    expect(layered.valuesOf('ACME')).toBe(NO_VALUES)
    expect(layered.valuesOf('INITECH')).toBeUndefined()
    expect(await texts(layered.lookForValues('INITECH'))).toEqual({ db: 'stored' })
  })
})

describe('C4.8 places of both layers', () => {
  it('are those of the configuration where both have a business of one name', async () => {
    const { places, reads, business, fund } = await opened()
    await business('ACME')
    await fund('ACME', 'HIDDEN')
    await business('INITECH')
    const configured = (await makeDirectory()).places
    const layered = new LayeredPlaces(configured, places)
    expect([layered.exists('ACME', 'SUPER1'), layered.exists('ACME', 'HIDDEN')]).toEqual([true, false])
    expect(await layered.look('ACME', 'HIDDEN')).toBe(false)
    expect(reads).toEqual([])
    const found = await layered.findBusinesses(['INITECH', 'ACME', 'NONE', 'ACME'])
    expect([...found.values()].map(({ name }) => name)).toEqual(['Acme Advisory', 'The INITECH'])
    expect(reads).toEqual(['INITECH', 'NONE'])
  })
})

describe('C10 funds that backends create', () => {
  it('are kept in the store where the business is, and known everywhere', async () => {
    const { places, kept, business } = await opened()
    await business('INITECH')
    await business('OPEN', { funds: 'any' })
    const configured = (await makeDirectory()).places
    const funds = new OpenedFunds(places)
    await funds.addFund('ACME', code('EARLY'))
    funds.attach(configured)
    expect(configured.exists('ACME', 'EARLY')).toBe(true)
    expect(await places.look('INITECH', 'NEW')).toBe(false)
    await funds.addFund('INITECH', code('NEW'))
    await funds.addFund('INITECH', code('NEW'))
    await funds.addFund('OPEN', code('NEW'))
    await funds.addFund('NOBODY', code('NEW'))
    expect((await kept.list(FUND)).map(({ key }) => key)).toEqual(['INITECH/NEW'])
    expect(await places.look('INITECH', 'NEW')).toBe(true)
  })

  it('are not given again by a reload once an operator has removed them', async () => {
    const { places, kept, business } = await opened()
    await business('INITECH')
    const funds = new OpenedFunds(places)
    funds.attach((await makeDirectory()).places)
    await funds.addFund('INITECH', code('NEW'))
    await kept.remove(FUND, 'INITECH/NEW')
    funds.attach((await makeDirectory()).places)
    expect(await kept.list(FUND)).toEqual([])
  })

  it('fail with the store', async () => {
    const { places, state } = await opened()
    state.isGone = true
    await expect(places.addFund('INITECH', code('NEW'))).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
  })
})

describe('C11.7.2 all places of a store that several nodes share', () => {
  it('are known before anybody names them, and stay known without the store', async () => {
    const { clock, places, reads, state, business, fund } = await opened()
    await business('ACME')
    await fund('ACME', 'SUPER1')
    await business('OPEN', { funds: 'any' })
    await business('CLOSED', { disabled: true })
    await places.readAll()
    state.isGone = true
    clock.advance(60 * MINUTE)
    expect(['ACME', 'OPEN', 'CLOSED', 'NONE'].map((code) => places.exists(code))).toEqual([
      ...[true, true, false, false],
    ])
    expect(['SUPER1', 'NONE'].map((code) => places.exists('ACME', code))).toEqual([true, false])
    expect(places.exists('OPEN', 'ANY')).toBe(true)
    expect(await places.look('ACME', 'SUPER1')).toBe(true)
    expect(reads).toEqual([])
  })

  it('are read again, one by one, when a change of them was announced', async () => {
    const { places, reads, business, fund } = await opened()
    await business('ACME')
    await fund('ACME', 'SUPER1')
    await places.readAll()
    await business('NEW')
    await fund('ACME', 'SUPER2')
    await fund('ACME', 'SUPER1', { disabled: true })
    expect([places.exists('NEW'), places.exists('ACME', 'SUPER2'), places.exists('ACME', 'SUPER1')]).toEqual([
      ...[undefined, undefined, undefined],
    ])
    expect(await places.look('NEW')).toBe(true)
    expect(await places.look('ACME', 'SUPER2')).toBe(true)
    expect(await places.look('ACME', 'SUPER1')).toBe(false)
    const count = reads.length
    expect([places.exists('NEW'), places.exists('ACME', 'SUPER2'), places.exists('ACME', 'SUPER1')]).toEqual([
      ...[true, true, false],
    ])
    expect(reads).toHaveLength(count)
    await business('ACME', { disabled: true })
    expect(await places.look('ACME')).toBe(false)
  })

  it('that change while they are read are not taken from what was read before', async () => {
    const { places, hold, held, business } = await opened()
    await business('ACME')
    hold.on = true
    const reading = places.readAll()
    await new Promise((resolve) => setImmediate(resolve))
    await business('ACME', { disabled: true })
    hold.on = false
    for (const go of held) go()
    await reading
    expect(places.exists('ACME')).toBeUndefined()
    expect(await places.look('ACME')).toBe(false)
  })

  it('are read when they are named, if they could not be read before', async () => {
    const { places, state, business } = await opened()
    await business('ACME')
    state.isGone = true
    await places.readAll()
    state.isGone = false
    expect(places.exists('ACME')).toBeUndefined()
    expect(await places.look('ACME')).toBe(true)
  })

  it('that nobody knows make a call wait for 300 ms at most', async () => {
    const { places, hold } = await opened()
    hold.on = true
    await expect(places.look('ACME')).rejects.toMatchObject({ code: 'identity_unavailable' })
  })
})
