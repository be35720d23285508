/** Intents that processes have left open (C12.1.3): those of before a start, and those of workers that have ended. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import type { JsonObject } from '../../../src/base/http/body/json.ts'
import { leftOpen, type OpenEnd } from '../../../src/extensions/audit/read/left-open.ts'
import { countLeftOpen } from '../../../src/extensions/audit/read/read-trail.ts'
import { AbandonedIntents } from '../../../src/extensions/audit/write/abandoned.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import {
  changeOf,
  linesIn,
  outcomeOf,
  record,
  type Recording,
  segmentNames,
} from './support/recorded-trail.ts'

const question = (asked: JsonObject): AuditEntry => ({
  event: 'audit.queried',
  outcome: 'success',
  actor: { kind: 'operator' },
  change: { asked },
})

async function opened(segmentBytes?: number) {
  const folder = await dataFolder()
  const recording = await record({ folder, ...(segmentBytes !== undefined && { segmentBytes }) })
  const end = ({ trail }: Recording = recording): OpenEnd => ({
    folder,
    writer: trail.writer,
    seq: trail.head.seq,
  })
  return { ...recording, folder, end }
}

describe('C12.1.3 the intents that are open at the end of a trail', () => {
  it('C12.1.3 are those without an outcome or a tunnel; the end of a body settles none', async () => {
    const { trail, end, ...recording } = await opened()
    expect(leftOpen(end())).toBe(0)
    const seqs: number[] = []
    for (const subject of ['settled', 'open', 'body', 'tunnel'])
      seqs.push(await trail.require(changeOf(subject)))
    const [settled = 0, , body = 0, tunnel = 0] = seqs
    await trail.require(outcomeOf('settled', settled))
    await trail.require({ ...outcomeOf('body', body), event: 'call.body_ended' })
    await trail.require({ ...outcomeOf('tunnel', tunnel), event: 'tunnel.opened' })
    expect(leftOpen(end())).toBe(2)
    expect(await countLeftOpen(end())).toBe(2)
    await recording.close()
  })

  it('C12.1.3 are counted through segments, days and starts, up to the end that the trail had', async () => {
    const { folder, trail, clock, end, ...recording } = await opened(1000)
    for (const subject of ['ann', 'bob', 'cyd']) await trail.require(changeOf(subject))
    clock.advance(86_400_000)
    const late = await trail.require(changeOf('dee'))
    const before = end()
    await recording.close()
    expect(segmentNames(folder).length).toBeGreaterThan(2)
    expect(leftOpen(before)).toBe(4)
    const next = await record({ folder, clock })
    await next.trail.require(outcomeOf('dee', late))
    await next.trail.require(changeOf('eve'))
    // Records since the start are not of before.
    expect(leftOpen(before)).toBe(4)
    expect(leftOpen({ ...before, seq: next.trail.head.seq })).toBe(4)
    expect(leftOpen({ ...before, writer: 'another' })).toBe(0)
    await next.close()
  })

  it('C12.1.3 are none that somebody has asked for: all of them, and not some', async () => {
    const { trail, end, ...recording } = await opened()
    for (const subject of ['ann', 'bob']) await trail.require(changeOf(subject))
    await trail.require(question({ outcome: 'open', month: '2026-01' }))
    await trail.require(question({ outcome: 'refused' }))
    expect(leftOpen(end())).toBe(2)
    await trail.require(question({ outcome: 'open' }))
    await trail.require(changeOf('cyd'))
    expect(leftOpen(end())).toBe(1)
    await recording.close()
  })

  it('C12.4.3 are none that stand behind the record which the next segment names', async () => {
    const recording = await record({ folder: await dataFolder() })
    await recording.change('ann')
    const folder = await recording.killed()
    const [name = ''] = segmentNames(folder)
    const intent = linesIn(join(folder, name))[1] ?? ''
    appendFileSync(join(folder, name), `${intent.replace('"seq":2', '"seq":4')}\n`)
    const next = await record({ folder, clock: recording.clock })
    await next.change('bob')
    expect(leftOpen({ folder, writer: next.trail.writer, seq: next.trail.head.seq })).toBe(0)
    await next.close()
  })
})

describe('C12.1.3 the number of intents that were left open', () => {
  const END: OpenEnd = { folder: '/none', writer: 'w', seq: 7 }

  it('C12.1.3 has those of before the start a second later, and those of workers at once', async () => {
    const timers = manualAfter()
    const asked: OpenEnd[] = []
    const count = (end: OpenEnd): Promise<number> => Promise.resolve(asked.push(end) + 2)
    const abandoned = new AbandonedIntents({ after: timers.after, count })
    abandoned.countBefore(END)
    abandoned.add(2)
    expect([abandoned.number, timers.delays()]).toEqual([2, [1000]])
    await timers.fire()
    expect([abandoned.number, asked, timers.delays()]).toEqual([5, [END], []])
  })

  it('C12.1.3 begins at 0 again with a question for all open intents', async () => {
    const timers = manualAfter()
    const abandoned = new AbandonedIntents({ after: timers.after, count: () => Promise.resolve(4) })
    abandoned.add(3)
    for (const asked of [{ outcome: 'open', by: 'ann' }, { outcome: 'success' }, {}])
      abandoned.asked(question(asked))
    expect(abandoned.number).toBe(3)
    abandoned.countBefore(END)
    abandoned.asked(question({ outcome: 'open' }))
    expect(abandoned.number).toBe(0)
    // The answer had those of before the start.
    await timers.fire()
    expect(abandoned.number).toBe(0)
    abandoned.add(1)
    expect(abandoned.number).toBe(1)
  })

  it('C12.1.3 is tried again a minute later where the trail cannot be read, until it is closed', async () => {
    const timers = manualAfter()
    let fails = true
    const count = (): Promise<number> => (fails ? Promise.reject(new Error('EIO')) : Promise.resolve(4))
    const abandoned = new AbandonedIntents({ after: timers.after, count })
    abandoned.countBefore(END)
    await timers.fire()
    expect([abandoned.number, timers.delays()]).toEqual([0, [60_000]])
    fails = false
    await timers.fire()
    expect([abandoned.number, timers.delays()]).toEqual([4, []])
    fails = true
    abandoned.countBefore(END)
    abandoned.close()
    expect(timers.delays()).toEqual([])
    const reading = new AbandonedIntents({ after: timers.after, count })
    reading.countBefore(END)
    const fired = timers.fire()
    reading.close()
    await fired
    expect(timers.delays()).toEqual([])
  })
})
