import { describe, expect, it } from 'vitest'
import { Deadline } from '../../../src/gateway/upstream/connection.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'

/** A deadline whose time a test moves, and what came of it. */
function observed() {
  const clock = movableClock()
  let started = 0
  let expired = 0
  const deadline = new Deadline(
    () => (expired += 1),
    clock,
    (ms, work) => {
      started += 1
      return clock.after(ms, work)
    },
  )
  const advance = (ms: number): void => clock.advance(ms)
  return { deadline, advance, timers: () => clock.timers(), started: () => started, expired: () => expired }
}

describe('a deadline', () => {
  it('C8.4 expires when its time is over, once', () => {
    const { deadline, advance, expired } = observed()
    deadline.set(100)
    advance(99)
    expect(expired()).toBe(0)
    advance(1)
    expect(expired()).toBe(1)
    advance(1000)
    expect(expired()).toBe(1)
  })

  it('C8.4 that is set to a shorter time expires at the shorter time', () => {
    const { deadline, advance, expired, timers } = observed()
    deadline.set(1000)
    deadline.set(10)
    expect(timers()).toBe(1)
    advance(10)
    expect(expired()).toBe(1)
    advance(2000)
    expect(expired()).toBe(1)
  })

  it('C8.4 that is set to a longer time expires at the longer time, and not before', () => {
    const { deadline, advance, expired } = observed()
    deadline.set(100)
    advance(50)
    deadline.set(100)
    advance(50)
    expect(expired()).toBe(0)
    advance(49)
    expect(expired()).toBe(0)
    advance(1)
    expect(expired()).toBe(1)
  })

  it('C8.4 that is set again and again needs one timer, started once in its time', () => {
    const { deadline, advance, started, expired, timers } = observed()
    for (let step = 0; step < 1000; step += 1) {
      deadline.set(100)
      advance(1)
      expect(timers()).toBe(1)
    }
    expect(expired()).toBe(0)
    expect(started()).toBeLessThanOrEqual(12)
  })

  it('C8.4 that was lifted does not expire until it is set again', () => {
    const { deadline, advance, expired } = observed()
    deadline.set(100)
    deadline.lift()
    advance(500)
    expect(expired()).toBe(0)
    deadline.set(100)
    advance(100)
    expect(expired()).toBe(1)
  })

  it('C8.4 that is set after it was lifted expires in time, though its timer still runs', () => {
    const { deadline, advance, expired, started } = observed()
    deadline.set(100)
    deadline.lift()
    deadline.set(100)
    expect(started()).toBe(1)
    deadline.lift()
    deadline.set(50)
    advance(50)
    expect(expired()).toBe(1)
  })

  it('C8.4 that expired can be set again', () => {
    const { deadline, advance, expired } = observed()
    for (let round = 1; round <= 3; round += 1) {
      deadline.set(10)
      advance(10)
      expect(expired()).toBe(round)
    }
  })

  it('C8.4 that was stopped leaves no timer behind', () => {
    const { deadline, advance, expired, timers } = observed()
    deadline.set(100)
    deadline.stop()
    expect(timers()).toBe(0)
    advance(500)
    expect(expired()).toBe(0)
  })

  it('C8.4 whose timer fires early, as node fires those of more than 24 days, starts another one', () => {
    const clock = movableClock()
    const manual = manualAfter()
    let expired = 0
    const deadline = new Deadline(() => (expired += 1), clock, manual.after)
    deadline.set(100)
    manual.fireAt(0)
    expect(expired).toBe(0)
    expect(manual.delays()).toEqual([100])
    clock.advance(100)
    manual.fireAt(0)
    expect(expired).toBe(1)
  })
})
