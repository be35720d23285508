/** Questions to trails that the real writer has written: over several trails, days and segments. */
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { queryTrail } from '../../../src/extensions/audit/read/read-trail.ts'
import { readRow } from '../../../src/extensions/audit/read/rows.ts'
import { openAuditKeys } from '../../../src/extensions/audit/format/keys.ts'
import { makeManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import { openTrail, type WritingTrail } from '../../../src/extensions/audit/write/writing-trail.ts'
import {
  type AuditQuery,
  type AuditRow,
  type Position,
  type ReadProgress,
  type ScanEnd,
  TrailReadError,
} from '../../../src/base/contracts/records/audit-query.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { type MovableClock, movableClock } from '../../support/movable-clock.ts'

const NOON = Date.UTC(2026, 2, 5, 12)
const DAY = 86_400_000

interface Kept {
  readonly folder: string
  readonly clock: MovableClock
  /** A trail with small segments: another one, or that of a process before this. */
  readonly process: (before?: WritingTrail) => WritingTrail
}

async function kept(start = NOON): Promise<Kept> {
  const folder = await dataFolder()
  const clock = movableClock(start)
  const plan = { folder, durability: 'system', timeout: 20_000, retention: undefined, anchors: [] } as const
  const recorder = { note: () => undefined }
  return {
    folder,
    clock,
    process: (before) =>
      openTrail(plan, {
        ...{ clock, recorder, bodyKey: 'k', segmentBytes: 2000 },
        from: before && { writer: before.writer, head: before.head, number: segmentsOf(folder).length },
      }),
  }
}

const change = (fund: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  event: 'call.intended',
  outcome: 'pending',
  requestId: `request-of-${fund}`,
  actor: { kind: 'user', subject: 'alice', client: 'books' },
  on: { business: 'ACME', fund, area: 'fund-data', action: 'fund-detail', method: 'POST' },
  personal: { 'actor.address': '192.0.2.7' },
  ...more,
})

const settled = (intent: number, outcome: AuditEntry['outcome'] = 'success'): AuditEntry => ({
  event: 'call.settled',
  outcome,
  intent,
  actor: { kind: 'user', subject: 'alice' },
  call: { status: outcome === 'success' ? 200 : 409 },
})

interface Answer extends ScanEnd {
  readonly found: readonly AuditRow[]
}

async function ask(
  folders: string | readonly string[],
  query: AuditQuery,
  page: { after?: Position; limit?: number } = {},
  onProgress?: (progress: ReadProgress) => void,
): Promise<Answer> {
  const found: AuditRow[] = []
  for await (const step of queryTrail({ folders: [folders].flat(), query, ...page }, onProgress)) {
    if (step.kind === 'end') return { ...step, found }
    found.push(...step.lines.map(readRow))
  }
  throw new Error('no end')
}

const fundsOf = ({ found }: Answer): readonly unknown[] => found.map(({ on }) => on?.fund)

const segmentsOf = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .toSorted()

describe('C12.5 a time that the trail does not have', () => {
  async function march(): Promise<Kept> {
    const trail = await kept()
    const process = trail.process()
    await process.require(change('SUPER1'))
    await process.close()
    return trail
  }
  const monthOf = (month: number) => ({ from: Date.UTC(2026, month, 1), until: Date.UTC(2026, month + 1, 1) })
  const begins = new Date(NOON).toISOString()

  it('C12.5 is told with the time of the first record: all of it, a part of it, or none', async () => {
    const { folder } = await march()
    const uncovered = async (query: AuditQuery): Promise<unknown> => (await ask(folder, query)).uncovered
    expect(await uncovered(monthOf(1))).toEqual({ all: true, begins, removedFrom: undefined })
    expect(await uncovered(monthOf(2))).toEqual({ all: false, begins, removedFrom: undefined })
    expect(await uncovered({ until: NOON })).toMatchObject({ all: true })
    expect(await uncovered(monthOf(3))).toBeUndefined()
    expect(await uncovered({ from: NOON })).toBeUndefined()
    expect(await uncovered({ until: NOON + 1 })).toBeUndefined()
    expect(await uncovered({ fund: 'SUPER1' })).toBeUndefined()
    expect(await uncovered({ from: Date.now() + DAY })).toMatchObject({ all: true, begins: undefined })
    expect((await ask(await dataFolder(), monthOf(2))).uncovered).toMatchObject({
      all: true,
      begins: undefined,
    })
  })

  it('C12.5 is told with what retention has removed of it', async () => {
    const { folder } = await march()
    const keys = await openAuditKeys(folder)
    const time = '2026-01-05T00:00:00.000Z'
    const head = { writer: 'w', seq: 0, hash: '' }
    const first = makeManifestLine({ time, head }, undefined, keys)
    const removed = [{ number: 1, seq: 1, hash: 'h' }]
    const second = makeManifestLine({ time: begins, head, removed }, first.line, keys)
    writeFileSync(join(folder, 'manifest.jsonl'), first.text + second.text)
    expect((await ask(folder, monthOf(1))).uncovered).toEqual({ all: true, begins, removedFrom: time })
  })
})

describe('C12.5 asking', () => {
  it('finds a subject’s records across restarts, midnight and segments, in the order of time', async () => {
    const { folder, clock, process } = await kept(Date.UTC(2026, 2, 5, 23, 59, 59))
    const expected: string[] = []
    let trail: WritingTrail | undefined
    for (const name of ['first', 'second']) {
      trail = process(trail)
      for (let number = 0; number < 12; number++) {
        const fund = `${name}-${number}`
        const intent = await trail.require(change(fund))
        await trail.require(change('other', { actor: { kind: 'user', subject: 'bob' } }))
        clock.advance(100)
        await trail.settle(settled(intent))
        expected.push(fund)
      }
      await trail.close()
    }
    const days = new Set(segmentsOf(folder).map((name) => name.slice(0, 10)))
    expect([...days]).toEqual(['2026-03-05', '2026-03-06'])
    expect(segmentsOf(folder).length).toBeGreaterThan(6)
    const answer = await ask(folder, { by: 'alice' })
    expect(fundsOf(answer)).toEqual(expected)
    expect(answer.found.every(({ outcome }) => outcome === 'success')).toBe(true)
    expect(answer.found[0]).toMatchObject({
      actor: { address: '192.0.2.7' },
      call: { status: 200 },
      settled: { seq: 4 },
    })
    expect(fundsOf(await ask(folder, { user: 'alice', from: Date.UTC(2026, 2, 6) }))).toEqual(
      expected.filter((_fund, at) => at >= 10),
    )
  })

  it('finds the outcome of an intent after midnight', async () => {
    const { folder, clock, process } = await kept(Date.UTC(2026, 2, 31, 23, 59, 59, 900))
    const trail = process()
    const intent = await trail.require(change('SUPER1'))
    clock.advance(200)
    await trail.settle(settled(intent, 'failed'))
    await trail.close()
    const march = { from: Date.UTC(2026, 2, 1), until: Date.UTC(2026, 3, 1) }
    expect((await ask(folder, march)).found).toMatchObject([
      { event: 'writer.opened' },
      { event: 'call.intended', outcome: 'failed', call: { status: 409 } },
    ])
  })

  it('with `changed` shows what succeeded, and as open what has no outcome', async () => {
    const { folder, process } = await kept()
    const trail = process()
    for (const outcome of ['success', 'refused', 'failed'] as const)
      await trail.settle(settled(await trail.require(change(outcome)), outcome))
    await trail.require(change('cut-off'))
    trail.note({ event: 'token.refused', outcome: 'refused', actor: { kind: 'client', client: 'books' } })
    await trail.close()
    const answer = await ask(folder, { changed: true })
    expect(answer.found.map(({ on, outcome }) => [on?.fund, outcome])).toEqual([
      ['success', 'success'],
      ['cut-off', 'open'],
    ])
    expect(fundsOf(await ask(folder, { outcome: 'open' }))).toEqual(['cut-off'])
    expect(fundsOf(await ask(folder, { outcome: 'refused', action: 'fund-data/fund-detail' }))).toEqual([
      'refused',
    ])
    expect((await ask(folder, { events: ['call.settled'] })).found).toHaveLength(3)
  })

  it('shows an act of an operator once, with its outcome', async () => {
    const { folder, process } = await kept()
    const trail = process()
    const act = (outcome: AuditEntry['outcome'], more: Partial<AuditEntry> = {}): AuditEntry => ({
      ...{ event: 'client.added', outcome, ...more },
      ...{ actor: { kind: 'operator', operator: 'anna' }, on: { kind: 'client', id: 'books' } },
    })
    for (const outcome of ['success', 'failed'] as const)
      await trail.settle(act(outcome, { intent: await trail.require(act('pending')) }))
    await trail.require(act('pending'))
    await trail.close()
    for (const query of [{ by: 'anna' }, { events: ['client.added'] }, { client: 'books' }] as const) {
      const { found } = await ask(folder, query)
      expect(found.map(({ outcome }) => outcome)).toEqual(['success', 'failed', 'open'])
    }
    expect((await ask(folder, { by: 'anna', singly: true })).found).toHaveLength(5)
  })

  it('a body that ends later settles nothing', async () => {
    const { folder, process } = await kept()
    const trail = process()
    const intent = await trail.require(change('streamed'))
    trail.note({ ...settled(intent), event: 'call.body_ended' })
    await trail.close()
    expect((await ask(folder, { outcome: 'open' })).found).toHaveLength(1)
  })

  it('keeps two equal records of one millisecond apart, page by page', async () => {
    const { folder, process } = await kept()
    const [one, other] = [process(), process()]
    for (let number = 0; number < 5; number++)
      for (const trail of [one, other])
        await trail.require(change('same', { event: 'user.added', outcome: 'success' }))
    await one.close()
    await other.close()
    const pages: string[] = []
    let after: Position | undefined
    do {
      const { found, last } = await ask(folder, { fund: 'same' }, { limit: 3, ...(after && { after }) })
      pages.push(...found.map(({ writer, seq }) => `${writer} ${seq}`))
      after = last
    } while (after !== undefined)
    expect(new Set(pages).size).toBe(10)
    expect(pages).toEqual(pages.toSorted())
  })

  it('answers from the trails of several nodes as from one', async () => {
    const nodes = [await kept(NOON), await kept(NOON + 500)]
    for (const [at, { clock, process }] of nodes.entries()) {
      const trail = process()
      for (const number of [1, 2]) {
        await trail.require(change(`node${at}-${number}`))
        clock.advance(1000)
      }
      await trail.close()
    }
    const folders = nodes.map(({ folder }) => folder)
    expect(fundsOf(await ask([...folders, folders[0]!], { business: 'ACME' }))).toEqual([
      'node0-1',
      'node1-1',
      'node0-2',
      'node1-2',
    ])
  })

  it('shows erased personal values as erased, and others than those of the record not at all', async () => {
    const { folder, process } = await kept()
    const trail = process()
    await trail.require(
      change('A', { personal: { 'actor.address': '192.0.2.7', 'on.params.memberId': '17' } }),
    )
    await trail.close()
    const beside = join(folder, segmentsOf(folder)[0]!.replace(/\.jsonl$/, '.personal.jsonl'))
    expect((await ask(folder, { fund: 'A' })).found[0]).toMatchObject({
      actor: { address: '192.0.2.7' },
      on: { params: { memberId: '17' } },
    })
    writeFileSync(beside, readFileSync(beside, 'utf8').replace('192.0.2.7', '192.0.2.8'))
    expect((await ask(folder, { fund: 'A' })).found[0]).toMatchObject({ altered: ['actor.address'] })
    rmSync(beside)
    const [row] = (await ask(folder, { fund: 'A' })).found
    expect(row).toMatchObject({ erased: ['actor.address', 'on.params.memberId'] })
    expect(JSON.stringify(row)).not.toContain('192.0.2')
  })

  it('finds personal values in a long file beside, in any order of asking', async () => {
    const { folder, process } = await kept()
    const trail = process()
    await trail.require(change('A', { personal: { 'actor.address': 'first' } }))
    await trail.close()
    const beside = join(folder, segmentsOf(folder)[0]!.replace(/\.jsonl$/, '.personal.jsonl'))
    const lines = readFileSync(beside, 'utf8')
    const long = Array.from(
      { length: 20_000 },
      (_, at) => `{"seq":${at + 3},"name":"actor.address","salt":"x","value":"${'v'.repeat(50)}"}\n`,
    )
    writeFileSync(beside, lines + long.join(''))
    expect((await ask(folder, { fund: 'A' })).found[0]).toMatchObject({ actor: { address: 'first' } })
  })

  it('leaves out a torn tail, tells lines that are no records, and goes on behind them', async () => {
    const { folder, process } = await kept()
    const trail = process()
    await trail.require(change('A'))
    await trail.close()
    const [segment = ''] = segmentsOf(folder)
    const path = join(folder, segment)
    const [first, ...rest] = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, [first, '{"nothing":1}', ...rest].join('\n'))
    appendFileSync(path, '{"v":1,"writer":"torn","seq":9,"ti')
    const answer = await ask(folder, {})
    expect(answer.found.map(({ event }) => event)).toEqual([
      'writer.opened',
      'call.intended',
      'writer.closed',
    ])
    expect(answer).toMatchObject({
      unreadableCount: 1,
      unreadable: [{ path, offset: Buffer.byteLength(`${first}\n`) }],
    })
  })

  it('leaves out what a writer has written again after a failure', async () => {
    const { folder, clock, process } = await kept()
    const trail = process()
    await trail.require(change('A'))
    clock.advance(DAY)
    await trail.require(change('B'))
    await trail.close()
    const [before = ''] = segmentsOf(folder)
    const path = join(folder, before)
    const line = readFileSync(path, 'utf8').split('\n')[1] ?? ''
    appendFileSync(path, `${line.replace('"seq":2', '"seq":3').replace('"A"', '"lost"')}\n`)
    expect(fundsOf(await ask(folder, { business: 'ACME' }))).toEqual(['A', 'B'])
  })

  it('is not misled by values that look like members', async () => {
    const { folder, process } = await kept()
    const trail = process()
    const trick = '","fund":"SUPER1","intent":2,"'
    await trail.require(
      change('A', { why: trick, change: { fund: 'SUPER1', intent: 2, on: { fund: 'SUPER1' } } }),
    )
    await trail.close()
    expect((await ask(folder, { fund: 'SUPER1' })).found).toEqual([])
    expect((await ask(folder, { outcome: 'open' })).found).toMatchObject([{ why: trick }])
    expect((await ask(folder, { fund: '"' })).found).toEqual([])
  })

  it('tells how far it is, and what it cannot read', async () => {
    const { folder, process } = await kept()
    await process().close()
    const told: ReadProgress[] = []
    await ask(folder, {}, {}, (progress) => told.push(progress))
    expect(told.at(-1)?.done).toBe(told.at(-1)?.total)
    await expect(ask(join(folder, 'missing'), {})).rejects.toThrow(TrailReadError)
    await expect(ask(join(folder, 'missing'), {})).rejects.toThrow(/ENOENT/)
  })
})
