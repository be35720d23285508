import type { Recorder } from '../contracts/recorder.ts'
import { type After, after as systemAfter, type Clock } from '../kernel/clock.ts'
import type { TrustedOffset } from '../kernel/store-clock.ts'

/** Milliseconds between two looks. */
const INTERVAL = 10_000
/** Milliseconds. A clock that is further off is worth a look of an operator, though nothing depends on it. */
const WORTH_TELLING = 1000

export interface ClockDriftParts {
  readonly store: Clock
  readonly offset: Pick<TrustedOffset, 'doubt'>
  readonly machine: Clock
  readonly recorder: Pick<Recorder, 'note'>
}

/** Tells operators when the clock of this machine and that of the store differ. */
export class ClockDrift {
  readonly #store: Clock
  readonly #offset: Pick<TrustedOffset, 'doubt'>
  readonly #machine: Clock
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #after: After
  #isTold = false
  #cancel: () => void = () => undefined

  constructor({ store, offset, machine, recorder }: ClockDriftParts, after: After = systemAfter) {
    this.#offset = offset
    this.#store = store
    this.#machine = machine
    this.#recorder = recorder
    this.#after = after
    this.#schedule()
  }

  /** By how much the store's clock is ahead, in seconds. */
  get seconds(): number {
    return (this.#store.now() + (this.#offset.doubt ?? 0) - this.#machine.now()) / 1000
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    const isFar = Math.abs(this.seconds) * 1000 > WORTH_TELLING
    if (isFar && !this.#isTold)
      this.#recorder.note('warn', 'clock_differs_from_store', { seconds: Number(this.seconds.toFixed(1)) })
    this.#isTold = isFar
    this.#schedule()
  }

  #schedule(): void {
    this.#cancel = this.#after(INTERVAL, () => this.#look())
  }
}
