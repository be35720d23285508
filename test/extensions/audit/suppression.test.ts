import { describe, expect, it } from 'vitest'
import type { AuditEntry, RefusalRecord } from '../../../src/base/contracts/records/audit.ts'
import { Suppression } from '../../../src/extensions/audit/write/suppression.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'

const REFUSED: RefusalRecord = { event: 'call.refused', reason: 'invalid_token', address: '192.0.2.7' }

function openSuppression() {
  const records: AuditEntry[] = []
  const clock = movableClock()
  const timers = manualAfter()
  const suppression = new Suppression({
    trail: { note: (entry) => void records.push(entry) },
    clock,
    after: timers.after,
  })
  const refuse = (changes: Partial<RefusalRecord> = {}, times = 1): void => {
    const refusal = { ...REFUSED, ...changes }
    const { event, reason } = refusal
    for (let at = 0; at < times; at++)
      suppression.refuse(refusal, () => ({ event, outcome: 'refused', reason, actor: { kind: 'anonymous' } }))
  }
  const minute = (): Promise<void> => {
    clock.advance(60_000)
    return timers.fire()
  }
  const counted = () => records.filter(({ event }) => event === 'audit.suppressed')
  return { records, refuse, minute, counted, suppression }
}

describe('C12.1.5 refusals without a proven caller', () => {
  it('are recorded singly ten times a minute, then counted in one record when the minute ends', async () => {
    const { records, refuse, minute, counted } = openSuppression()
    refuse({}, 25)
    expect(records).toHaveLength(10)
    await minute()
    expect(counted()).toEqual([
      {
        event: 'audit.suppressed',
        outcome: 'refused',
        reason: 'invalid_token',
        actor: { kind: 'anonymous' },
        personal: { 'actor.address': '192.0.2.0/24' },
        change: { count: 15, event: 'call.refused' },
      },
    ])
    refuse({}, 3)
    expect(records).toHaveLength(14)
  })

  it('are told apart by event, reason and network: 24 bits of IPv4, 56 of IPv6', async () => {
    const { records, refuse, minute, counted } = openSuppression()
    refuse({}, 10)
    refuse({ address: '192.0.2.200' })
    refuse({ address: '2001:db8:1:ff01::1' }, 10)
    refuse({ address: '2001:db8:1:ff02::2' })
    refuse({ address: '192.0.3.7' })
    refuse({ reason: 'no_credentials' })
    refuse({ event: 'login.refused' })
    expect(records).toHaveLength(23)
    await minute()
    expect(counted().map(({ personal }) => personal?.['actor.address'])).toEqual([
      '192.0.2.0/24',
      '2001:db8:1:ff00::/56',
    ])
  })

  it('are recorded singly of 1,000 networks a minute; the rest is counted as one', async () => {
    const { records, refuse, minute, counted } = openSuppression()
    for (let network = 0; network < 1500; network++)
      refuse({ address: `10.${network >> 8}.${network & 255}.1` }, 2)
    expect(records).toHaveLength(2000)
    await minute()
    expect(counted()).toEqual([
      {
        event: 'audit.suppressed',
        outcome: 'refused',
        actor: { kind: 'anonymous' },
        change: { count: 1000 },
      },
    ])
  })

  it('are never more than 10,000 records a minute, however many reasons there are', async () => {
    const { records, refuse, minute, counted } = openSuppression()
    for (let network = 0; network < 1000; network++)
      for (const reason of ['no_credentials', 'invalid_token', 'other_scheme'])
        refuse({ address: `10.${network >> 8}.${network & 255}.1`, reason }, 10)
    expect(records).toHaveLength(10_000)
    await minute()
    const told = counted().map(({ change }) => Number(change?.['count']))
    expect(told.reduce((sum, count) => sum + count, 0)).toBe(20_000)
  })

  it('leave no timer and no count behind when the trail closes', async () => {
    const { records, refuse, minute, suppression, counted } = openSuppression()
    refuse({}, 11)
    suppression.end()
    expect(counted()).toMatchObject([{ change: { count: 1 } }])
    await minute()
    expect(records).toHaveLength(11)
  })
})

describe('C12.1.5 refusals of a proven caller', () => {
  it('are recorded singly 100 times a minute by client and reason, then counted for the client', async () => {
    const { records, refuse, minute, counted } = openSuppression()
    for (let at = 0; at < 150; at++) refuse({ client: 'acme-books', address: `10.0.${at}.1` })
    expect(records).toHaveLength(100)
    refuse({ client: 'ledgerline' })
    expect(records).toHaveLength(101)
    await minute()
    expect(counted()).toEqual([
      {
        event: 'audit.suppressed',
        outcome: 'refused',
        reason: 'invalid_token',
        actor: { kind: 'client', client: 'acme-books' },
        change: { count: 50, event: 'call.refused' },
      },
    ])
  })

  it('are recorded while others without one are only counted', () => {
    const { records, refuse } = openSuppression()
    for (let network = 0; network < 1100; network++)
      refuse({ address: `10.${network >> 8}.${network & 255}.1` }, 12)
    expect(records).toHaveLength(10_000)
    refuse({ client: 'acme-books' })
    expect(records).toHaveLength(10_001)
  })
})
