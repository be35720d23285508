import type { After, Clock } from '../../src/base/kernel/clock.ts'

/** A clock that stands still until a test moves it, and timers by it. */
export interface MovableClock extends Clock {
  /** Timers that fire, in the order of their times, when `advance` passes those. */
  readonly after: After
  /** How many timers wait. */
  timers(): number
  /** Milliseconds. Both times pass. */
  advance(ms: number): void
  /** Milliseconds, forth or back: somebody sets the wall clock, and no time passes. */
  step(ms: number): void
}

interface Timer {
  /** Monotonic milliseconds. */
  readonly at: number
  readonly work: () => void
}

export function movableClock(start = Date.UTC(2026, 0, 15)): MovableClock {
  let now = start
  let elapsed = 0
  const timers = new Set<Timer>()
  const move = (ms: number): void => {
    now += ms
    elapsed += ms
  }
  const nextUntil = (end: number): Timer | undefined => {
    let next: Timer | undefined
    for (const timer of timers) if (timer.at <= end && !(next && next.at <= timer.at)) next = timer
    return next
  }
  return {
    now: () => now,
    monotonic: () => elapsed,
    after: (ms, work) => {
      const timer = { at: elapsed + ms, work }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    timers: () => timers.size,
    advance: (ms) => {
      const end = elapsed + ms
      for (let timer = nextUntil(end); timer !== undefined; timer = nextUntil(end)) {
        timers.delete(timer)
        move(Math.max(timer.at - elapsed, 0))
        timer.work()
      }
      move(end - elapsed)
    },
    step: (ms) => {
      now += ms
    },
  }
}
