/** The values of a person in the trails of all nodes that share a store (C12.2.3, C11.5.8). */
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Operator,
  plainFacts,
  recordGiving,
} from '../../../src/base/contracts/records/audited-change.ts'
import type {
  ErasedEverywhere,
  Redacted,
  RecordedErasure,
} from '../../../src/base/contracts/records/audit-query.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { beginningKey, BEGINNING_KIND, placeOfTrail } from '../../../src/extensions/audit/format/beginning.ts'
import { digestOfSubject } from '../../../src/extensions/audit/read/personal.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { openTrailOwner } from '../../../src/extensions/audit/trail-owner.ts'
import { ERASURE, SharedErasures } from '../../../src/extensions/audit/write/shared-erasures.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { tryLock } from '../../../src/operate/trail/lock.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { auditRecords, recordsOf } from '../../support/audit-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import { changeOf, outcomeOf } from './support/recorded-trail.ts'

const BOSS: Operator = {
  ...{ operator: 'boss', by: 'Ada', reason: 'request 4711' },
  ...{ via: '192.0.2.99', channel: 'admin' },
}

interface Placed {
  readonly port: number
  readonly data?: string
  readonly clock?: MovableClock
}

/** A node's trail, with the orders of the store that it shares. */
async function node(store: MemoryStore, { port, data, clock = movableClock() }: Placed) {
  const root = data ?? (await dataFolder())
  const folder = join(root, 'audit')
  const configuration = { store: { kind: 'postgres' }, server: { listen: `127.0.0.1:${port}` } }
  const timers = manualAfter()
  const noted: string[] = []
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const lock = tryLock(folder)
  if (lock === undefined) throw new Error('the lock is taken')
  const plan = { folder, durability: 'disk', timeout: 20_000, retention: undefined, anchors: [] } as const
  const owner = await openTrailOwner(plan, 'own', {
    ...{ lock, clock, after: timers.after, node: `n${port}` },
    recorder: { note: (_level, event) => void noted.push(event) },
  })
  let isOpen = true
  const close = async (): Promise<void> => {
    if (isOpen) await owner.close()
    isOpen = false
    clock.advance(10_000)
  }
  onTestFinished(close)
  return {
    ...{ folder, data: root, clock, owner, timers, noted, close },
    share: (): Promise<void> => owner.compare(store, configuration as unknown as Configuration),
    key: beginningKey(placeOfTrail(configuration, folder)),
    name: `${hostname()} 127.0.0.1:${port}`,
    /** An intent with two values, and its outcome. */
    change: async (subject: string) => {
      const intent = await owner.trail.require(changeOf(subject))
      await owner.trail.require(outcomeOf(subject, intent))
    },
    /** As an operator orders it at this node. */
    erase: (subject: string): Promise<ErasedEverywhere> => {
      const recorded: RecordedErasure = (found, erase) =>
        recordGiving(
          owner.trail,
          BOSS,
          { event: 'audit.redacted', on: { subject }, change: plainFacts(found) },
          erase,
        )
      return owner.redactEverywhere(subject, recorded, BOSS)
    },
    /** How many values the trail has of a subject. */
    valuesOf: (subject: string): number =>
      auditRecords({ data: root })
        .filter(({ actor }) => (actor as { subject?: string }).subject === subject)
        .flatMap(({ values }) => Object.keys(values)).length,
    records: (event: string) => recordsOf({ data: root }, event),
    verified: () => verifyTrail({ folder }),
  }
}

async function nodes() {
  const store = new MemoryStore(movableClock())
  const [one, other] = [await node(store, { port: 8081 }), await node(store, { port: 8082 })]
  for (const each of [one, other]) {
    await each.share()
    for (const subject of ['ann', 'bob']) await each.change(subject)
  }
  return { store, one, other }
}

const textOf = async (store: MemoryStore): Promise<string> => JSON.stringify(await store.list(ERASURE))

describe('C12.2.3 an order to erase the values of a person', () => {
  it('C12.2.3 is carried out by each other node within its next look, for the operator who gave it, and is gone then', async () => {
    const { store, one, other } = await nodes()
    expect(await one.erase('ann')).toEqual({ values: 2, files: 1, pending: [other.name] })
    expect([one.valuesOf('ann'), other.valuesOf('ann')]).toEqual([0, 2])
    expect(await textOf(store)).toContain(digestOfSubject('ann'))
    expect(await textOf(store)).not.toContain('ann"')
    expect(other.timers.delays()).toContain(10_000)
    await other.timers.fire()
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    expect([other.valuesOf('ann'), other.valuesOf('bob')]).toEqual([0, 2])
    expect(other.records('audit.redacted')).toMatchObject([
      {
        outcome: 'pending',
        actor: { kind: 'operator', operator: 'boss', claimed: 'Ada' },
        on: { subject: 'ann' },
        why: 'request 4711',
        change: { values: 2, files: 1 },
        values: {},
      },
      { outcome: 'success', actor: { operator: 'boss' } },
    ])
    expect(other.noted).toEqual(['audit_redacted'])
    for (const each of [one, other]) {
      await each.close()
      expect(each.verified()).toMatchObject({ whole: true, findings: [], erased: 2 })
    }
  })

  it('C12.2.3 is looked for again and again: one that is given later too', async () => {
    const { store, one, other } = await nodes()
    for (const subject of ['ann', 'bob']) {
      await one.erase(subject)
      await other.timers.fire()
      await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
      expect(other.valuesOf(subject)).toBe(0)
      // It waits for the next look.
      await eventually(() => expect(other.timers.delays()).toContain(10_000))
    }
    await other.close()
    expect(other.timers.delays()).not.toContain(10_000)
  })

  it('C12.2.3 a node that is down is named until it has run again, and does it when it starts', async () => {
    const { store, one, other } = await nodes()
    await other.close()
    for (let times = 0; times < 2; times++) expect((await one.erase('ann')).pending).toEqual([other.name])
    await one.timers.fire()
    const { data, clock } = other
    expect(await store.list(ERASURE)).toHaveLength(1)
    const again = await node(store, { port: 8082, data, clock })
    await again.share()
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    expect([again.valuesOf('ann'), again.valuesOf('bob')]).toEqual([0, 2])
    expect((await one.erase('ann')).pending).toEqual([again.name])
    await again.close()
    expect(again.verified()).toMatchObject({ whole: true, findings: [], erased: 2 })
  })

  it('C12.2.3 a node without values of the person records nothing', async () => {
    const { store, one, other } = await nodes()
    await one.change('cyd')
    await one.erase('cyd')
    await other.timers.fire()
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    expect(other.records('audit.redacted')).toEqual([])
    expect([other.valuesOf('ann'), other.valuesOf('bob')]).toEqual([2, 2])
  })

  it('C12.2.3 that was not carried out because of the store or the trail is noted, and tried again', async () => {
    const { store, one, other } = await nodes()
    await one.erase('ann')
    const list = store.list.bind(store)
    store.list = () => Promise.reject(new Fault('identity_unavailable'))
    await other.timers.fire()
    await eventually(() => expect(other.noted).toEqual(['audit_erasure_failed']))
    expect(other.valuesOf('ann')).toBe(2)
    store.list = list
    const roll = other.owner.trail.roll.bind(other.owner.trail)
    other.owner.trail.roll = () => Promise.reject(new Fault('audit_unavailable'))
    await eventually(() => expect(other.timers.delays()).toContain(10_000))
    await other.timers.fire()
    await eventually(() => expect(other.noted).toEqual(['audit_erasure_failed', 'audit_erasure_failed']))
    expect([other.valuesOf('ann'), other.records('audit.redacted')]).toEqual([2, []])
    other.owner.trail.roll = roll
    await eventually(() => expect(other.timers.delays()).toContain(10_000))
    await other.timers.fire()
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    expect(other.valuesOf('ann')).toBe(0)
  })

  it('C12.2.3 of two nodes at once for one person leaves nothing, and names nobody who has done it', async () => {
    const { store, one, other } = await nodes()
    const answers = await Promise.all([one.erase('ann'), other.erase('ann')])
    expect(answers.map(({ values }) => values)).toEqual([2, 2])
    expect(answers[0].pending).not.toContain(one.name)
    expect(answers[1].pending).not.toContain(other.name)
    // The order that was given last may count what the other one has done before as undone.
    await Promise.all([one.timers.fire(), other.timers.fire()])
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    for (const each of [one, other]) {
      expect(each.valuesOf('ann')).toBe(0)
      expect(each.records('audit.redacted')).toHaveLength(2)
      await each.close()
      expect(each.verified()).toMatchObject({ whole: true, findings: [], erased: 2 })
    }
  })
})

/** Orders over a store in memory, whose erasure a test sees. */
function orders(store: MemoryStore, trail: string, clock = movableClock()) {
  const redacted: string[] = []
  const timers = manualAfter()
  const made = new SharedErasures({
    ...{ store, trail, clock, after: timers.after },
    redact: (digest: string): Promise<Redacted> => {
      redacted.push(digest)
      return Promise.resolve({ values: 0, files: 0 })
    },
    audit: {} as never,
    recorder: { note: () => undefined },
  })
  onTestFinished(() => made.close())
  return { orders: made, redacted, timers }
}

describe('C12.2.3 orders in a store', () => {
  const DIGEST = digestOfSubject('ann')

  async function remembered(...hosts: readonly string[]) {
    const store = new MemoryStore(movableClock())
    for (const host of hosts) await store.create(BEGINNING_KIND, `${host}:/audit`, { value: { host } })
    return store
  }

  it('C12.2.3 wait for no trail that has begun later, and end after 90 days', async () => {
    const clock = movableClock()
    const store = new MemoryStore(clock)
    const begins = async (host: string): Promise<boolean> => {
      const value = { host, signed: new Date(clock.now()).toISOString() }
      return store.create(BEGINNING_KIND, `${host}:/audit`, { value })
    }
    await begins('a')
    await begins('b')
    const { orders: one } = orders(store, 'a:/audit', clock)
    await one.give('ann', BOSS)
    clock.advance(1000)
    await begins('c')
    expect(await one.done(DIGEST)).toEqual(['b'])
    const { redacted, timers } = orders(store, 'c:/audit', clock)
    await timers.fire()
    expect(redacted).toEqual([])
    clock.advance(90 * 24 * 60 * 60_000)
    expect(await store.list(ERASURE)).toEqual([])
    expect(await one.done(DIGEST)).toEqual([])
  })

  it('C12.2.3 wait for no trail of another kind of store, which no node has', async () => {
    const store = await remembered('a', 'b', '')
    const { orders: one } = orders(store, 'a:/audit')
    await one.give('ann', BOSS)
    expect(await one.done(DIGEST)).toEqual(['b'])
    expect((await store.find(ERASURE, DIGEST))?.value).toEqual({
      at: expect.any(Number),
      by: { operator: 'boss', by: 'Ada', reason: 'request 4711' },
      done: ['a:/audit'],
    })
  })

  it('C12.2.3 are over for all when the last node has done it: nobody is waited for any more', async () => {
    const store = await remembered('a', 'b')
    const [{ orders: one }, { orders: other }] = [orders(store, 'a:/audit'), orders(store, 'b:/audit')]
    await one.give('ann', BOSS)
    await one.done(DIGEST)
    expect(await other.done(DIGEST)).toEqual([])
    expect(await store.list(ERASURE)).toEqual([])
    expect([await one.done(DIGEST), await other.done(DIGEST)]).toEqual([[], []])
  })

  it('C12.2.3 that are given again while the last node is done stay', async () => {
    const store = await remembered('a')
    const { orders: one } = orders(store, 'a:/audit')
    await one.give('ann', BOSS)
    const remove = store.remove.bind(store)
    store.remove = async (...what) => {
      store.remove = remove
      await one.give('ann', { ...BOSS, reason: 'request 4712' })
      return remove(...what)
    }
    await one.done(DIGEST)
    expect((await store.find(ERASURE, DIGEST))?.value).toMatchObject({
      by: { reason: 'request 4712' },
      done: [],
    })
  })

  it('C12.2.3 are carried out once by each trail, and by none that is closed', async () => {
    const store = await remembered('a', 'b')
    const [one, other] = [orders(store, 'a:/audit'), orders(store, 'b:/audit')]
    await eventually(() =>
      expect([one, other].map(({ timers }) => timers.delays())).toEqual([[10_000], [10_000]]),
    )
    await one.orders.give('ann', BOSS)
    await one.orders.done(DIGEST)
    await one.timers.fire()
    await eventually(() => expect(one.timers.delays()).toEqual([10_000]))
    other.orders.close()
    await other.timers.fire()
    expect([one.redacted, other.redacted, one.timers.delays(), other.timers.delays()]).toEqual([
      [],
      [],
      [10_000],
      [],
    ])
    const { redacted } = orders(store, 'b:/audit')
    await eventually(async () => expect(await store.list(ERASURE)).toEqual([]))
    expect(redacted).toEqual([DIGEST])
  })
})
