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
