/** A condition without which this process cannot serve. */
interface HealthCheck {
  readonly name: string
  readonly healthy: () => boolean
}

/** A part that works badly while calls are still served. Holds no address and no secret. */
export interface Degradation {
  /** The part, as the configuration names it: `backend funds`. */
  readonly name: string
  /** What is wrong, for people. */
  readonly reason: string
}

export interface Condition {
  /** Names of the parts that keep it from serving. It is not ready if there are any. */
  readonly failing: readonly string[]
  /** Parts that work badly. They don't make it unready. */
  readonly degraded: readonly Degradation[]
}

export const HEALTHY: Condition = { failing: [], degraded: [] }

export interface Readiness extends Condition {
  readonly ready: boolean
}

/** The state that /health/ready reports (C11.1). */
export class Health {
  readonly #checks: HealthCheck[] = []
  readonly #conditions: (() => Condition)[] = []
  #draining = false

  /** Adds a check. It must be synchronous and may throw, which counts as not healthy. */
  add(check: HealthCheck): void {
    this.#checks.push(check)
  }

  /** Adds the condition of a part. The function must be synchronous and must not throw. */
  include(condition: () => Condition): void {
    this.#conditions.push(condition)
  }

  /** For good: the service is about to end. */
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

/** Joins conditions and removes duplicates, because workers usually report the same. */
export function mergeConditions(conditions: readonly Condition[]): Condition {
  const degraded = conditions.flatMap((condition) => condition.degraded)
  const first = new Map(degraded.map((each) => [`${each.name}\n${each.reason}`, each]))
  return {
    failing: [...new Set(conditions.flatMap((condition) => condition.failing))],
    degraded: [...first.values()],
  }
}

/** The condition of a pool: failed if it fails in every worker, degraded if in some, because the others still serve. */
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
