import type { Clock } from '../../kernel/clock.ts'
import type { EjectionRules } from './ejection.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import type { PoolRules } from '../../upstream/pool.ts'
import { UpstreamTarget, type TargetChanged } from './upstream-target.ts'

/** Those that a call was sent to already. */
export type Tried = readonly UpstreamTarget[]

export const NONE_TRIED: Tried = []

/**
 * The instances of an upstream, and which of them gets the next call: the least busy of those that are well, taking
 * turns where several are equally so. One that hangs thus gets few calls even before it is noticed (T5.4). Where none
 * is well, all are asked as if they were: being sent to a target that may be down beats being sent nowhere.
 */
export class UpstreamTargets {
  readonly all: readonly UpstreamTarget[]
  readonly #only: UpstreamTarget | undefined
  #turn = 0

  constructor(
    addresses: readonly UpstreamAddress[],
    rules: PoolRules & { readonly ejection: EjectionRules },
    clock: Clock,
    changed: TargetChanged,
  ) {
    this.all = addresses.map((address) => new UpstreamTarget(address, rules, clock, changed))
    this.#only = this.all.length === 1 ? this.all[0] : undefined
  }

  /** For the next attempt of a call that was sent to `tried` before, in vain. */
  choose(tried: Tried): UpstreamTarget {
    if (this.#only) return this.#only
    const found =
      this.#leastBusy((target) => target.isUsable && !tried.includes(target)) ??
      this.#leastBusy((target) => target.isUsable) ??
      this.#leastBusy((target) => !tried.includes(target)) ??
      this.#leastBusy(() => true)
    if (found === undefined) throw new TypeError('an upstream without targets')
    return found
  }

  /** Whether one that is well has not been asked yet. */
  hasAnother(tried: Tried): boolean {
    return this.all.some((target) => target.isUsable && !tried.includes(target))
  }

  #leastBusy(fits: (target: UpstreamTarget) => boolean): UpstreamTarget | undefined {
    const { length } = this.all
    this.#turn = (this.#turn + 1) % length
    let best: UpstreamTarget | undefined
    for (let index = 0; index < length; index++) {
      const target = this.all[(this.#turn + index) % length]
      if (target && fits(target) && (best === undefined || target.inFlight < best.inFlight)) best = target
    }
    return best
  }

  get isHealthy(): boolean {
    return this.all.some((target) => target.isHealthy)
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((target) => target.close()))
  }
}
