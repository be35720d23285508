import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'

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

/** How far the clock that all processes of the machine share is ahead of this process's Clock.monotonic(), in milliseconds. */
const ORIGIN = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** A time of Clock.monotonic(), for another process of this machine. */
export const toMachineTime = (ms: number): number => ms + ORIGIN
/** A time of another process, as one of Clock.monotonic(). */
export const fromMachineTime = (ms: number): number => ms - ORIGIN

/** Milliseconds of a clock that all threads of the machine share (performance.now() starts from 0 in each thread). */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n)

/** Wall time in whole seconds, the unit of JWT NumericDate (RFC 7519 §2). */
export const epochSeconds = (clock: Clock): number => Math.floor(clock.now() / 1000)

/** Runs `work` once, after `ms` milliseconds. The returned function cancels it. Tests pass one that they advance. */
export type After = (ms: number, work: () => void) => () => void

/** The longest timer of Node, in milliseconds: about 24 days. A longer one fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1

export const timerMs = (ms: number): number => Math.min(ms, LONGEST_TIMER)

/** Uses a timer of Node, which does not keep the process alive. */
export const after: After = (ms, work) => {
  const timer = setTimeout(work, timerMs(ms))
  timer.unref()
  return () => clearTimeout(timer)
}

/**
 * Calls `work` after `first` milliseconds, and again each time after the milliseconds that it has returned, or resolved with. It
 * must not reject. Returns a function that ends this.
 */
export function repeatedly(by: After, first: number, work: () => number | Promise<number>): () => void {
  let cancel: () => void = () => undefined
  let hasEnded = false
  const next = (ms: number): void => {
    if (hasEnded) return
    cancel = by(ms, () => {
      const pause = work()
      if (typeof pause === 'number') next(pause)
      else void pause.then(next)
    })
  }
  next(first)
  return () => {
    hasEnded = true
    cancel()
  }
}

/**
 * Calls `then` when no answer came within `ms` milliseconds. Timers run before what has arrived is read: where this process was
 * held up, the answer may be there already, so it is read in one more turn of the event loop. `clearTimeout` cancels it until
 * the timer fires; after that `then` still runs, and must do nothing if the answer has been taken.
 */
export const whenLate = (ms: number, then: () => unknown): NodeJS.Timeout =>
  setTimeout(() => setImmediate(then), ms)
