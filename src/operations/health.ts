/** Something that must be well for this process to serve. */
export interface HealthCheck {
  readonly name: string
  readonly healthy: () => boolean
}

export interface Readiness {
  readonly ready: boolean
  /** By name: what stands in the way. */
  readonly failing: readonly string[]
}

/** What /health/live and /health/ready tell (C11.1). */
export class Health {
  readonly #checks: HealthCheck[] = []
  #draining = false

  /** Adds a check: it must answer at once, from what is known already. */
  add(check: HealthCheck): void {
    this.#checks.push(check)
  }

  /** From now on not ready: the process will end. */
  drain(): void {
    this.#draining = true
  }

  readiness(): Readiness {
    const failing = this.#checks.filter((check) => !isHealthy(check)).map(({ name }) => name)
    if (this.#draining) failing.unshift('draining')
    return { ready: failing.length === 0, failing }
  }
}

function isHealthy({ healthy }: HealthCheck): boolean {
  try {
    return healthy()
  } catch {
    return false
  }
}
