import { describe, expect, it } from 'vitest'
import { Buckets, compileRate, rateHeaders } from '../../../src/gateway/limits/buckets.ts'

/** Ten calls a second, twenty at once. */
const RATE = compileRate({ requests: 10, per: 1000, burst: 20 })

const takeAll = (buckets: Buckets, key: string, now: number): number => {
  let taken = 0
  while (buckets.take(key, RATE, now) >= 0) taken += 1
  return taken
}

describe('token buckets', () => {
  it('C4.5 let a burst in, then the rate, and tell how long to wait', () => {
    const buckets = new Buckets(100, false)
    expect(buckets.take('a', RATE, 0)).toBe(19)
    expect(takeAll(buckets, 'a', 0)).toBe(19)
    expect(buckets.take('a', RATE, 0)).toBe(-100)
    expect(buckets.take('a', RATE, 40)).toBeCloseTo(-60)
    expect(buckets.take('a', RATE, 100)).toBeCloseTo(0)
    expect(takeAll(buckets, 'a', 1100)).toBe(10)
  })

  it('C4.5 let in exactly the rate over a long time, however often they are asked', () => {
    const buckets = new Buckets(100, false)
    let taken = 0
    for (let now = 0; now <= 100_000; now += 7) if (buckets.take('a', RATE, now) >= 0) taken += 1
    expect(taken).toBe(20 + 999)
  })

  it('C14.1 tell what the next call would be answered, and take nothing', () => {
    const buckets = new Buckets(100, true)
    expect([buckets.peek('a', RATE, 0), buckets.size]).toEqual([19, 0])
    for (const now of [0, 10, 500]) {
      takeAll(buckets, 'a', now)
      const foretold = [buckets.peek('a', RATE, now + 60), buckets.peek('a', RATE, now + 60)]
      expect(foretold[0]).toBeCloseTo(buckets.take('a', RATE, now + 60))
      expect(foretold[1]).toBe(foretold[0])
    }
    expect(buckets.takeUnreported(() => 0).keys).toEqual(['a'])
  })

  it('C4.5 keep keys apart', () => {
    const buckets = new Buckets(100, false)
    takeAll(buckets, 'a', 0)
    expect(buckets.take('b', RATE, 0)).toBe(19)
  })

  it('forget a key that is at rest', () => {
    const buckets = new Buckets(100, false)
    for (let at = 0; at < 50; at++) buckets.take(`k${at}`, RATE, 0)
    buckets.sweep(1000, 50)
    expect(buckets.size).toBe(50)
    buckets.sweep(1000, 100)
    expect(buckets.size).toBe(0)
  })

  it('T5.8 stay bounded after 100,000 keys, and keep the budget of one that is calling', () => {
    const buckets = new Buckets(1000, true)
    for (let at = 0; at < 100_000; at++) {
      buckets.take(`k${at}`, RATE, at / 10)
      expect(buckets.size).toBeLessThanOrEqual(1000)
    }
    const one = new Buckets(1000, false)
    for (let at = 0; at < 500; at++) one.take(`k${at}`, RATE, 0)
    takeAll(one, 'busy', 0)
    for (let at = 0; at < 10_000; at++) one.take(`later${at}`, RATE, 200 + at / 100)
    expect(one.size).toBeLessThanOrEqual(1000)
    expect(one.take('busy', RATE, 300)).toBeCloseTo(2)
  })

  it('tell what was let in since the last time, once, refusals not counted', () => {
    const buckets = new Buckets(100, true)
    takeAll(buckets, 'a', 0)
    buckets.take('b', RATE, 0)
    expect(buckets.takeUnreported(() => 0)).toEqual({ keys: ['a', 'b'], counts: [20, 1] })
    expect(buckets.takeUnreported(() => 0)).toEqual({ keys: [], counts: [] })
    buckets.take('b', RATE, 0)
    expect(buckets.takeUnreported(() => 1)).toEqual({ keys: [], counts: [] })
  })

  it('pay back by waiting what others let in too', () => {
    const buckets = new Buckets(100, true)
    takeAll(buckets, 'a', 0)
    buckets.charge('a', RATE, 20, 0)
    expect(buckets.take('a', RATE, 0)).toBe(-2100)
    expect(buckets.take('a', RATE, 2100)).toBeCloseTo(0)
  })
})

describe('RateLimit headers', () => {
  it('C4.5 tell the policy, what is left of it, and when it is whole again', () => {
    expect(rateHeaders(RATE, 4.7)).toEqual({
      RateLimit: '"client";r=4;t=2',
      'RateLimit-Policy': '"client";q=10;w=1',
    })
  })

  it('C4.5 promise no more than the policy, whatever the burst', () => {
    expect(rateHeaders(RATE, 20).RateLimit).toBe('"client";r=10;t=0')
  })

  it('C4.5 tell a refused client when its next call may come', () => {
    expect(rateHeaders(RATE, -2100).RateLimit).toBe('"client";r=0;t=3')
    expect(rateHeaders(compileRate({ requests: 100, per: 60_000 }), -600)).toEqual({
      RateLimit: '"client";r=0;t=1',
      'RateLimit-Policy': '"client";q=100;w=60',
    })
  })
})
