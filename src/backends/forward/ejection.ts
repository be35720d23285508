import type { Clock } from '../../kernel/clock.ts'

export interface EjectionRules {
  /** Failed attempts in a row after which a target gets no more calls. */
  readonly failures: number
  /** Milliseconds until one call may try the target again. */
  readonly for: number
}

/** What an attempt says about its target. `unknown`: nothing, since the client left before there was an answer. */
export type AttemptOutcome = 'good' | 'bad' | 'unknown'

/**
 * Passive ejection: a target whose calls fail several times in a row gets no more of them for a while. Then one call
 * tries it. If that one succeeds, the target is taken back; else it stays out for as long again.
 */
export class Ejection {
  readonly #rules: EjectionRules
  readonly #clock: Clock
  readonly #changed: (ejected: boolean) => void
  /** In a row. */
  #failures = 0
  /** clock.monotonic() of the ejection; undefined while the target gets calls. */
  #ejectedAt: number | undefined
  #isTried = false

  /** @param changed called on every ejection, also after a failed trial, and on every return */
  constructor(rules: EjectionRules, clock: Clock, changed: (ejected: boolean) => void) {
    this.#rules = rules
    this.#clock = clock
    this.#changed = changed
  }

  get isEjected(): boolean {
    return this.#ejectedAt !== undefined
  }

  /** Whether the target may get a call now: while it is ejected only one, once its time has passed. */
  get admits(): boolean {
    if (this.#ejectedAt === undefined) return true
    return !this.#isTried && this.#clock.monotonic() - this.#ejectedAt >= this.#rules.for
  }

  /**
   * An attempt begins. The function that this returns is to be called once, with the attempt's outcome. An attempt is
   * possible while the target admits none (no other target is well either): its outcome does not count.
   */
  enter(): (outcome: AttemptOutcome) => void {
    if (!this.isEjected || !this.admits) return this.#count
    this.#isTried = true
    return this.#endTrial
  }

  readonly #count = (outcome: AttemptOutcome): void => {
    if (this.isEjected || outcome === 'unknown') return
    this.#failures = outcome === 'good' ? 0 : this.#failures + 1
    if (this.#failures >= this.#rules.failures) this.#eject()
  }

  readonly #endTrial = (outcome: AttemptOutcome): void => {
    this.#isTried = false
    if (outcome !== 'good') {
      this.#eject()
      return
    }
    this.#failures = 0
    this.#ejectedAt = undefined
    this.#changed(false)
  }

  #eject(): void {
    this.#ejectedAt = this.#clock.monotonic()
    this.#changed(true)
  }
}
