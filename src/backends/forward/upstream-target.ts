import type { Clock } from '../../kernel/clock.ts'
import { Ejection, type AttemptOutcome, type EjectionRules } from './ejection.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import { attemptOutcome } from './upstream-errors.ts'
import type { UpstreamRequest } from '../../upstream/request.ts'
import { UpstreamPool, type PoolRules } from '../../upstream/pool.ts'
import type { UpstreamCallback, UpstreamReader } from '../../upstream/reader.ts'

/**
 * Told when a target is put out or taken back, and by what: its calls, or the checks of its health. `distrusted`: it sent
 * bytes that belong to no answer, and until `trusted` each call has a connection of its own.
 */
export type TargetChanged = (target: string, change: TargetChange) => void
export type TargetChange = 'ejected' | 'readmitted' | 'unhealthy' | 'healthy' | 'distrusted' | 'trusted'

/** One instance of an upstream: its connections, and whether calls should go there. */
export class UpstreamTarget {
  readonly address: UpstreamAddress
  readonly #pool: UpstreamPool
  readonly #ejection: Ejection
  readonly #changed: TargetChanged
  #healthy = true

  constructor(
    address: UpstreamAddress,
    rules: PoolRules & { readonly ejection: EjectionRules },
    clock: Clock,
    changed: TargetChanged,
  ) {
    this.address = address
    this.#changed = changed
    this.#pool = new UpstreamPool(address, rules, (distrusted) =>
      changed(address.name, distrusted ? 'distrusted' : 'trusted'),
    )
    this.#ejection = new Ejection(rules.ejection, clock, (out) =>
      changed(address.name, out ? 'ejected' : 'readmitted'),
    )
  }

  get inFlight(): number {
    return this.#pool.inFlight
  }

  /** Whether a call may go there, as far as is known. */
  get isUsable(): boolean {
    return this.#healthy && this.#ejection.admits
  }

  /** What is told of it: a trial that is due makes nothing healthy. */
  get isHealthy(): boolean {
    return this.#healthy && !this.#ejection.isEjected
  }

  setHealthy(healthy: boolean): void {
    if (this.#healthy === healthy) return
    this.#healthy = healthy
    this.#changed(this.address.name, healthy ? 'healthy' : 'unhealthy')
  }

  /** Sends an attempt, whose outcome counts. `request.path` is without the base path of the target. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    const settle = this.enter()
    return this.probe(request, (error, response) => {
      settle(error === null ? 'good' : attemptOutcome(error))
      callback(error, response)
    })
  }

  /** For an attempt that is made by other means (a websocket's): to be told what came of it. */
  enter(): (outcome: AttemptOutcome) => void {
    return this.#ejection.enter()
  }

  /** Sends a request that does not count. */
  probe(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    const { basePath } = this.address
    const sent = basePath === '' ? request : { ...request, path: basePath + request.path }
    return this.#pool.send(sent, callback)
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
