/** The records of workers, which the supervisor writes (C12.4.2). */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { RecordRing } from '../../../src/extensions/audit/queue/record-ring.ts'
import { openTrail } from '../../../src/extensions/audit/write/writing-trail.ts'
import { openIntents, readTrail } from './support/audit-chain.ts'
import {
  freeze,
  NOTE,
  openSupervisor,
  openWorker,
  requestsIn,
  TAKEN,
  WIDE,
} from './support/worker-records.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { changeOf, outcomeOf, segmentNames } from './support/recorded-trail.ts'

describe('C12.4.2 the records of workers', () => {
  it('C12.4.1 stand in one chain with those of the supervisor, each with its `seq` there and its values', async () => {
    const { folder, trail, addWorker, ...recording } = await openSupervisor()
    const [one, other] = [await addWorker(), await addWorker()]
    const seqs = new Map<string, number>()
    const callers = [one.trail, other.trail, trail].map(async (by, at) => {
      for (let count = 0; count < 30; count += 1) {
        const subject = `${at}-${count}`
        const seq = await by.require(changeOf(subject))
        seqs.set(`request of ${subject}`, seq)
        await by.settle(outcomeOf(subject, seq))
      }
    })
    await Promise.all(callers)
    for (const worker of [one, other]) await worker.trail.close()
    await recording.close()
    const records = readTrail(folder)
    const intents = records.filter(({ outcome }) => outcome === 'pending')
    expect(new Map(intents.map(({ requestId = '', seq }) => [requestId, seq]))).toEqual(seqs)
    expect(new Set(records.map(({ writer }) => writer)).size).toBe(1)
    expect(openIntents(folder)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, records: 182, unsigned: 0 })
  })

  it('C12.4.2 arrive whole where the way gives them in single bytes', async () => {
    const { folder, trail } = await openSupervisor()
    const { trail: worker, end } = await openWorker()
    const records = new Readable({ read: () => undefined })
    end.records.on('data', (bytes: Buffer) => {
      for (const byte of bytes) records.push(Buffer.of(byte))
    })
    const progress = new Writable({
      write: (bytes: Buffer, _, done) => {
        for (const byte of bytes) end.progress.write(Buffer.of(byte))
        done()
      },
    })
    trail.take({ records, progress })
    for (const subject of ['ann', 'bjørn']) {
      const seq = await worker.require(changeOf(subject))
      await worker.settle(outcomeOf(subject, seq))
    }
    expect(requestsIn(folder)).toEqual(['ann', 'ann', 'bjørn', 'bjørn'].map((each) => `request of ${each}`))
  })

  it('C12.4.2 wait on their way where those that are not durable fill their part of the ring, and go on then', async () => {
    const { folder, trail, addWorker } = await openSupervisor()
    await trail.require(NOTE)
    const { trail: worker, end } = await addWorker()
    const thaw = freeze()
    const waiting = Array.from({ length: 35 }, (_, at) => worker.require({ ...changeOf(`${at}`), ...WIDE }))
    await eventually(() => expect(end.records.isPaused()).toBe(true))
    // The supervisor has room for its own.
    const own = Array.from({ length: 10 }, (_, at) => trail.require({ ...changeOf(`own ${at}`), ...WIDE }))
    thaw()
    trail.note(NOTE)
    const seqs = await Promise.all(waiting)
    await Promise.all(own)
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
    await eventually(() => expect(end.records.isPaused()).toBe(false))
    await worker.require(changeOf('after'))
    const requests = requestsIn(folder).filter((each) => !each.includes('own'))
    expect(requests).toEqual([...waiting.keys(), 'after'].map((each) => `request of ${each}`))
  })

  it('C12.4.2 that wait when a worker closes its trail are written before that is closed', async () => {
    const { folder, trail } = await openSupervisor()
    const { trail: worker, end, noted } = await openWorker()
    for (const subject of ['ann', 'bob']) worker.note({ ...NOTE, requestId: subject })
    const required = worker.require(changeOf('cyd'))
    let isClosed = false
    const closed = worker.close().then(() => (isClosed = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(isClosed).toBe(false)
    trail.take(end)
    await closed
    expect(await required).toBe(4)
    expect(requestsIn(folder)).toEqual(['ann', 'bob', 'request of cyd'])
    await eventually(() => expect(end.records.closed).toBe(true))
    expect(noted).toEqual([])
    await expect(worker.require(NOTE)).rejects.toMatchObject({ code: 'audit_unavailable' })
  })

  it('C12.4.2 that nobody waits for keep the process of a worker alive while its trail is closed', async () => {
    const { trail } = await openSupervisor()
    const { trail: worker, end, way } = await openWorker()
    const [ref, unref] = [vi.spyOn(way.progress, 'ref'), vi.spyOn(way.progress, 'unref')]
    worker.note(NOTE)
    const closed = worker.close()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ref.mock.invocationCallOrder.at(-1)).toBeGreaterThan(unref.mock.invocationCallOrder.at(-1) ?? 0)
    trail.take(end)
    await closed
    expect(trail.state.queue).toBe(0)
  })

  it('C12.4.1 get the day of the segment where one of the next day came before them, at most 10 s later', async () => {
    const midnight = Date.UTC(2026, 10, 23)
    const { folder, trail, addWorker, ...recording } = await openSupervisor(midnight + 100)
    const [behind, far] = [
      await addWorker(movableClock(midnight - 300)),
      await addWorker(movableClock(midnight - 20_000)),
    ]
    await trail.require({ ...NOTE, requestId: 'first' })
    await behind.trail.require({ ...NOTE, requestId: 'behind' })
    await far.trail.require({ ...NOTE, requestId: 'far' })
    await trail.require({ ...NOTE, requestId: 'last' })
    await recording.close()
    const times = readTrail(folder).flatMap(({ requestId, ...each }) =>
      requestId ? [[requestId, each['time']]] : [],
    )
    expect(times).toEqual([
      ['first', '2026-11-23T00:00:00.100Z'],
      ['behind', '2026-11-23T00:00:00.100Z'],
      ['far', '2026-11-22T23:59:40.000Z'],
      ['last', '2026-11-23T00:00:00.100Z'],
    ])
    expect(segmentNames(folder).map((name) => name.slice(0, 10))).toEqual([
      '2026-11-23',
      '2026-11-22',
      '2026-11-23',
    ])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
  })
})

describe('C12.1.2 waiting for the supervisor', () => {
  it('C12.1.2 `require` waits until its record is durable, `settle` until it is written', async () => {
    const { trail, addWorker } = await openSupervisor()
    const { trail: worker } = await addWorker()
    await worker.require(NOTE)
    const durable = vi.spyOn(RecordRing.prototype, 'durable', 'get').mockReturnValue(0)
    onTestFinished(() => durable.mockRestore())
    let isDurable = false
    const required = worker.require(changeOf('ann')).then((seq) => {
      isDurable = true
      return seq
    })
    await worker.settle({ ...NOTE, requestId: 'written' })
    expect(isDurable).toBe(false)
    durable.mockRestore()
    trail.note(NOTE)
    expect(await required).toBe(3)
  })

  it('C12.1.2 ends after the timeout where it hangs; the record is undone if it is written after all', async () => {
    const { folder, trail, clock, ...recording } = await openSupervisor()
    const { trail: worker, end, noted, timers } = await openWorker(clock)
    const [late, missing] = [
      worker.require(changeOf('late')).catch((thrown: unknown) => thrown as Fault),
      worker.require(changeOf('goes on'), { goesOn: true }).catch((thrown: unknown) => thrown as Fault),
    ]
    void worker.keep(TAKEN)
    clock.advance(1999)
    await timers.fire()
    expect(worker.state.held).toBe(0)
    clock.advance(1)
    await timers.fire()
    for (const fault of [await late, await missing])
      expect(fault).toMatchObject({ code: 'audit_unavailable', facts: { late: true, retryAfter: 1 } })
    expect(noted).toEqual(['audit_held'])
    expect(worker.state).toMatchObject({ held: 3, writable: true })
    trail.take(end)
    await eventually(() => expect(worker.state.held).toBe(0))
    await worker.close()
    await recording.close()
    // C12.1.3, and C12.1.6 of the call that went on without it.
    expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual(['request of goes on'])
    const records = readTrail(folder)
    const intent = records.find(({ requestId }) => requestId === 'request of late')
    expect(records.find((each) => each.intent === intent?.seq)).toMatchObject({
      ...{ event: 'call.settled', outcome: 'refused', reason: 'audit_unavailable' },
    })
    expect(records.map(({ event }) => event)).toContain('revocation.ordered')
  })

  it('C12.4.2 what waits takes 512 KiB of notes, 1 MiB with what must be waited for, 2 MiB with what has happened', async () => {
    const { folder, trail, ...recording } = await openSupervisor()
    const { trail: worker, end, noted } = await openWorker()
    const KIB = 1024
    const queue = (): number => worker.state.queue / KIB
    while (worker.state.dropped === 0) worker.note({ ...NOTE, ...WIDE })
    expect(queue()).toBeGreaterThan(480)
    expect(queue()).toBeLessThanOrEqual(512)
    const waiting: Promise<unknown>[] = []
    while (queue() < 1000)
      waiting.push(worker.require({ ...changeOf('wide'), ...WIDE }).catch((thrown: unknown) => thrown))
    await expect(worker.require({ ...changeOf('never'), ...WIDE })).rejects.toMatchObject({
      ...{ code: 'audit_unavailable', facts: { detail: 'too many records wait to be written' } },
    })
    expect(queue()).toBeLessThanOrEqual(1024)
    while (worker.state.dropped === 1) void worker.keep({ ...TAKEN, ...WIDE })
    expect(queue()).toBeGreaterThan(2000)
    expect(queue()).toBeLessThanOrEqual(2048)
    // Notes are only counted.
    expect(noted).toEqual(['audit_dropped'])
    trail.take(end)
    await Promise.all(waiting)
    await worker.close()
    await recording.close()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    expect(requestsIn(folder)).not.toContain('request of never')
  })

  it('C12.1.2 ends at once where it is gone: what must be recorded is refused, what has happened is told', async () => {
    const { addWorker } = await openSupervisor()
    const { trail: worker, end, noted } = await addWorker()
    await worker.require(NOTE)
    expect(worker.state.writable).toBe(true)
    for (const socket of [end.records, end.progress]) socket.destroy()
    await eventually(() => expect(worker.state.writable).toBe(false))
    await expect(worker.require(changeOf('ann'))).rejects.toMatchObject({
      ...{ code: 'audit_unavailable', facts: { detail: 'the audit trail cannot be written' } },
    })
    await worker.settle(outcomeOf('ann', 2))
    await worker.keep(TAKEN)
    expect(noted).toEqual(['audit_held'])
    await worker.close()
    expect(noted).toEqual(['audit_held', 'audit_lost'])
  })

  it('C12.1.2 ends at once for those who wait when it goes', async () => {
    const { trail: worker, end } = await openWorker()
    const refused = expect(worker.require(changeOf('ann'))).rejects.toMatchObject({
      ...{ code: 'audit_unavailable', facts: { detail: 'the audit trail cannot be written' } },
    })
    for (const socket of [end.records, end.progress]) socket.destroy()
    await refused
  })
})

describe('C12.4.3 where the supervisor cannot write', () => {
  it('C12.4.3 its workers refuse what must be recorded, at once from then on, until it can again', async () => {
    const { folder, clock, addWorker } = await openSupervisor(Date.UTC(2026, 10, 22, 12))
    const { trail: worker, noted } = await addWorker()
    const idle = await addWorker()
    await worker.require(changeOf('before'))
    // No segment can be opened on the next day: a file stands where its folder should.
    writeFileSync(join(folder, '2026-11-23'), '')
    clock.advance(24 * 3_600_000)
    await expect(worker.require(changeOf('late'))).rejects.toMatchObject({ code: 'audit_unavailable' })
    await eventually(() => expect([worker.state.writable, idle.trail.state.writable]).toEqual([false, false]))
    for (const { trail } of [{ trail: worker }, idle])
      await expect(trail.require(changeOf('never'))).rejects.toMatchObject({ code: 'audit_unavailable' })
    await worker.keep(TAKEN)
    expect(noted).toEqual(['audit_held'])
    rmSync(join(folder, '2026-11-23'))
    await eventually(() => expect([worker.state.writable, idle.trail.state.writable]).toEqual([true, true]))
    await eventually(() => expect(worker.state.held).toBe(0))
    await worker.require(changeOf('after'))
    await eventually(() =>
      expect(openIntents(folder).map(({ requestId }) => requestId)).toEqual([
        'request of before',
        'request of after',
      ]),
    )
    expect(requestsIn(folder)).not.toContain('request of never')
    expect(readTrail(folder).map(({ event }) => event)).toContain('revocation.ordered')
  })

  it('C12.4.4 since its first line cannot be signed yet, workers refuse at once, and go on when it is', async () => {
    const folder = await dataFolder()
    const clock = movableClock()
    const recorder = { note: () => undefined }
    const begun = Promise.withResolvers<undefined>()
    const trail = openTrail(
      { folder, durability: 'disk', timeout: 2000 },
      { clock, recorder, bodyKey: 'k', begun: begun.promise },
    )
    onTestFinished(() => trail.close())
    const { trail: worker, end } = await openWorker(clock)
    trail.take(end)
    await eventually(() => expect(worker.state.writable).toBe(false))
    await expect(worker.require(changeOf('never'))).rejects.toMatchObject({ code: 'audit_unavailable' })
    expect(segmentNames(folder)).toEqual([])
    begun.resolve(undefined)
    await eventually(() => expect(worker.state.writable).toBe(true))
    expect(await worker.require(changeOf('ann'))).toBe(2)
  })
})

describe('C12.1.3 the open intents of a worker that ends', () => {
  it('C12.1.3 are counted when all that it has sent is durable, also those of calls that went on', async () => {
    const { trail, addWorker, left } = await openSupervisor()
    const { trail: worker, way } = await addWorker()
    const other = await addWorker()
    const [settled, tunnel, body] = [
      await worker.require(changeOf('settled')),
      await worker.require(changeOf('tunnel')),
      await worker.require(changeOf('body')),
    ]
    await worker.require(changeOf('goes on'), { goesOn: true })
    await other.trail.require(changeOf('of another one'))
    await worker.settle(outcomeOf('settled', settled))
    worker.note({ ...outcomeOf('tunnel', tunnel), event: 'tunnel.opened' })
    worker.note({ ...outcomeOf('body', body), event: 'call.body_ended' })
    await worker.require(NOTE)
    expect(worker.state.openIntents).toBe(2)
    expect(left).toEqual([])
    for (const socket of [way.records, way.progress]) socket.destroy()
    await eventually(() => expect(left).toEqual([2]))
    // Nobody counts them again.
    await trail.require(NOTE)
    await other.trail.close()
    await eventually(() => expect(left).toEqual([2, 1]))
  })

  it('C12.1.3 are none of one that has settled all', async () => {
    const { addWorker, left } = await openSupervisor()
    const { trail: worker, end } = await addWorker()
    const seq = await worker.require(changeOf('ann'))
    await worker.settle(outcomeOf('ann', seq))
    await worker.close()
    await eventually(() => expect(end.records.closed).toBe(true))
    expect(left).toEqual([])
  })

  it('C12.1.3 are counted of a worker that was killed in the middle of a record', async () => {
    const { folder, addWorker, left } = await openSupervisor()
    const { trail: worker, way } = await addWorker()
    await worker.require(changeOf('ann'))
    way.records.end(Buffer.alloc(40, 1))
    await eventually(() => expect(left).toEqual([1]))
    expect(requestsIn(folder)).toEqual(['request of ann'])
  })
})
