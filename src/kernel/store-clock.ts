import { type Clock, systemClock } from './clock.ts'

/** Readings of which the median counts. */
const READINGS = 8
/** Milliseconds. A reading that differs more than this, beyond its own error, shows that the store's clock was set. */
const STEP = 250
/** Milliseconds. An older reading says too little about a clock that may have drifted or been set. */
const FRESH = 60_000

/** Where a store's clock stands against Clock.monotonic() of this process. */
export class ClockOffset {
  readonly #readings: number[] = []
  #median: number | undefined
  #readAt = Number.NEGATIVE_INFINITY

  /** Milliseconds to add to Clock.monotonic(); undefined before the first reading. */
  get value(): number | undefined {
    return this.#median
  }

  /** Whether the clock was read within the last 60 seconds. @param at Clock.monotonic() */
  isFresh(at: number): boolean {
    return at - this.#readAt <= FRESH
  }

  /**
   * Takes a reading of the store's clock (milliseconds since the epoch). It was made between `askedAt` and `answeredAt`
   * (Clock.monotonic()), so its error is half of that time at most.
   */
  read(storeNow: number, askedAt: number, answeredAt: number): void {
    const error = (answeredAt - askedAt) / 2
    const offset = storeNow - (askedAt + error)
    this.#readAt = answeredAt
    const isStep = this.#median !== undefined && Math.abs(offset - this.#median) > STEP + error
    if (isStep) this.#readings.length = 0
    // It says less than what is known. Several come at once when a process goes on that was paused.
    else if (this.#median !== undefined && error > STEP) return
    this.#readings.push(offset)
    if (this.#readings.length > READINGS) this.#readings.shift()
    this.#median = medianOf(this.#readings)
  }

  /** Moves it forward by milliseconds in which Clock.monotonic() stood still, until a reading says otherwise. */
  advance(ms: number): void {
    if (this.#median === undefined) return
    this.#readings.splice(0, READINGS, this.#median + ms)
    this.#median += ms
  }
}

function medianOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)]
}

/**
 * The clock of a store that several nodes share, so that all of them mean the same time: else a token that a node with
 * a fast clock issues would outlive a revocation rule. Before the first reading it is the clock of this machine.
 */
export class StoreClock implements Clock {
  readonly #offset: ClockOffset
  readonly #machine: Clock

  constructor(offset: ClockOffset, machine: Clock = systemClock) {
    this.#offset = offset
    this.#machine = machine
  }

  now(): number {
    const offset = this.#offset.value
    return offset === undefined ? this.#machine.now() : this.#machine.monotonic() + offset
  }

  monotonic(): number {
    return this.#machine.monotonic()
  }
}
