import fs, { chmodSync, readdirSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { prepareAuditFolder } from '../../../src/extensions/audit/write/folder.ts'
import { openTrail, type WritingParts } from '../../../src/extensions/audit/write/writing-trail.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import { readTrail, segmentsOf } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'

const INTENT: AuditEntry = {
  event: 'call.intended',
  outcome: 'pending',
  actor: { kind: 'operator' },
  personal: { 'actor.address': '192.0.2.1' },
}
const DONE: AuditEntry = { event: 'call.settled', outcome: 'success', actor: { kind: 'operator' } }

async function opened(parts: Partial<WritingParts> = {}) {
  const folder = await dataFolder()
  await prepareAuditFolder(folder, 'others')
  const noted: string[] = []
  const clock = movableClock(Date.UTC(2026, 10, 22, 12))
  const trail = openTrail(
    { folder, durability: 'disk', timeout: 2000 },
    { clock, bodyKey: 'k', recorder: { note: (_, event) => void noted.push(event) }, here: true, ...parts },
  )
  onTestFinished(() => trail.close())
  return { folder, trail, clock, noted }
}

/** Syncs that do not return until the function that is given back is called. */
function standingDisk(): () => void {
  const { fdatasync } = fs
  const standing: (() => void)[] = []
  const spy = vi.spyOn(fs, 'fdatasync').mockImplementation((descriptor, done) => {
    standing.push(() => fdatasync(descriptor, done))
  })
  syncBuiltinESMExports()
  const goOn = (): void => {
    spy.mockRestore()
    syncBuiltinESMExports()
    for (const sync of standing.splice(0)) sync()
  }
  onTestFinished(goOn)
  return goOn
}

describe('C12.4.2 the trail of a command, which its own thread writes', () => {
  it('C12.4.1 has its records in their order, and each is durable when it was waited for', async () => {
    const { folder, trail } = await opened()
    for (let count = 0; count < 20; count += 1) {
      const intent = await trail.require(INTENT)
      expect(trail.head.seq).toBe(intent)
      await trail.settle({ ...DONE, intent })
    }
    await trail.close()
    const events = readTrail(folder).map(({ event }) => event)
    const pairs = Array.from({ length: 20 }, () => ['call.intended', 'call.settled']).flat()
    expect(events).toEqual(['writer.opened', ...pairs, 'writer.closed'])
  })

  it('makes nothing where nothing is recorded', async () => {
    const { folder, trail } = await opened()
    await trail.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('C12.2.3 ends its segment when that is asked for, and begins another with the next record', async () => {
    const { folder, trail } = await opened()
    await trail.keep(DONE)
    await trail.roll()
    await trail.keep(DONE)
    await trail.close()
    expect([...segmentsOf(folder).values()].map((segments) => segments.length)).toEqual([2])
  })

  it('C12.1.2 refuses after its time where the disk stands, and ends when it goes on', async () => {
    const timers = manualAfter()
    const { trail, clock, noted } = await opened({ after: timers.after })
    await trail.keep(DONE)
    const goOn = standingDisk()
    const refused = trail.require(INTENT)
    const seen = expect(refused).rejects.toMatchObject({ code: 'audit_unavailable', facts: { late: true } })
    clock.advance(2000)
    await timers.fire()
    await seen
    goOn()
    await trail.close()
    expect(noted).toEqual([])
  })

  it('C12.4.3 tries again where nothing can be written, and tells that it was lost when it ends', async () => {
    const { folder, trail, noted } = await opened()
    chmodSync(folder, 0o500)
    const isRoot = process.getuid?.() === 0
    if (isRoot) fs.writeFileSync(`${folder}/2026-11-22`, '')
    await trail.keep(DONE)
    chmodSync(folder, 0o700)
    await trail.close()
    expect(noted).toContain('audit_held')
    if (isRoot) expect(noted).toContain('audit_lost')
  })
})
