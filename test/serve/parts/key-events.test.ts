import { describe, expect, it } from 'vitest'
import { KeyEvents } from '../../../src/serve/parts/key-events.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { epochSeconds } from '../../../src/base/kernel/clock.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { type AuditEntry, NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { NO_RECORDER } from '../../../src/base/contracts/records/recorder.ts'
import { oneAtATime } from '../../../src/base/kernel/in-turn.ts'
import { rotateKeys } from '../../../src/operate/operation/key-work.ts'
import { movableClock } from '../../support/movable-clock.ts'

const HOUR = 3_600_000

async function start() {
  const clock = movableClock()
  const folder = await dataFolder()
  const store = new MemoryStore(clock)
  const told: string[] = []
  const rotation = { automatic: true, every: 86_400, announce: 3600, longestLife: 900 }
  const place = new FolderKeys(folder)
  const plan = { place, algorithms: ['ES256' as const], rotation }
  const scheduled: string[] = []
  const audit = {
    note: ({ event, on, actor }: Pick<AuditEntry, 'event' | 'on' | 'actor'>) => {
      told.push(`${event} ${on?.id ?? ''}`)
      if (actor.via === 'schedule') scheduled.push(told.at(-1) ?? '')
    },
  }
  const announced = new Set<string>()
  const key = (generation: number, ahead = 0) =>
    place.create({ algorithm: 'ES256', generation, signsFrom: epochSeconds(clock) + ahead }, clock)
  return {
    clock,
    told,
    scheduled,
    key,
    place,
    plan,
    store,
    announced,
    /** Of a node. `own`: what its operators have announced. */
    events: (own = announced) => new KeyEvents({ plan, store, audit, clock, announced: own }),
  }
}

describe('C12.3 events of keys', () => {
  it('are told once: announced, signing, retired; a restart tells none again', async () => {
    const { clock, told, key, place, events } = await start()
    const { kid } = await key(1)
    const first = events()
    await first.look()
    await key(2, 3600)
    await first.look()
    await first.look()
    clock.advance(HOUR)
    await first.look()
    expect(told).toEqual(['keys.signing ES256-1', 'keys.announced ES256-2', 'keys.signing ES256-2'])
    const second = events()
    await second.look()
    expect(told).toHaveLength(3)
    await place.remove('ES256-1')
    await second.look()
    await second.look()
    expect(told.slice(3)).toEqual([`keys.retired ${kid}`])
  })

  it('leave out what an operator has announced', async () => {
    const { told, key, events, announced } = await start()
    await key(1)
    const watch = events()
    await watch.look()
    announced.add('ES256-2')
    await key(2, 3600)
    await watch.look()
    await watch.look()
    expect(told).toEqual(['keys.signing ES256-1'])
  })

  it('leave out what an operator has announced by a command, before this service started or beside another node', async () => {
    const { told, scheduled, key, plan, store, clock, events } = await start()
    await key(1)
    const watch = events()
    await watch.look()
    const work = { plan, clock, announced: new Set<string>(), elsewhere: false, inTurn: oneAtATime() }
    const follow = () => Promise.resolve()
    const parts = {
      ...work,
      store: () => Promise.resolve(store),
      audit: NO_TRAIL,
      recorder: NO_RECORDER,
      follow,
    }
    const operator = {
      operator: 'root@host',
      by: undefined,
      reason: undefined,
      via: 'cli',
      channel: 'cli',
    } as const
    await rotateKeys(parts, { compromised: false, preview: false }, operator)
    expect(work.announced).toEqual(new Set())
    const later = events(new Set())
    for (const each of [watch, later, watch, later]) await each.look()
    expect(told).toEqual(['keys.signing ES256-1'])
    clock.advance(HOUR)
    await watch.look()
    expect(scheduled).toEqual(['keys.signing ES256-2'])
  })

  it('are told once by several nodes, and what an operator announced at one of them is not told by another', async () => {
    const { clock, told, key, events } = await start()
    await key(1)
    const announced = new Set<string>()
    const [one, other] = [events(announced), events(new Set())]
    await Promise.all([one.look(), other.look()])
    await Promise.all([one.look(), other.look()])
    expect(told).toEqual(['keys.signing ES256-1'])
    announced.add('ES256-2')
    await key(2, 3600)
    await other.look()
    await one.look()
    await other.look()
    expect(told).toHaveLength(1)
    clock.advance(HOUR)
    await Promise.all([one.look(), other.look()])
    await Promise.all([one.look(), other.look()])
    expect(told).toEqual(['keys.signing ES256-1', 'keys.signing ES256-2'])
  })

  it('name the schedule only where the schedule did it, not where a command replaced the keys', async () => {
    const { clock, scheduled, told, key, place, events } = await start()
    await key(1)
    const watch = events()
    await watch.look()
    await key(2, 3600)
    await watch.look()
    await watch.look()
    clock.advance(HOUR)
    await watch.look()
    expect(scheduled).toEqual(['keys.announced ES256-2', 'keys.signing ES256-2'])
    // As `keys rotate --compromised` leaves them.
    await key(3)
    await place.remove('ES256-1')
    await place.remove('ES256-2')
    await watch.look()
    await watch.look()
    expect(told.slice(3)).toHaveLength(3)
    expect(scheduled).toHaveLength(2)
  })

  it('are told later, and once, if the store could not be reached', async () => {
    const { told, key, events, store } = await start()
    await key(1)
    const watch = events()
    const create = store.create.bind(store)
    store.create = () => Promise.reject(new Fault('identity_unavailable'))
    await watch.look()
    await watch.look()
    expect(told).toEqual([])
    store.create = create
    await watch.look()
    await watch.look()
    expect(told).toEqual(['keys.signing ES256-1'])
  })
})
