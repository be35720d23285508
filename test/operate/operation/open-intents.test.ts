import { describe, expect, it } from 'vitest'
import { type AuditEntry, NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { OpenIntents } from '../../../src/operate/operation/open-intents.ts'
import { manualAfter } from '../../support/manual-after.ts'

const ADMIN = { operator: 'admin', via: '127.0.0.1', channel: 'admin' } as const
const ADDED = { event: 'client.added', on: { kind: 'client', id: 'tally' } } as const

function opened() {
  const kept: Pick<AuditEntry, 'outcome' | 'intent'>[] = []
  const keep = ({ outcome, intent }: AuditEntry) =>
    kept.push({ outcome, ...(intent !== undefined && { intent }) })
  const audit = {
    ...NO_TRAIL,
    require: (entry: AuditEntry) => Promise.resolve(keep(entry)),
    settle: (entry: AuditEntry) => Promise.resolve(void keep(entry)),
  }
  const timers = manualAfter()
  return { kept, timers, intents: new OpenIntents(audit, timers.after) }
}

const FAILED = [{ outcome: 'pending' }, { outcome: 'failed', intent: 1 }]

describe('C12.1.7 an intent that is recorded before a secret is shown', () => {
  it('has the outcome of the order that names it, which records no other', async () => {
    const { kept, intents, timers } = opened()
    const id = await intents.begin(ADDED, ADMIN)
    expect(await intents.take(id, ADDED, ADMIN).carryOut(() => Promise.resolve('stored'))).toBe('stored')
    expect(kept).toEqual([{ outcome: 'pending' }, { outcome: 'success', intent: 1 }])
    expect(timers.delays()).toEqual([])
  })

  it('is closed after a minute without one, when it is withdrawn, and at the end', async () => {
    for (const close of ['minute', 'withdrawn', 'end'] as const) {
      const { kept, intents, timers } = opened()
      const id = await intents.begin(ADDED, ADMIN)
      expect(timers.delays()).toEqual([60_000])
      if (close === 'minute') await timers.fire()
      else if (close === 'withdrawn') await intents.withdraw(id)
      await intents.close()
      expect(kept).toEqual(FAILED)
      expect(() => intents.take(id, ADDED, ADMIN)).toThrow('nothing was changed')
    }
  })

  it('T7 is no intent of another order, nor of another operator', async () => {
    const { intents } = opened()
    const id = await intents.begin(ADDED, ADMIN)
    const other = { ...ADDED, on: { kind: 'client', id: 'other' } }
    expect(() => intents.take(id, other, ADMIN)).toThrow('nothing was changed')
    expect(() => intents.take(id, ADDED, { ...ADMIN, operator: 'ann' })).toThrow('nothing was changed')
  })
})
