/** What became of the configuration files that were read: for the metrics and for the status. */
import { type After, after as systemAfter, type Clock } from '../kernel/clock.ts'
import type { ReloadOutcome } from '../operator/context.ts'
import type { ConfigurationStanding } from '../watch/status/status.ts'
import type { Operator } from '../audit/audited-change.ts'

/** Milliseconds until a refused configuration is tried again: doubled each time, up to the longest. */
const FIRST_WAIT = 1000
const LONGEST_WAIT = 30_000

export class ConfigurationLoads {
  readonly #clock: Pick<Clock, 'now'>
  readonly #after: After
  /** When the configuration in force was read, milliseconds since the epoch. */
  loadedAt: number
  /** The last reload, if it was refused. */
  refused: ConfigurationStanding['refused']
  readonly #again: (order: Operator) => void
  #attempts = 0
  #cancel: () => void = () => undefined

  /** @param again carries out an order once more */
  constructor(clock: Pick<Clock, 'now'>, again: (order: Operator) => void, after: After = systemAfter) {
    this.#clock = clock
    this.#again = again
    this.#after = after
    this.loadedAt = clock.now()
  }

  /**
   * A reload has ended. One that was refused for something that passes is tried again until it is in force, its files
   * turn out to have a mistake, or another one is ordered, such as by a change of the files.
   */
  ended(outcome: ReloadOutcome, order: Operator): void {
    this.stop()
    const at = this.#clock.now()
    if (outcome.outcome === 'reloaded') {
      this.loadedAt = at
      this.refused = undefined
      this.#attempts = 0
      return
    }
    const { cause, problems } = outcome
    this.refused = { at, via: order.via, problems, cause }
    if (cause === undefined) {
      this.#attempts = 0
      return
    }
    const wait = Math.min(FIRST_WAIT * 2 ** this.#attempts, LONGEST_WAIT)
    this.#attempts += 1
    this.#cancel = this.#after(wait, () => this.#again(order))
  }

  /** Tries nothing again by itself. */
  stop(): void {
    this.#cancel()
    this.#cancel = () => undefined
  }
}
