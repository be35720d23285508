/** Something that must be well for this process to serve. */
export interface HealthCheck {
  readonly name: string
  readonly healthy: () => boolean
}

/** A part that does not work as it should, while calls are served all the same. Holds no address and no secret. */
export interface Degradation {
  /** The part, as the configuration names it: `backend funds`. */
  readonly name: string
  /** For people: what is wrong with it. */
  readonly reason: string
}

/** How the parts of a process that serves are. */
export interface Condition {
  /** What keeps it from serving, by name: it is not ready. */
  readonly failing: readonly string[]
  /** What works badly: it is ready all the same. */
  readonly degraded: readonly Degradation[]
}

export const HEALTHY: Condition = { failing: [], degraded: [] }

export interface Readiness extends Condition {
  readonly ready: boolean
}

/** What /health/live and /health/ready tell (C11.1). */
export class Health {
  readonly #checks: HealthCheck[] = []
  readonly #conditions: (() => Condition)[] = []
  #draining = false

  /** Adds a check: it must answer at once, from what is known already. */
  add(check: HealthCheck): void {
    this.#checks.push(check)
  }

  /** Adds those who serve: they must answer at once, from what is known already. */
  include(condition: () => Condition): void {
    this.#conditions.push(condition)
  }

  /** From now on not ready: the process will end. */
  drain(): void {
    this.#draining = true
  }

  readiness(): Readiness {
    const own = this.#checks.filter((check) => !isHealthy(check)).map(({ name }) => name)
    if (this.#draining) own.unshift('draining')
    const all = [{ failing: own, degraded: [] }, ...this.#conditions.map((condition) => condition())]
    const condition = mergeConditions(all)
    return { ready: condition.failing.length === 0, ...condition }
  }
}

/** What several have to tell, each thing once: workers usually see the same. */
export function mergeConditions(conditions: readonly Condition[]): Condition {
  const degraded = conditions.flatMap((condition) => condition.degraded)
  const first = new Map(degraded.map((each) => [`${each.name}\n${each.reason}`, each]))
  return {
    failing: [...new Set(conditions.flatMap((condition) => condition.failing))],
    degraded: [...first.values()],
  }
}

/**
 * That of a pool: what keeps every worker from serving keeps the pool. What keeps some makes it work badly: the calls
 * that they get fail, those of the others do not.
 */
export function conditionOfPool(workers: readonly Condition[]): Condition {
  const { failing, degraded } = mergeConditions(workers)
  const everywhere = failing.filter((name) => workers.every((worker) => worker.failing.includes(name)))
  const partly = failing
    .filter((name) => !everywhere.includes(name))
    .map((name): Degradation => ({ name, reason: 'it keeps some of the workers from serving' }))
  return { failing: everywhere, degraded: [...degraded, ...partly] }
}

function isHealthy({ healthy }: HealthCheck): boolean {
  try {
    return healthy()
  } catch {
    return false
  }
}
