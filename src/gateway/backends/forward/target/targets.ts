import { Buffer } from 'node:buffer'
import type { UpstreamTraffic, UpstreamCallback } from '../../../../base/contracts/calls/backend.ts'
import { followedBy, headerLine } from '../../../../base/http/head/header-text.ts'
import { type After, after as systemAfter, type Clock } from '../../../../base/kernel/clock.ts'
import { Fault, type FaultCode } from '../../../../base/kernel/faults.ts'
import { type ConnectionCounts, type PoolRules, sumOfCounts, UpstreamPool } from '../../../upstream/pool.ts'
import type { UpstreamReader } from '../../../upstream/reader.ts'
import type { UpstreamRequest, UpstreamTimeouts } from '../../../upstream/request.ts'
import { parseUpstreamAddress, type UpstreamAddress } from '../../../upstream/socket.ts'
import { isTimeout, upstreamFault } from '../response/response.ts'

export interface EjectionRules {
  /** After how many failed attempts in a row a target gets no more calls. */
  readonly failures: number
  /** After how long one call may try the target again, in milliseconds. */
  readonly for: number
}

/** Whether an attempt shows that its target works. `unknown`: the client left before there was an answer. */
type AttemptOutcome = 'good' | 'bad' | 'unknown'

const TARGETS_FAULT: ReadonlySet<FaultCode> = new Set([
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_broken',
])

/** What a failed attempt says about its target: nothing if the client left or the defect is ours. */
export const attemptOutcome = (error: unknown): AttemptOutcome =>
  TARGETS_FAULT.has(upstreamFault(error).code) ? 'bad' : 'unknown'

/**
 * Passive ejection: a target whose calls fail several times in a row gets no more of them for a while. Then one call
 * tries it. If that one succeeds, the target is taken back; otherwise it stays out for as long again.
 */
export class Ejection {
  readonly #rules: EjectionRules
  readonly #clock: Clock
  readonly #changed: (ejected: boolean) => void
  /** How many attempts failed in a row. */
  #failures = 0
  /** When the target was ejected, by clock.monotonic(); undefined while it gets calls. */
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
  /** How many results in a row contradict `held`. */
  let contrary = 0
  let held = true
  function ask(): void {
    cancel = probe(target, rules, own, after, report)
  }
  function report(well: boolean | undefined): void {
    if (stopped) return
    if (well !== undefined) count(well)
    cancel = after(rules.interval, ask)
  }
  function count(well: boolean): void {
    contrary = well === held ? 0 : contrary + 1
    if (contrary >= (well ? rules.healthy : rules.unhealthy)) {
      held = well
      contrary = 0
      target.setHealthy(well)
    }
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

/** One check. Returns a function that gives it up. Reports undefined if the check says nothing about the target. */
function probe(
  target: CheckedTarget,
  { path, timeout }: HealthCheckRules,
  own: Pick<UpstreamRequest, 'host'>,
  after: After,
  report: (well: boolean | undefined) => void,
): () => void {
  const late = new Fault('upstream_timeout', { detail: 'the health check was not answered in time' })
  const giveUp = (): void => reader.cancel(late)
  const stopWaiting = after(timeout, giveUp)
  const request = { ...QUESTION, ...own, path }
  const reader = target.probe(request, (error, response) => {
    stopWaiting()
    if (response && !Buffer.isBuffer(response.body)) response.body.cancel()
    // Later, because `report` sets `cancel`, and this callback may run before `probe` has returned.
    queueMicrotask(() => report(error === null ? isWell(response?.statusCode) : blameFor(error)))
  })
  return () => {
    stopWaiting()
    giveUp()
  }
}

/** False if the target is to blame for a failure; undefined if the failure is ours. */
const blameFor = (error: unknown): false | undefined => (attemptOutcome(error) === 'bad' ? false : undefined)

const isWell = (status = 0): boolean => status >= 200 && status < 300

/**
 * Called when a target is ejected or taken back (by its calls), or becomes unhealthy or healthy (by its health checks).
 * `distrusted`: it sent bytes that belong to no answer. Until `trusted` each call has a connection of its own.
 */
export type TargetChanged = (target: string, change: TargetChange) => void
export type TargetChange = 'ejected' | 'readmitted' | 'unhealthy' | 'healthy' | 'distrusted' | 'trusted'

/** One instance of an upstream: its connections, and whether calls are sent there. */
export class UpstreamTarget {
  readonly address: UpstreamAddress
  readonly #pool: UpstreamPool
  readonly #ejection: Ejection
  readonly #changed: TargetChanged
  readonly #timeouts: UpstreamTimeouts
  /** The target's health, as its health checks say. */
  readonly #health: { isWell: boolean }

  /** @param same one of the same origin, whose connections, ejection and health this one shares: its address has another path */
  constructor(
    address: UpstreamAddress,
    rules: PoolRules & { readonly ejection: EjectionRules },
    clock: Clock,
    changed: TargetChanged,
    same?: UpstreamTarget,
  ) {
    this.address = address
    this.#changed = changed
    this.#timeouts = rules.timeouts
    if (same !== undefined) {
      this.#pool = same.#pool
      this.#ejection = same.#ejection
      this.#health = same.#health
      return
    }
    this.#health = { isWell: true }
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

  get counts(): ConnectionCounts {
    return this.#pool.counts
  }

  /** Whether a call may go there. */
  get isUsable(): boolean {
    return this.#health.isWell && this.#ejection.admits
  }

  /** Whether the target is healthy, for reports. A target that is due for a trial is not healthy yet. */
  get isHealthy(): boolean {
    return this.#health.isWell && !this.#ejection.isEjected
  }

  setHealthy(healthy: boolean): void {
    if (this.#health.isWell === healthy) return
    this.#health.isWell = healthy
    this.#changed(this.address.name, healthy ? 'healthy' : 'unhealthy')
  }

  /** Sends an attempt of a call. Its outcome counts for ejection. `request.path` is without the target's base path. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    return this.probe(request, this.#counted(request, callback))
  }

  /** The same, but `request.path` is with the target's base path, or outside of it. */
  sendAbsolute(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    return this.#pool.send(request, this.#counted(request, callback))
  }

  #counted({ timeouts }: UpstreamRequest, callback: UpstreamCallback): UpstreamCallback {
    const settle = this.enter()
    return (error, response) => {
      settle(
        error === null ? 'good' : this.#isImpatience(error, timeouts) ? 'unknown' : attemptOutcome(error),
      )
      callback(error, response)
    }
  }

  /** A timeout of an operation that waits for less time than its backend: it says nothing against the target. */
  #isImpatience(error: Error, own: UpstreamTimeouts | undefined): boolean {
    const { connect, firstByte, idle } = this.#timeouts
    return (
      own !== undefined &&
      (own.connect < connect || own.firstByte < firstByte || own.idle < idle) &&
      isTimeout(error)
    )
  }

  /** For an attempt that is sent by other means (an upgrade): the result is to be called with its outcome. */
  enter(): (outcome: AttemptOutcome) => void {
    return this.#ejection.enter()
  }

  /** Sends a request that does not count. */
  probe(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    const { basePath } = this.address
    const sent = basePath === '' ? request : { ...request, path: basePath + request.path }
    return this.#pool.send(sent, callback)
  }

  /** Keeps no connections any more; calls under way end as they would. */
  retire(): void {
    this.#pool.retire()
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}

/** The targets of a call's attempts so far. */
export type Tried = readonly UpstreamTarget[]

export const NONE_TRIED: Tried = []

/**
 * Chooses the target of each call: the least busy one that is usable; several that are equally busy take turns. So a target
 * that hangs gets few calls even before that is noticed (T5.4). If none is usable, all count as usable: a target that may be
 * down is better than none.
 */
export class UpstreamTargets {
  readonly all: readonly UpstreamTarget[]
  readonly #only: UpstreamTarget | undefined
  readonly #others: OtherOrigins
  /** To be called when a further attempt at a call is made. */
  readonly retried: () => void
  #turn = 0

  constructor(
    all: readonly UpstreamTarget[],
    rules: PoolRules & { readonly retried: () => void },
    others = new OtherOrigins(rules),
  ) {
    this.retried = rules.retried
    this.all = all
    this.#only = this.all.length === 1 ? this.all[0] : undefined
    this.#others = others
  }

  /** The connections to an origin that redirects may lead to. @param origin one that the configuration names */
  otherOrigin(origin: string): UpstreamPool {
    return this.#others.poolOf(origin)
  }

  /** @param tried the targets of the attempts that failed */
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

  get traffic(): UpstreamTraffic {
    const healthy = this.all.filter((target) => target.isHealthy).length
    const connections = sumOfCounts([...this.all.map(({ counts }) => counts), this.#others.counts])
    return { ...connections, healthy, ejected: this.all.length - healthy }
  }

  async close(): Promise<void> {
    await Promise.all([...this.all.map((target) => target.close()), this.#others.close()])
  }
}

/**
 * Connections to origins that redirects lead to (C8.8). Their certificates are verified by their own host names, against
 * the same authorities; the client certificate is the targets' alone.
 */
export class OtherOrigins {
  readonly #rules: PoolRules
  readonly #pools = new Map<string, UpstreamPool>()
  #isClosed = false

  constructor({ tls: { ca }, ...rules }: PoolRules) {
    this.#rules = { ...rules, tls: ca === undefined ? {} : { ca } }
  }

  /** @param origin one that the configuration names: there are no more pools than these */
  poolOf(origin: string): UpstreamPool {
    const known = this.#pools.get(origin)
    if (known !== undefined) return known
    const address = parseUpstreamAddress(origin)
    if (address === undefined) throw new TypeError(`no origin: ${origin}`)
    const pool = new UpstreamPool(address, this.#rules)
    this.#pools.set(origin, pool)
    if (this.#isClosed) void pool.close()
    return pool
  }

  get counts(): ConnectionCounts {
    return sumOfCounts([...this.#pools.values()].map((pool) => pool.counts))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }
}
