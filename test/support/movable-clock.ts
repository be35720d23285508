import type { Clock } from '../../src/kernel/clock.ts'

/** A clock that stands still until a test moves it. */
export interface MovableClock extends Clock {
  /** Milliseconds. Both times pass. */
  advance(ms: number): void
  /** Milliseconds, forth or back: somebody sets the wall clock, and no time passes. */
  step(ms: number): void
}

export function movableClock(start = Date.UTC(2026, 0, 15)): MovableClock {
  let now = start
  let elapsed = 0
  return {
    now: () => now,
    monotonic: () => elapsed,
    advance: (ms) => {
      now += ms
      elapsed += ms
    },
    step: (ms) => {
      now += ms
    },
  }
}
