import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'
import type { CircuitBreakerPolicy } from 'cockatiel'

export interface EjectionRules {
  /** Failed attempts in a row that put a target out. */
  readonly failures: number
  /** Milliseconds until one call may try it again. */
  readonly for: number
}

/** What an attempt says about its target. `unknown`: nothing, since the client left before there was an answer. */
export type AttemptOutcome = 'good' | 'bad' | 'unknown'

const failed = (): Promise<never> => Promise.reject(new Error('the attempt failed'))
const nothing = (): undefined => undefined

/**
 * Passive ejection: whether a target may be asked, as its last attempts tell. cockatiel is imported here only. Its traps:
 * - it runs functions and counts how they end: on the hot path that is several promises per call, so that while all is
 *   well it is told of nothing, and of a success only after a failure;
 * - an open circuit becomes half-open when it is next used, not when its time has come: so that is computed here;
 * - in the half-open state whoever comes second waits for the first: nobody is sent there meanwhile;
 * - it reads the wall clock; one that is stepped back keeps a target out for longer, while others serve.
 */
export class Circuit {
  readonly #policy: CircuitBreakerPolicy
  readonly #rules: EjectionRules
  #failing = false
  #openedAt = 0

  /** @param changed told of every ejection, and of every return */
  constructor(rules: EjectionRules, changed: (ejected: boolean) => void) {
    this.#rules = rules
    this.#policy = circuitBreaker(handleAll, {
      halfOpenAfter: rules.for,
      breaker: new ConsecutiveBreaker(rules.failures),
    })
    this.#policy.onBreak(() => {
      this.#openedAt = Date.now()
      changed(true)
    })
    this.#policy.onReset(() => changed(false))
  }

  /** Whether a call may go there: always while it is closed; else one, when it is time to try again. */
  get admits(): boolean {
    const { state } = this.#policy
    return state === CircuitState.Closed || (state === CircuitState.Open && this.#isDue)
  }

  get isClosed(): boolean {
    return this.#policy.state === CircuitState.Closed
  }

  get #isDue(): boolean {
    return Date.now() - this.#openedAt >= this.#rules.for
  }

  /** An attempt begins. The function that this answers is to be called once, with what came of it. */
  enter(): (outcome: AttemptOutcome) => void {
    return this.isClosed || !this.admits ? this.#tell : this.#try()
  }

  /** The one that tries: nobody else is admitted until it is known how it went. */
  #try(): (outcome: AttemptOutcome) => void {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.#policy.execute(() => promise).catch(nothing)
    return (outcome) => (outcome === 'good' ? resolve(undefined) : reject(new Error('the trial failed')))
  }

  readonly #tell = (outcome: AttemptOutcome): void => {
    if (outcome === 'unknown' || (outcome === 'good' && !this.#failing)) return
    this.#failing = outcome === 'bad'
    this.#policy.execute(outcome === 'bad' ? failed : nothing).catch(nothing)
  }
}
