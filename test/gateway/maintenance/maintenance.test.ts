import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import { nodeOf } from '../../../src/base/config/tree.ts'
import { load } from '../../../src/base/config/validate.ts'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { MaintenanceSwitches } from '../../../src/gateway/maintenance/maintenance.ts'
import { MaintenanceRecords } from '../../../src/gateway/maintenance/records.ts'
import {
  type ClosableNames,
  compileMaintenance,
  maintenanceSchema,
} from '../../../src/gateway/maintenance/schema.ts'
import { type MaintenanceSwitch, parseClosureScope } from '../../../src/gateway/maintenance/switch.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const MINUTE = 60_000
const SERVICE = { kind: 'service' } as const
const ACME = { kind: 'business', name: 'ACME' } as const

function switches(...all: MaintenanceSwitch[]) {
  const clock = movableClock()
  const compiled = new MaintenanceSwitches(clock)
  compiled.set(all)
  return { clock, compiled }
}

describe('maintenance switches', () => {
  it('C9.1 a planned window begins and ends by the clock, to the millisecond', () => {
    const { clock, compiled } = switches()
    const now = clock.now()
    compiled.set([{ scope: SERVICE, from: now + MINUTE, until: now + 2 * MINUTE }])
    clock.advance(MINUTE - 1)
    expect(compiled.service()).toBeUndefined()
    clock.advance(1)
    expect(compiled.service()).toBeDefined()
    clock.advance(MINUTE - 1)
    expect(compiled.service()).toBeDefined()
    clock.advance(1)
    expect(compiled.service()).toBeUndefined()
    clock.advance(-1)
    expect(compiled.service()).toBeDefined()
  })

  it('C9.1 each scope closes what it names, and nothing else', () => {
    const { compiled } = switches({ scope: ACME }, { scope: { kind: 'backend', name: 'slow' } })
    expect(compiled.service()).toBeUndefined()
    expect(compiled.identity()).toBeUndefined()
    expect(compiled.place('ACME', 'any', 'other')).toBeDefined()
    expect(compiled.place('GLOBEX', 'any', 'slow')).toBeDefined()
    expect(compiled.place('GLOBEX', 'any', 'other')).toBeUndefined()
  })

  it('C9.1 Retry-After is what was said, else what is left of the window, else two minutes', () => {
    const { clock, compiled } = switches()
    const until = clock.now() + MINUTE
    compiled.set([
      { scope: SERVICE, until },
      { scope: { kind: 'identity' }, until, retryAfter: 7 },
      { scope: ACME },
    ])
    clock.advance(1500)
    expect(compiled.service()?.retryAfter).toBe(59)
    expect(compiled.identity()?.retryAfter).toBe(7)
    expect(compiled.place('ACME', '', '')?.retryAfter).toBe(120)
  })

  it('C9.2 where several switches close one call, only who is on the list of each passes', () => {
    const { compiled } = switches(
      { scope: ACME, addresses: ['10.0.0.0/8', '2001:db8::/32'], clients: ['a', 'b'], retryAfter: 5 },
      { scope: { kind: 'area', name: 'x' }, addresses: ['10.1.2.3'], clients: ['b'], message: 'later' },
    )
    const alone = compiled.place('ACME', 'y', '')
    expect([alone?.admitsAddress('10.9.9.9'), alone?.admitsAddress('2001:db8::1')]).toEqual([true, true])
    expect([alone?.admitsAddress('11.0.0.1'), alone?.admitsAddress('')]).toEqual([false, false])
    expect(alone?.admitsAddress('::ffff:10.0.0.1')).toBe(true)
    const both = compiled.place('ACME', 'x', '')
    expect([both?.admitsAddress('10.9.9.9'), both?.admitsAddress('10.1.2.3')]).toEqual([false, true])
    expect([...(both?.clients ?? [])]).toEqual(['b'])
    expect([both?.message, both?.retryAfter]).toEqual(['later', 120])
  })
})

async function openBook(store = new MemoryStore(movableClock()), clock = movableClock()) {
  const notes: Record<string, unknown>[] = []
  const recorder = {
    note: (_level: string, event: string, facts: object = {}) => void notes.push({ event, ...facts }),
  }
  const feed = await ChangeFeed.open({ store, clock, recorder, after: () => () => undefined })
  const compiled = new MaintenanceSwitches(clock)
  return {
    store,
    clock,
    notes,
    feed,
    compiled,
    book: new MaintenanceRecords({ feed, switches: compiled, clock, recorder, audit: NO_TRAIL }),
  }
}

const OPERATOR = { by: 'ann', reason: 'upgrade', via: '127.0.0.1' }

describe('maintenance book', () => {
  it('C9.1 what is set is in force at once, survives a restart and reaches who follows the feed', async () => {
    const { store, clock, book, compiled } = await openBook()
    const other = await openBook(store, clock)
    await book.set({ scope: SERVICE, message: 'back soon' }, OPERATOR)
    expect(compiled.service()?.message).toBe('back soon')
    await other.feed.refresh()
    expect(other.compiled.service()?.message).toBe('back soon')
    const restarted = await openBook(store, clock)
    expect(restarted.compiled.service()?.message).toBe('back soon')
    await restarted.book.end(restarted.book.list(), OPERATOR)
    await book.end([], OPERATOR)
    await other.feed.refresh()
    expect(other.compiled.service()).toBeUndefined()
    expect((await openBook(store, clock)).book.list()).toEqual([])
  })

  it('C9.1 switching on replaces what was on for that scope; plans and other scopes stay', async () => {
    const { book, clock } = await openBook()
    await book.set({ scope: SERVICE, message: 'one' }, OPERATOR)
    await book.set({ scope: ACME, message: 'acme' }, OPERATOR)
    await book.set({ scope: SERVICE, message: 'planned', from: clock.now() + MINUTE }, OPERATOR)
    await book.set({ scope: SERVICE, message: 'two' }, OPERATOR)
    expect(book.list().map(({ message }) => message)).toEqual(['acme', 'planned', 'two'])
  })

  it('C9.1 a window that is over is listed no more, nor is what it replaced', async () => {
    const { store, clock, book } = await openBook()
    await book.set({ scope: SERVICE }, OPERATOR)
    await book.set({ scope: SERVICE, until: clock.now() + MINUTE }, OPERATOR)
    clock.advance(MINUTE)
    expect(book.list()).toEqual([])
    expect((await openBook(store, clock)).book.list()).toEqual([])
  })

  it('C9.1 switches of the configuration stand beside those of operators', async () => {
    const { book, compiled } = await openBook()
    book.configure([{ scope: SERVICE, message: 'written' }])
    await book.set({ scope: ACME }, OPERATOR)
    expect(book.list().map(({ source }) => source)).toEqual(['configuration', 'operator'])
    book.configure([])
    expect(compiled.service()).toBeUndefined()
    expect(compiled.place('ACME', '', '')).toBeDefined()
  })

  it('C9.3 each change is told: who, what, why', async () => {
    const { book, notes, clock } = await openBook()
    await book.set({ scope: ACME, until: clock.now() + MINUTE, message: 'soon' }, OPERATOR)
    await book.end(book.list(), { ...OPERATOR, reason: 'done' })
    expect(notes).toMatchObject([
      {
        event: 'maintenance_changed',
        change: 'on',
        scope: 'business/ACME',
        until: '2026-01-15T00:01:00.000Z',
        message: 'soon',
        ...OPERATOR,
      },
      { event: 'maintenance_changed', change: 'off', scope: 'business/ACME', by: 'ann', reason: 'done' },
    ])
  })

  it('a switch that this version does not know is told and changes nothing', async () => {
    const { store, feed, notes, book } = await openBook()
    await store.append('maintenance', { set: { id: 'x', scope: SERVICE, addresses: ['nowhere'] }, ends: [] })
    await store.append('maintenance', { strange: true })
    await feed.refresh()
    expect(notes.map(({ event }) => event)).toEqual([
      'maintenance_unknown_switch',
      'maintenance_unknown_switch',
    ])
    expect(book.list()).toEqual([])
  })
})

const NAMES: ClosableNames = {
  business: new Set(['ACME']),
  area: new Set(['fund-data']),
  backend: new Set(['sample']),
  client: new Set(['acme-books']),
  issuer: undefined,
  stored: true,
}

function compile(entries: object[]) {
  const report = new Problems()
  const node = nodeOf(entries, { file: 'a.yaml', line: 1 })
  const config = load(viewOf(maintenanceSchema), node, ['maintenance'], { environment: {}, problems: report })
  const compiled = report.failed ? [] : compileMaintenance(config as never, NAMES, report)
  const problems = report.list.map(({ path, message }) => `${path.join('.')} ${message}`)
  return { compiled, problems, failed: report.failed }
}

describe('maintenance of the configuration', () => {
  it('C9.1 names a scope, a window, words and who passes', () => {
    const { compiled, problems } = compile([
      {
        scope: 'business/ACME',
        from: '2026-02-01T20:00:00+10:00',
        until: '2026-02-01T12:00Z',
        message: 'moving',
        retryAfter: '10m',
        allowAddresses: ['10.0.0.0/8'],
        allowClients: ['acme-books'],
      },
    ])
    expect(problems).toEqual([])
    expect(compiled).toEqual([
      {
        scope: ACME,
        from: Date.UTC(2026, 1, 1, 10),
        until: Date.UTC(2026, 1, 1, 12),
        message: 'moving',
        retryAfter: 600,
        addresses: ['10.0.0.0/8'],
        clients: ['acme-books'],
      },
    ])
  })

  it('C9.2 warns of a client that the configuration does not have: it may stand in the store', () => {
    const { compiled, problems, failed } = compile([
      { scope: 'service', allowClients: ['stored', 'acme-books'] },
    ])
    expect([failed, compiled[0]?.clients]).toEqual([false, ['stored', 'acme-books']])
    expect(problems).toEqual([
      'maintenance.0.allowClients names no client: "stored"; it passes if the store has one of that id',
    ])
  })

  it('C9.1 refuses what would close something else than was meant', () => {
    expect(
      compile([
        { scope: 'business/ACMEE' },
        { scope: 'area/funds' },
        { scope: 'service', allowAddresses: ['10.0.0.0/99'], allowClients: ['nobody'] },
        { scope: 'service', from: '2026-02-01T20:00Z', until: '2026-02-01T19:00Z' },
        { scope: 'service', from: '2026-02-31T99:00Z' },
      ]).problems.map((problem) => problem.split(' ')[0]),
    ).toEqual([
      'maintenance.0.scope',
      'maintenance.1.scope',
      'maintenance.2.allowAddresses',
      'maintenance.2.allowClients',
      'maintenance.3.until',
      'maintenance.4.from',
    ])
    expect(compile([{ scope: 'everything' }, { scope: 'service', from: 'tomorrow' }]).problems).toHaveLength(
      2,
    )
  })

  it.each(['service', 'identity', 'business/A', 'area/a', 'backend/b'])(
    'the scope %s can be written',
    (text) => {
      expect(
        compile([{ scope: text.replace('/A', '/ACME').replace('/a', '/fund-data').replace('/b', '/sample') }])
          .problems,
      ).toEqual([])
      expect(parseClosureScope(text)).toBeDefined()
    },
  )
})
