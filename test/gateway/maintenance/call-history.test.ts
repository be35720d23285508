import { describe, expect, it } from 'vitest'
import { CallHistory } from '../../../src/gateway/maintenance/call-history.ts'
import { RecentCalls } from '../../../src/gateway/maintenance/recent-calls.ts'
import type { DecisionEvent } from '../../../src/base/contracts/records/recorder.ts'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { movableClock } from '../../support/movable-clock.ts'

const MINUTE = 60_000
const count = (client: string, calls: number) => ({ client, business: 'ACME', place: 'area/funds', calls })
const total = (history: CallHistory): number =>
  [...history.counts()].reduce((all, { calls }) => all + calls, 0)

describe('the history of calls', () => {
  it('C11.5.6 adds up what processes counted, and forgets it after about an hour', () => {
    const clock = movableClock()
    const history = new CallHistory(clock)
    const begin = clock.now()
    expect(history.since).toBe(begin)
    history.absorb([count('a', 2), count('b', 1)])
    history.absorb([count('a', 3)])
    expect([...history.counts()]).toEqual([count('a', 5), count('b', 1)])
    clock.advance(59 * MINUTE)
    history.absorb([count('a', 1)])
    expect(total(history)).toBe(7)
    clock.advance(10 * MINUTE)
    expect(total(history)).toBe(1)
    expect(history.since).toBeGreaterThan(begin)
    expect(clock.now() - history.since).toBeGreaterThanOrEqual(60 * MINUTE)
    clock.advance(120 * MINUTE)
    expect(total(history)).toBe(0)
  })

  it('C11.5.6 keeps 5,000 rows apart in five minutes, and adds the rest up', () => {
    const history = new CallHistory(movableClock())
    for (let n = 0; n < 6000; n += 1) history.absorb([count(`c${n}`, 1)])
    expect(total(history)).toBe(6000)
    expect([...history.counts()].length).toBe(5001)
    expect([...history.counts()].find(({ client }) => client === '')?.calls).toBe(1000)
  })
})

const principal = (clientKey: string, business?: string) =>
  ({
    clientKey,
    target: business === undefined ? undefined : { level: 'business', business },
  }) as unknown as Principal

const event = (more: Partial<DecisionEvent>) => ({ door: 'api', ...more }) as DecisionEvent

describe('calls of one process', () => {
  it('C11.5.6 are counted by client, business and area; each is told once', () => {
    const recent = new RecentCalls([{ area: 'funds' }, { area: 'funds' }, { area: 'members' }])
    const [one, other] = [principal('books', 'ACME'), principal('books', 'ACME')]
    for (const slot of [0, 1, 2]) recent.decision(event({ principal: one, slot }))
    recent.decision(event({ principal: other, slot: 0 }))
    recent.decision(event({ principal: principal('books'), slot: undefined, door: 'userinfo' }))
    recent.decision(event({ principal: undefined, slot: 2 }))
    recent.decision(event({ principal: undefined, door: 'identity' }))
    expect(recent.take()).toEqual([
      { client: 'books', business: 'ACME', place: 'area/funds', calls: 3 },
      { client: 'books', business: 'ACME', place: 'area/members', calls: 1 },
      { client: 'books', business: '', place: 'service', calls: 1 },
      { client: '', business: '', place: 'area/members', calls: 1 },
      { client: '', business: '', place: 'identity', calls: 1 },
    ])
    expect(recent.take()).toEqual([])
  })

  it('C11.5.6 of more than 5,000 clients and businesses are counted together', () => {
    const recent = new RecentCalls([{ area: 'funds' }])
    for (let n = 0; n < 5002; n += 1)
      recent.decision(event({ principal: principal(`c${n}`, 'ACME'), slot: 0 }))
    const taken = recent.take()
    expect(taken.length).toBe(5001)
    expect(taken.find(({ client }) => client === '')?.calls).toBe(2)
  })
})
