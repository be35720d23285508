import { describe, expect, it } from 'vitest'
import { Shedding, TICK_MS } from '../../../src/gateway/limits/load-guard.ts'

function loop(threshold = 200) {
  const shedding = new Shedding()
  shedding.threshold = threshold
  let now = 0
  shedding.tick(now)
  /** So many turns of the loop, each of them late by so many milliseconds. */
  const turn = (count: number, late: number): void => {
    for (let at = 0; at < count; at++) shedding.tick((now += TICK_MS + late))
  }
  const refused = (calls = 1000): number => {
    let count = 0
    for (let at = 0; at < calls; at++) if (shedding.refuses()) count += 1
    return count
  }
  return { shedding, turn, refused }
}

describe('load shedding', () => {
  it('refuses nothing while the loop keeps up', () => {
    const { turn, refused } = loop()
    turn(1000, 150)
    expect(refused()).toBe(0)
  })

  it('does not shed for a pause, however long, nor for one every second', () => {
    const { turn, refused } = loop()
    turn(20, 1)
    turn(1, 10_000)
    expect(refused()).toBe(0)
    for (let second = 0; second < 60; second++) {
      turn(15, 1)
      turn(1, 600)
      expect(refused()).toBe(0)
    }
  })

  it('refuses a growing share while the loop is late, spread evenly', () => {
    const { shedding, turn, refused } = loop()
    turn(4, 300)
    expect(shedding.share).toBe(0.25)
    expect(refused()).toBe(250)
    expect([1, 2, 3, 4].map(() => shedding.refuses())).toEqual([false, false, false, true])
    turn(20, 300)
    expect(refused()).toBe(1000)
  })

  it('lets calls in again little by little, once the loop is well in time', () => {
    const { shedding, turn, refused } = loop()
    turn(10, 300)
    const { share } = shedding
    expect(share).toBeGreaterThan(0.5)
    turn(50, 150) // between half the threshold and all of it nothing changes
    expect(shedding.share).toBe(share)
    turn(20, 0)
    expect(shedding.share).toBeLessThan(share)
    expect(shedding.share).toBeGreaterThan(share / 2)
    turn(1000, 0)
    expect(shedding.share).toBe(0)
    expect(refused()).toBe(0)
  })

  it('T5.4 comes to an end: twentieths add up to nothing left', () => {
    const { shedding, turn } = loop()
    turn(4, 300)
    const shares = new Set<number>()
    // A step is made each half second: ten turns. The median is under the threshold after four of them.
    for (let step = 0; step < 10; step++) {
      turn(10, 0)
      shares.add(shedding.share)
    }
    expect([...shares].filter((share) => share > 0 && share < 0.04)).toEqual([])
    expect(shares).toContain(0)
  })

  it('settles instead of swinging where a part of the load can be served', () => {
    const { shedding, turn } = loop()
    const shares: number[] = []
    // The loop is late in proportion to what is let in: at a share of 0.4 it just keeps up.
    for (let second = 0; second < 60; second++) {
      turn(10, Math.max(0, 400 * (1 - shedding.share) - 40))
      if (second > 20) shares.push(shedding.share)
    }
    expect(Math.min(...shares)).toBeGreaterThan(0.2)
    expect(Math.max(...shares)).toBeLessThan(0.8)
  })

  it('never sheds where it is switched off', () => {
    const { turn, refused } = loop(0)
    turn(100, 5000)
    expect(refused()).toBe(0)
  })
})
