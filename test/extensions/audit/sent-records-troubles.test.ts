/** The records of workers where a process or the disk has trouble (C12.1.2, C12.4.2). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { prepareRecord } from '../../../src/extensions/audit/format/record.ts'
import { ChainWriter } from '../../../src/extensions/audit/write/chain-writer.ts'
import { ArrivingProgress, LeavingRecords } from '../../../src/extensions/audit/queue/record-frames.ts'
import { RecordRing } from '../../../src/extensions/audit/queue/record-ring.ts'
import { readTrail } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { changeOf, segmentNames } from './support/recorded-trail.ts'
import {
  freeze,
  NOTE,
  openSupervisor,
  openWorker,
  requestsIn,
  TAKEN,
  WIDE,
} from './support/worker-records.ts'

const COUNT = 35
const WORKERS = 16
/** Records of all of them. */
const MOST = 800
const REQUESTS = Array.from({ length: COUNT }, (_, at) => `request of ${at}`)

/** More records than the supervisor takes at once, of a worker that nobody can be told of any more. */
async function handOver(by: Awaited<ReturnType<typeof openWorker>>): Promise<void> {
  for (let at = 0; at < COUNT; at += 1)
    void by.trail.require({ ...changeOf(`${at}`), ...WIDE }).catch(() => undefined)
  await eventually(() => expect(by.end.records.isPaused()).toBe(true))
}

describe('C12.4.2 what a worker has handed over', () => {
  it('C12.4.2 stands before the end of the trail, also where it had to wait for room', async () => {
    const { folder, trail, addWorker, ...recording } = await openSupervisor()
    await trail.require(NOTE)
    const thaw = freeze()
    await handOver(await addWorker())
    const closed = recording.close()
    thaw()
    trail.note(NOTE)
    await closed
    const records = readTrail(folder)
    expect(records.at(-1)?.event).toBe('writer.closed')
    expect(records.filter(({ event }) => event === 'writer.closed')).toHaveLength(1)
    expect(requestsIn(folder)).toEqual(REQUESTS)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
  })

  it('C12.4.2 is written though the worker was killed, and cannot be told any more', async () => {
    const { folder, trail, addWorker, left } = await openSupervisor()
    await trail.require(NOTE)
    const thaw = freeze()
    const worker = await addWorker()
    await handOver(worker)
    await eventually(() => expect(worker.trail.state.queue).toBeGreaterThan(0))
    worker.way.progress.destroy()
    await eventually(() => expect(worker.end.progress.destroyed).toBe(true))
    worker.way.records.end()
    thaw()
    trail.note(NOTE)
    await eventually(() => expect(requestsIn(folder)).toEqual(REQUESTS))
    await eventually(() => expect(left).toEqual([COUNT]))
  })

  it('C12.4.2 waits in one buffer while the supervisor reads nothing', async () => {
    const { trail: worker, way } = await openWorker()
    const write = vi.spyOn(way.records, 'write')
    // Its bytes do not leave the process.
    way.records.cork()
    onTestFinished(() => way.records.uncork())
    for (let turn = 0; turn < 20; turn += 1) {
      worker.note({ ...NOTE, requestId: `${turn}` })
      await nextTurn()
    }
    expect(write).toHaveBeenCalledTimes(1)
  })

  it('C12.4.2 gets its part of a ring that is full, whoever else hands over much', async () => {
    const { trail } = await openSupervisor()
    const leaving = new LeavingRecords()
    const facts = { awaited: true, onlyDurable: true, time: 0, opens: false, settles: 0 }
    leaving.add(prepareRecord({ ...NOTE, ...WIDE }, 0), facts, Number.POSITIVE_INFINITY)
    const frame = leaving.take()
    const counts = Array.from({ length: WORKERS }, () => 0)
    const sum = (): number => counts.reduce((total, each) => total + each)
    for (const at of counts.keys()) {
      const told = new ArrivingProgress()
      const progress = new Writable({
        write: (bytes: Buffer, _, done) => {
          told.add(bytes)
          while (told.isWhole) {
            counts[at] = (counts[at] ?? 0) + told.count
            told.drop()
          }
          done()
        },
      })
      // Each has always more.
      const read = function (this: Readable): void {
        this.push(sum() < MOST ? frame : null)
      }
      trail.take({ records: new Readable({ read }), progress })
    }
    await eventually(() => expect(sum()).toBeGreaterThanOrEqual(MOST))
    expect(Math.min(...counts)).toBeGreaterThan(MOST / WORKERS / 2)
  })
})

describe('C12.1.2 a worker whose supervisor has trouble', () => {
  it('C12.1.2 reads what it was told before it counts a record as late', async () => {
    const clock = movableClock()
    const { trail: worker, timers } = await openWorker(clock)
    void worker.keep(TAKEN)
    clock.advance(2000)
    const fired = timers.fire()
    expect(worker.state.held).toBe(0)
    await fired
    await eventually(() => expect(worker.state.held).toBe(1))
  })

  it('C12.4.2 does not tell of records as lost that the supervisor has, and writes when it can', async () => {
    const { folder, clock, addWorker } = await openSupervisor(Date.UTC(2026, 10, 22, 12))
    const { trail: worker, noted } = await addWorker()
    await worker.require(NOTE)
    // No segment can be opened on the next day: a file stands where its folder should.
    writeFileSync(join(folder, '2026-11-23'), '')
    clock.advance(24 * 3_600_000)
    await worker.keep(TAKEN)
    await eventually(() => expect(worker.state.writable).toBe(false))
    await worker.close()
    expect(noted).toEqual(['audit_held'])
  })
})

describe('C12.4.2 a thread that is started again', () => {
  it('C12.4.1 goes on behind the last segment, and tells that it can write', async () => {
    const folder = await dataFolder()
    const ring = new RecordRing()
    // As a thread leaves it that has ended while it could not write.
    ring.setSegment(7)
    ring.setFailing(true)
    const plan = { folder, writer: 'trail', lastSegment: 0, durable: true, segmentBytes: 1_000_000 }
    const nothing = (): void => undefined
    const parts = { ring, waits: ring.unblocking, shares: true, signal: nothing, abandoned: nothing }
    const running = new ChainWriter(plan, parts).run()
    const time = Date.UTC(2026, 10, 22, 12)
    ring.put(prepareRecord(NOTE, time), { awaited: true, time, most: 1_000_000 })
    ring.end()
    await running
    expect(segmentNames(folder)).toEqual(['2026-11-22/trail.8.jsonl'])
    expect([ring.segment, ring.failing]).toEqual([8, false])
  })
})
