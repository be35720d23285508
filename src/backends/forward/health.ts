import { followedBy, headerLine } from '../../http/header-text.ts'
import { type After, after as systemAfter, type Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { UpstreamCallback, UpstreamReader } from '../../upstream/reader.ts'
import type { UpstreamRequest } from '../../upstream/request.ts'

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

/** Durations in milliseconds. */
export interface HealthCheckRules {
  readonly path: string
  readonly interval: number
  readonly timeout: number
  /** Bad results in a row that make a target unhealthy, and good ones that make it healthy again. */
  readonly unhealthy: number
  readonly healthy: number
}

interface CheckedTarget {
  /** Sends a request that does not count as a call. */
  probe(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader
  setHealthy(healthy: boolean): void
}

/**
 * Checks a target's health at an interval: any 2xx is healthy. The first check comes after one interval, so that opening a
 * backend opens no connection.
 * @returns a function that stops the checks
 */
export function checkHealth(
  target: CheckedTarget,
  rules: HealthCheckRules,
  own: Pick<UpstreamRequest, 'host'>,
  after: After = systemAfter,
): () => void {
  let stopped = false
  let cancel = after(rules.interval, ask)
  /** Results in a row that contradict `held`. */
  let contrary = 0
  let held = true
  function ask(): void {
    cancel = probe(target, rules, own, after, report)
  }
  function report(well: boolean): void {
    if (stopped) return
    contrary = well === held ? 0 : contrary + 1
    if (contrary >= (well ? rules.healthy : rules.unhealthy)) {
      held = well
      contrary = 0
      target.setHealthy(well)
    }
    cancel = after(rules.interval, ask)
  }
  return () => {
    stopped = true
    cancel()
  }
}

const QUESTION = {
  method: 'GET',
  headers: followedBy(headerLine('user-agent', 'postern-health-check'), headerLine('accept', '*/*')),
  body: undefined,
  length: undefined,
  // Only the head counts. A body that ends with the connection is not waited for.
  eager: false,
  fresh: false,
  timeouts: undefined,
} as const

/** One check. Returns a function that gives it up. */
function probe(
  target: CheckedTarget,
  { path, timeout }: HealthCheckRules,
  own: Pick<UpstreamRequest, 'host'>,
  after: After,
  report: (well: boolean) => void,
): () => void {
  const late = new Fault('upstream_timeout', { detail: 'the health check was not answered in time' })
  const giveUp = (): void => reader.cancel(late)
  const stopWaiting = after(timeout, giveUp)
  const request = { ...QUESTION, ...own, path }
  const reader = target.probe(request, (error, response) => {
    stopWaiting()
    if (response && !Buffer.isBuffer(response.body)) response.body.destroy()
    // Later, because `report` sets `cancel`, and this callback may run before `probe` has returned.
    queueMicrotask(() => report(error === null && isWell(response?.statusCode)))
  })
  return () => {
    stopWaiting()
    giveUp()
  }
}

const isWell = (status = 0): boolean => status >= 200 && status < 300
