import { describe, expect, it } from 'vitest'
import { Buckets, compileRate } from '../../../src/gateway/limits/buckets.ts'
import { RateUsageExchange } from '../../../src/gateway/limits/rate-usage-exchange.ts'
import { TICK_MS } from '../../../src/gateway/limits/load-guard.ts'
import type { RateUsage } from '../../../src/base/contracts/calls/admission.ts'
import { fakeExchange } from '../../support/events.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import { LOAD_DEFAULTS, makeGuard } from '../../support/load.ts'

const usage = (clients: readonly string[], addresses: readonly string[] = []): RateUsage => ({
  clients: { keys: clients, counts: clients.map(() => 1) },
  addresses: { keys: addresses, counts: addresses.map(() => 2) },
})

describe('the exchange of what workers let in', () => {
  function workers(count: number) {
    const exchange = new RateUsageExchange()
    const sent = Array.from({ length: count }, () => [] as RateUsage[])
    const links = sent.map((each) => exchange.join((told) => each.push(structuredClone(told))))
    return { exchange, sent, links }
  }

  it('C4.5 sends to each worker what the others let in, once, and nothing where there is nothing', () => {
    const { exchange, sent, links } = workers(3)
    exchange.tick()
    expect(sent).toEqual([[], [], []])
    links[0]?.report(usage(['a'], ['192.0.2.1']))
    links[1]?.report(usage(['a', 'b']))
    exchange.tick()
    exchange.tick()
    const tally = (keys: readonly string[], counts: readonly number[]) => ({ keys, counts })
    expect(sent).toEqual([
      [{ clients: tally(['a', 'b'], [1, 1]), addresses: tally([], []) }],
      [{ clients: tally(['a'], [1]), addresses: tally(['192.0.2.1'], [2]) }],
      [{ clients: tally(['a', 'b'], [2, 1]), addresses: tally(['192.0.2.1'], [2]) }],
    ])
  })

  it('C4.5 goes on with addresses alone, and with as many of them as of clients', () => {
    const { exchange, sent, links } = workers(2)
    links[0]?.report(usage([], ['192.0.2.1']))
    exchange.tick()
    links[0]?.report(usage(['a'], ['192.0.2.1']))
    exchange.tick()
    expect(sent[1]).toHaveLength(2)
  })
})

describe('what a worker sends to the others', () => {
  const load = { clients: { ...LOAD_DEFAULTS.clients, rate: { requests: 10, per: 1000 } } }

  it('C4.5 leaves at every second tick, and only where there is another worker', () => {
    for (const [workers, expected] of [
      [2, [0, 1, 1, 2]],
      [1, [0, 0, 0, 0]],
    ] as const) {
      const { guard, clock, told } = makeGuard(load, { workers })
      const sent = [1, 2, 3, 4].map(() => {
        guard.admit(PRINCIPAL, fakeExchange())
        clock.advance(TICK_MS)
        guard.tick()
        return told.length
      })
      expect(sent).toEqual(expected)
    }
  })

  it('C4.5 counts nothing for clients and addresses without a rate', () => {
    const { guard } = makeGuard({}, { workers: 2 })
    guard.applyRemoteUsage(usage(['a'], ['192.0.2.1']))
    expect(guard.admit(PRINCIPAL, fakeExchange())).toBeUndefined()
    expect(guard.refuse('192.0.2.1')).toBeUndefined()
  })
})

describe('buckets of one worker, and after a reload', () => {
  const FAST = compileRate({ requests: 10, per: 1000, burst: 20 })
  const SLOW = compileRate({ requests: 1, per: 60_000, burst: 20 })

  it('C4.5 one worker keeps nothing for others', () => {
    const buckets = new Buckets(100, false)
    for (let time = 1; time <= 2; time++) {
      buckets.take('a', FAST, 0)
      expect(buckets.takeUnreported(() => 0)).toEqual({ keys: [], counts: [] })
    }
  })

  it('C4.5 a bucket is forgotten by the rate that applies now', () => {
    const buckets = new Buckets(100, false)
    buckets.take('a', FAST, 0)
    buckets.take('a', SLOW, 0)
    buckets.sweep(10, 1000)
    expect(buckets.size).toBe(1)
    buckets.sweep(10, 120_000)
    buckets.sweep(10, 120_000)
    expect(buckets.size).toBe(0)
  })
})
