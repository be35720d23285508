import { type Clock, systemClock } from './clock.ts'

/** How many readings the median is taken from. */
const READINGS = 8
/** A reading that differs by more milliseconds than this, beyond its own error, shows that the store's clock was set. */
const STEP = 250
/** A clock that is set right moves by fewer milliseconds than this. One that differs more was set wrong, or was wrong before. */
export const JUMP = 60_000

/** The difference between a store's clock and Clock.monotonic() of this process. */
export class ClockOffset {
  readonly #readings: number[] = []
  #median: number | undefined

  /** Milliseconds to add to Clock.monotonic(); undefined before the first reading. */
  get value(): number | undefined {
    return this.#median
  }

  /**
   * Takes a reading of the store's clock (milliseconds since the epoch). It was made between `askedAt` and `answeredAt`
   * (Clock.monotonic()), so its error is half of that time at most.
   */
  read(storeNow: number, askedAt: number, answeredAt: number): void {
    const error = (answeredAt - askedAt) / 2
    const offset = storeNow - (askedAt + error)
    const isStep = this.#median !== undefined && Math.abs(offset - this.#median) > STEP + error
    if (isStep) this.#readings.length = 0
    // It is less exact than what is known. A process that was paused gets several of them when it runs again.
    else if (this.#median !== undefined && error > STEP) return
    this.#readings.push(offset)
    if (this.#readings.length > READINGS) this.#readings.shift()
    this.#median = medianOf(this.#readings)
  }

  set(value: number): void {
    this.#readings.splice(0, READINGS, value)
    this.#median = value
  }

  /** Moves it forward by milliseconds in which Clock.monotonic() stood still, until a reading says otherwise. */
  advance(ms: number): void {
    if (this.#median !== undefined) this.set(this.#median + ms)
  }
}

/**
 * As ClockOffset, of a clock that may be wrong. When it has jumped by more than a minute against this machine's
 * monotonic clock, it is doubted: time continues as before, until the clock is back, or somebody says that it is right.
 */
export class TrustedOffset {
  readonly #trusted = new ClockOffset()
  readonly #changed: (doubt: number | undefined) => void
  /** The offset of the last reading. */
  #seen: number | undefined
  #doubt: number | undefined
  /** The doubt comes from the start, and not from a jump that was seen. */
  #isGuess = false
  /** The value before a suspension that only the machine's wall clock shows. */
  #before: number | undefined

  /** @param changed called when it is doubted, and no longer: as `doubt` says */
  constructor(changed: (doubt: number | undefined) => void = () => undefined) {
    this.#changed = changed
  }

  get value(): number | undefined {
    return this.#trusted.value
  }

  /** Milliseconds by which the store's clock is ahead of the time that is believed; undefined if it is believed itself. */
  get doubt(): number | undefined {
    return this.#doubt
  }

  read(storeNow: number, askedAt: number, answeredAt: number): void {
    const error = (answeredAt - askedAt) / 2
    const seen = storeNow - (askedAt + error)
    const isNear = (value: number | undefined): boolean =>
      value === undefined || Math.abs(seen - value) <= JUMP + error
    this.#seen = seen
    const believed = this.#trusted.value
    if (!isNear(believed)) {
      // There was no suspension: somebody has set the wall clock of this machine.
      if (this.#before === undefined || !isNear(this.#before)) {
        this.#setDoubt(seen - (believed ?? 0))
        return
      }
      this.#trusted.set(this.#before)
    }
    this.#before = undefined
    this.#trusted.read(storeNow, askedAt, answeredAt)
    this.#setDoubt(undefined)
  }

  advance(ms: number): void {
    this.#before ??= this.#trusted.value
    this.#trusted.advance(ms)
  }

  /**
   * At a start, when there was no jump to be seen: another time is believed.
   * @param isGuess whether another node that believes the store's clock knows better
   */
  assume(value: number, isGuess: boolean): void {
    if (this.#seen === undefined) return
    this.#trusted.set(value)
    this.#isGuess = isGuess
    this.#setDoubt(this.#seen - value)
  }

  /** Another node believes the store's clock. It has seen it longer than one that guesses. */
  confirmed(): void {
    if (this.#isGuess) this.#believe()
  }

  /** Somebody says that the clock is right, though it is ahead by so much. It may be another jump than is doubted here. */
  accept(ahead: number): void {
    if (this.#doubt !== undefined && Math.abs(this.#doubt - ahead) <= JUMP) this.#believe()
  }

  #believe(): void {
    if (this.#seen !== undefined) this.#trusted.set(this.#seen)
    this.#setDoubt(undefined)
  }

  #setDoubt(doubt: number | undefined): void {
    const isNews = (doubt === undefined) !== (this.#doubt === undefined)
    this.#doubt = doubt
    if (doubt === undefined) this.#isGuess = false
    if (isNews) this.#changed(doubt)
  }
}

function medianOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)]
}

/**
 * The clock of a store that several nodes share, so that all of them mean the same time: otherwise a token that a node with
 * a fast clock issues would outlive a revocation rule. Before the first reading it is the clock of this machine.
 */
export class StoreClock implements Clock {
  readonly #offset: Pick<ClockOffset, 'value'>
  readonly #machine: Clock

  constructor(offset: Pick<ClockOffset, 'value'>, machine: Clock = systemClock) {
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
