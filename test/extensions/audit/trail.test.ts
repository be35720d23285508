import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { RecordRing } from '../../../src/extensions/audit/queue/record-ring.ts'
import { prepareAuditFolder } from '../../../src/extensions/audit/write/folder.ts'
import type { OpenTrail } from '../../../src/extensions/audit/write/trail.ts'
import { openTrail, type WritingParts } from '../../../src/extensions/audit/write/writing-trail.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { openIntents, readTrail, segmentsOf } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'

const INTENT: AuditEntry = {
  event: 'call.intended',
  outcome: 'pending',
  requestId: 'r',
  actor: { kind: 'user', subject: 's' },
  personal: { 'actor.address': '192.0.2.1' },
}
const OUTCOME: AuditEntry = { event: 'call.settled', outcome: 'success', actor: { kind: 'user' } }
const NOTE: AuditEntry = { event: 'service.started', outcome: 'success', actor: { kind: 'service' } }
const TAKEN: AuditEntry = { event: 'revocation.ordered', outcome: 'success', actor: { kind: 'operator' } }

async function opened(
  parts: Partial<WritingParts> & { readonly durability?: 'disk' | 'system'; readonly timeout?: number } = {},
) {
  const folder = await dataFolder()
  await prepareAuditFolder(folder, 'others')
  const noted: { event: string; facts: unknown }[] = []
  const clock = movableClock(Date.UTC(2026, 10, 22, 12))
  const { durability = 'disk', timeout = 2000, ...rest } = parts
  const trail = openTrail(
    { folder, durability, timeout },
    {
      clock,
      bodyKey: 'k',
      recorder: { note: (_, event, facts) => void noted.push({ event, facts }) },
      ...rest,
    },
  )
  onTestFinished(() => trail.close())
  return { folder, trail, clock, noted, events: () => noted.map(({ event }) => event) }
}

/**
 * Whatever the writing thread does from now on, nobody learns of it until the returned function is called. All records so
 * far must be durable.
 */
function freeze(trail: OpenTrail): () => void {
  const written = Object.getOwnPropertyDescriptor(RecordRing.prototype, 'written')
  const positions = new WeakMap<RecordRing, number>()
  const spies = (['durable', 'written'] as const).map((progress) =>
    vi.spyOn(RecordRing.prototype, progress, 'get').mockImplementation(function (this: RecordRing) {
      const position = positions.get(this) ?? (written?.get?.call(this) as number)
      positions.set(this, position)
      return position
    }),
  )
  expect(trail.state.queue).toBe(0)
  const thaw = (): void => spies.forEach((spy) => spy.mockRestore())
  onTestFinished(thaw)
  return () => {
    thaw()
    trail.note(NOTE) // so that the thread tells how far it is
  }
}

const eventsIn = (folder: string): readonly string[] => readTrail(folder).map(({ event }) => event)

describe('C12.4.1 a segment', () => {
  it('is a file of its day that only its owner can read, and each record is chained to the one before', async () => {
    const { folder, trail } = await opened()
    const seq = await trail.require(INTENT)
    await trail.settle({ ...OUTCOME, intent: seq })
    await trail.close()
    const [name = ''] = readdirSync(join(folder, '2026-11-22'))
    expect(name).toMatch(new RegExp(`^${trail.writer}\\.1\\.`))
    expect(statSync(join(folder, '2026-11-22')).mode & 0o777).toBe(0o700)
    for (const file of readdirSync(join(folder, '2026-11-22')))
      expect(statSync(join(folder, '2026-11-22', file)).mode & 0o777).toBe(0o600)
    expect(readTrail(folder)).toMatchObject([
      { v: 1, writer: trail.writer, seq: 1, event: 'writer.opened' },
      { seq: 2, event: 'call.intended' },
      { seq: 3, event: 'call.settled', intent: 2 },
      { seq: 4, event: 'writer.closed' },
    ])
    const last = readTrail(folder).at(-1)
    expect(trail.head).toEqual({ seq: 4, hash: last?.hash })
  })

  it('C12.4.1 names the node that wrote it in its first record, where several nodes share a store', async () => {
    const { folder, trail } = await opened({ segmentBytes: 1000, node: 'n1' })
    for (let count = 0; count < 4; count += 1) await trail.require(INTENT)
    await trail.close()
    const begins = readTrail(folder).filter(({ event }) => event === 'writer.opened')
    expect(begins.length).toBeGreaterThan(1)
    for (const { change } of begins) expect(change).toMatchObject({ node: 'n1' })
    expect(begins[0]?.change).toEqual({ node: 'n1' })
  })

  it('is made only when there is something to record', async () => {
    const { folder, trail } = await opened()
    await trail.close()
    expect(segmentsOf(folder).size).toBe(0)
    expect(trail.head).toEqual({ seq: 0, hash: '' })
  })

  it('ends when it is full and at midnight; the next one names its last record', async () => {
    const { folder, trail, clock } = await opened({ segmentBytes: 1000 })
    for (let count = 0; count < 8; count += 1) await trail.require(INTENT)
    clock.advance(12 * 3_600_000)
    await trail.require(NOTE)
    await trail.close()
    const [segments = []] = segmentsOf(folder).values()
    expect(segments.length).toBeGreaterThan(3)
    expect(segments.map(({ number }) => number)).toEqual(segments.map((_, index) => index + 1))
    expect(segments.at(-1)?.name).toMatch(/^2026-11-23\//)
    expect(segments.at(-2)?.name).toMatch(/^2026-11-22\//)
    for (const [index, { records }] of segments.entries()) {
      const { seq, hash, writer } = segments[index - 1]?.records.at(-1) ?? {}
      expect(records[0]?.event).toBe('writer.opened')
      expect(records[0]?.change).toEqual(index === 0 ? undefined : { before: { writer, seq, hash } })
    }
    expect(readTrail(folder)).toHaveLength(8 + 1 + 1 + segments.length)
  })

  it('is opened for nobody else: a file of its name is left as it is', async () => {
    const { folder, trail, clock } = await opened()
    await trail.require(INTENT)
    clock.advance(24 * 3_600_000)
    const taken = join(folder, '2026-11-23', `${trail.writer}.2.jsonl`)
    await prepareAuditFolder(join(folder, '2026-11-23'), 'others')
    writeFileSync(taken, '')
    await trail.require(INTENT)
    await trail.close()
    expect(readFileSync(taken, 'utf8')).toBe('')
    rmSync(taken)
    expect(readTrail(folder)).toHaveLength(5)
  })

  it('two equal records of one millisecond are two records', async () => {
    const { folder, trail } = await opened()
    const seqs = await Promise.all([trail.require(INTENT), trail.require(INTENT)])
    expect(seqs).toEqual([2, 3])
    const records = readTrail(folder).slice(1)
    expect(new Set(records.map(({ hash }) => hash)).size).toBe(2)
    expect(new Set(records.map((record) => record['time'])).size).toBe(1)
  })
})

describe('C12.4.2 the thread of the trail', () => {
  it.each(['disk', 'system'] as const)('keeps the order of thousands of records (%s)', async (durability) => {
    const { folder, trail } = await opened({ durability })
    const all = Array.from({ length: 3000 }, (_, index) => ({ ...INTENT, requestId: `r${index}` }))
    const seqs: number[] = []
    for (let start = 0; start < all.length; start += 500)
      seqs.push(...(await Promise.all(all.slice(start, start + 500).map((entry) => trail.require(entry)))))
    await trail.close()
    const records = readTrail(folder)
    expect(seqs).toEqual(all.map((_, index) => index + 2))
    expect(records.slice(1, -1).map(({ requestId }) => requestId)).toEqual(
      all.map(({ requestId }) => requestId),
    )
  })

  it('writes records of every size, whole', async () => {
    const { folder, trail } = await opened()
    const change = (length: number) => ({ rows: Array.from({ length }, () => '𝄞'.repeat(60)) })
    for (let count = 0; count < 120; count += 1)
      await trail.require({ ...INTENT, change: change(count % 2 === 0 ? 130 : count) })
    await trail.close()
    expect(readTrail(folder)).toHaveLength(122)
  })

  it('syncs what nobody waits for within a second', async () => {
    const { trail } = await opened()
    trail.note(NOTE)
    await eventually(() => expect(trail.head.seq).toBe(2))
  })
})

describe('C12.1.2 waiting for the trail', () => {
  it('ends with audit_unavailable after the timeout, and no sooner', async () => {
    const timers = manualAfter()
    const { trail, clock } = await opened({ after: timers.after })
    await trail.require(INTENT)
    freeze(trail)
    const outcome = trail.require(INTENT).then(
      () => 'recorded',
      (fault: unknown) => fault,
    )
    clock.advance(1999)
    await timers.fire()
    expect(timers.delays()).toEqual([1])
    clock.advance(1)
    await timers.fire()
    expect(await outcome).toMatchObject({ code: 'audit_unavailable', facts: { retryAfter: 1 } })
  })

  it('ends at once where 1 MiB of records waits; what has happened has room still', async () => {
    const { trail, noted } = await opened()
    await trail.require(INTENT)
    const thaw = freeze(trail)
    const wide = { ...INTENT, change: { rows: Array.from({ length: 100 }, () => 'x'.repeat(250)) } }
    const waiting: Promise<unknown>[] = []
    for (let count = 0; count < 45; count += 1)
      waiting.push(trail.require(wide).catch((fault: unknown) => fault))
    await expect(trail.require(wide)).rejects.toMatchObject({ code: 'audit_unavailable' })
    trail.note(wide)
    expect(trail.state).toMatchObject({ dropped: 1, writable: true })
    expect(trail.state.queue).toBeGreaterThan(900 * 1024)
    const settled = trail.settle(OUTCOME)
    thaw()
    await settled
    await Promise.all(waiting)
    expect(noted).toEqual([])
  })
})

describe('C12.1.3 an intent that was refused since it came late', () => {
  it('is settled as refused when it is written all the same', async () => {
    const timers = manualAfter()
    const { folder, trail, clock } = await opened({ after: timers.after })
    await trail.require(INTENT)
    const thaw = freeze(trail)
    const refused = trail.require({ ...INTENT, requestId: 'late' }).catch((fault: unknown) => fault)
    clock.advance(2000)
    await timers.fire()
    expect(await refused).toMatchObject({ code: 'audit_unavailable' })
    expect(trail.state.held).toBe(1)
    thaw()
    await eventually(() => expect(trail.state.held).toBe(0))
    await trail.close()
    expect(readTrail(folder).find(({ intent }) => intent === 3)).toMatchObject({
      event: 'call.settled',
      outcome: 'refused',
      reason: 'audit_unavailable',
      requestId: 'late',
    })
    expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual(['r'])
  })

  it('C12.1.6 stays open where the call went on without it', async () => {
    const timers = manualAfter()
    const { folder, trail, clock } = await opened({ after: timers.after })
    await trail.require(INTENT)
    const thaw = freeze(trail)
    const entry = { ...INTENT, requestId: 'late' }
    const missing = trail.require(entry, { goesOn: true }).catch((fault: unknown) => fault)
    clock.advance(2000)
    await timers.fire()
    expect(await missing).toMatchObject({ code: 'audit_unavailable' })
    thaw()
    await eventually(() => expect(trail.state.held).toBe(0))
    await trail.close()
    expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual(['r', 'late'])
  })
})

describe('C12.1.2 what is late and what is lost', () => {
  /** A record that is late, while the disk hangs. */
  async function late(parts: Partial<WritingParts> = {}) {
    const timers = manualAfter()
    const made = await opened({ after: timers.after, ...parts })
    await made.trail.require(INTENT)
    const thaw = freeze(made.trail)
    const refused = made.trail
      .require({ ...INTENT, requestId: 'late' })
      .catch((thrown: unknown) => (thrown as Fault).facts)
    void made.trail.keep(TAKEN)
    made.clock.advance(2000)
    await timers.fire()
    return { ...made, timers, thaw, refused }
  }

  it('are told apart: the fault says whether the record may still be written', async () => {
    const { refused } = await late()
    expect(await refused).toMatchObject({ late: true, retryAfter: 1 })
    const failing = vi.spyOn(RecordRing.prototype, 'failing', 'get').mockReturnValue(true)
    const { trail } = await opened()
    const lost = await trail.require(INTENT).catch((thrown: unknown) => (thrown as Fault).facts)
    failing.mockRestore()
    expect(lost).toEqual({ detail: 'the audit trail cannot be written', retryAfter: 1 })
  })

  it('C12.1.3 that comes before the trail is closed leaves no open intent, and nothing is told to be lost', async () => {
    const { trail, folder, events, thaw, refused } = await late()
    await refused
    const closed = trail.close()
    thaw()
    await closed
    expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual(['r'])
    expect(eventsIn(folder)).toContain('revocation.ordered')
    expect(events()).toEqual(['audit_held'])
  })

  it('is told to be lost where the trail ends without it', async () => {
    const { trail, clock, noted, timers } = await late()
    const closed = trail.close()
    clock.advance(2000)
    await timers.fire()
    await closed
    expect(noted.map(({ event }) => event)).toEqual(['audit_held', 'audit_lost'])
    expect(noted[1]?.facts).toMatchObject({ record: { event: 'revocation.ordered' } })
  })

  it('is counted from when the segment stands: to open one takes several syncs', async () => {
    const timers = manualAfter()
    const steps = vi.spyOn(RecordRing.prototype, 'steps', 'get').mockReturnValue(0)
    onTestFinished(() => steps.mockRestore())
    const { trail, clock } = await opened({ after: timers.after })
    const thaw = freeze(trail)
    const recorded = trail.require(INTENT)
    clock.advance(1999)
    steps.mockReturnValue(1)
    await timers.fire()
    clock.advance(1)
    await timers.fire()
    expect(timers.delays()).toEqual([1999])
    thaw()
    expect(await recorded).toBe(2)
  })

  it('is no record that is durable, though a busy process has not heard of it', async () => {
    const timers = manualAfter()
    const { trail, clock } = await opened({ after: timers.after })
    await trail.require(INTENT)
    const thaw = freeze(trail)
    const recorded = trail.require(INTENT)
    await eventually(() => expect(trail.head.seq).toBe(3))
    thaw()
    clock.advance(2000)
    await timers.fire()
    expect(await recorded).toBe(3)
  })
})

describe('C12.1.3 the open intents of a process', () => {
  it('are counted: a call until its outcome or its open websocket, and no other record', async () => {
    const { trail } = await opened()
    const call = await trail.require(INTENT)
    const websocket = await trail.require(INTENT)
    const given = await trail.require({ ...OUTCOME, event: 'token.issued' })
    expect(trail.state.openIntents).toBe(2)
    trail.note({ ...OUTCOME, event: 'call.body_ended', intent: call })
    await trail.settle({ ...OUTCOME, event: 'token.issued', outcome: 'failed', intent: given })
    expect(trail.state.openIntents).toBe(2)
    trail.note({ ...OUTCOME, event: 'tunnel.opened', intent: websocket })
    trail.note({ ...OUTCOME, event: 'tunnel.closed', intent: websocket })
    expect(trail.state.openIntents).toBe(1)
    await trail.settle({ ...OUTCOME, intent: call })
    expect(trail.state.openIntents).toBe(0)
  })
})

describe('C12.1.4 what was taken away', () => {
  it('is logged and held while it cannot be written, and written then', async () => {
    const timers = manualAfter()
    const { folder, trail, clock, events, noted } = await opened({ after: timers.after })
    await trail.require(INTENT)
    const thaw = freeze(trail)
    void trail.keep(TAKEN)
    clock.advance(2000)
    await timers.fire()
    expect(events()).toEqual(['audit_held'])
    expect(noted[0]?.facts).toMatchObject({ record: { event: 'revocation.ordered' } })
    expect(trail.state.held).toBe(1)
    thaw()
    await eventually(() => expect(trail.state.held).toBe(0))
    expect(eventsIn(folder)).toContain('revocation.ordered')
  })

  it('is held up to 1 MiB beyond what waits otherwise; what is more is logged and counted', async () => {
    const timers = manualAfter()
    const { trail, events } = await opened({ after: timers.after })
    await trail.require(INTENT)
    freeze(trail)
    const wide = { ...TAKEN, change: { rows: Array.from({ length: 100 }, () => 'x'.repeat(250)) } }
    for (let count = 0; count < 85; count += 1) void trail.keep(wide)
    const { dropped } = trail.state
    expect(dropped).toBeGreaterThan(0)
    expect(dropped).toBeLessThan(10)
    expect(events()).toEqual(Array.from({ length: dropped }, () => 'audit_dropped'))
  })
})

describe('C12.4.3 after a failure', () => {
  /** No segment can be opened on the next day: a file stands where its folder should. */
  async function blocked() {
    const made = await opened()
    await made.trail.require(INTENT)
    const inTheWay = join(made.folder, '2026-11-23')
    writeFileSync(inTheWay, '')
    made.clock.advance(24 * 3_600_000)
    return { ...made, unblock: () => rmSync(inTheWay) }
  }
  const untilWritable = (trail: OpenTrail, writable: boolean) =>
    eventually(() => expect(trail.state.writable).toBe(writable))

  it('what would be given is refused, at once from then on; what was taken away is written first', async () => {
    const { trail, folder, events, unblock } = await blocked()
    await expect(trail.require(INTENT)).rejects.toMatchObject({ code: 'audit_unavailable' })
    expect(trail.state.writable).toBe(false)
    await expect(trail.require({ ...INTENT, requestId: 'never' })).rejects.toMatchObject({
      code: 'audit_unavailable',
    })
    void trail.keep(TAKEN)
    await trail.settle(OUTCOME)
    await eventually(() => expect(events()).toContain('audit_unwritable'))
    expect(events()).toContain('audit_held')
    unblock()
    await untilWritable(trail, true)
    await eventually(() => expect(events()).toContain('audit_writable'))
    await trail.require({ ...INTENT, requestId: 'after' })
    await trail.close()
    expect(eventsIn(folder)).toEqual([
      'writer.opened',
      'call.intended',
      'writer.opened',
      'call.intended',
      'revocation.ordered',
      'call.settled',
      'call.settled',
      'call.intended',
      'writer.closed',
    ])
    expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual(['r', 'after'])
    expect(events().filter((event) => event === 'audit_writable')).toHaveLength(1)
    expect(readTrail(folder).map(({ requestId }) => requestId)).not.toContain('never')
  })

  it('the service still ends', async () => {
    const { trail } = await blocked()
    await expect(trail.require(INTENT)).rejects.toMatchObject({ code: 'audit_unavailable' })
    await trail.close()
    await expect(trail.require(INTENT)).rejects.toMatchObject({ code: 'audit_unavailable' })
  })
})

describe('C12.4.1 the folder of the trail', () => {
  it('T7 is refused if other users may write to it, or it cannot be used', async () => {
    const folder = await dataFolder()
    chmodSync(folder, 0o770)
    await expect(prepareAuditFolder(folder, 'others')).rejects.toThrow(
      /can be written by other users \(mode 0770\)/,
    )
    chmodSync(folder, 0o777)
    await expect(prepareAuditFolder(folder, 'others')).rejects.toThrow(`Run chmod 700 ${folder}.`)
    chmodSync(folder, 0o700)
    writeFileSync(join(folder, 'file'), '')
    for (const wrong of ['file', 'file/below'])
      await expect(prepareAuditFolder(join(folder, wrong), 'others')).rejects.toMatchObject({
        name: 'AuditFolderError',
      })
  })

  it('is made for its owner alone', async () => {
    const folder = join(await dataFolder(), 'made', 'audit')
    await prepareAuditFolder(folder, 'others')
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })
})
