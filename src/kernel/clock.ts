/** Time as the rest of the code sees it, so that tests can move it. */
export interface Clock {
  /** Wall time in milliseconds since the epoch: for what others read (iat, exp, logs). */
  now(): number
  /** Monotonic milliseconds: for durations, which a stepped wall clock must not bend. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** Wall time in whole seconds, the unit of JWT NumericDate (RFC 7519 §2). */
export const epochSeconds = (clock: Clock): number => Math.floor(clock.now() / 1000)

/** Runs `work` once, `ms` milliseconds from now; what it answers cancels. Tests hand in one that they wind themselves. */
export type After = (ms: number, work: () => void) => () => void

/** Milliseconds, some 24 days: a timer of node that is set for more fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/** How long a timer can be set for a time that an operator has configured, which may be any. Milliseconds. */
export const timerMs = (ms: number): number => Math.min(ms, LONGEST_TIMER)

/** Keeps no process alive. */
export const after: After = (ms, work) => {
  const timer = setTimeout(work, timerMs(ms))
  timer.unref()
  return () => clearTimeout(timer)
}
