/** Carries out the orders of operators, in the supervising process. */
import { setTimeout as wait } from 'node:timers/promises'
import { noteChange, type Operator } from '../audit/audited-change.ts'
import { Problems } from '../config/problems.ts'
import type { Environment } from '../config/validate.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Holdings } from '../directory/holdings.ts'
import type { LocalLockouts } from '../identity/guessing/lockouts.ts'
import type { Clock } from '../kernel/clock.ts'
import type { CallHistory } from '../maintenance/call-history.ts'
import { compileMaintenance } from '../maintenance/schema.ts'
import type { ReloadOutcome, RestartOutcome, ServiceContext } from '../operator/context.ts'
import { type KeyWork, oneAtATime } from '../operator/key-work.ts'
import type { WorkerPool } from '../processes/worker-pool.ts'
import { closableNames, type Configuration, isSidecar } from '../settings/configuration.ts'
import type { Readiness } from '../watch/health.ts'
import type { GaugeReading } from '../watch/metrics/gauges.ts'
import { ConfiguredEditors } from './configured-editors.ts'
import { adoptSeals, keysPlanOf } from './key-plan.ts'
import type { ConfigurationLoads, Reloader } from './reload.ts'
import type { State } from './state.ts'
import type { TrailOwner } from './trail-owner.ts'
import { VERSION } from './version.ts'

export interface ControlParts {
  /** The state of this process. With several workers, the supervisor has its own. */
  readonly state: Pick<State, 'maintenance' | 'tokenRevoker' | 'rules' | 'store' | 'feed' | 'doubts'>
  readonly pool: WorkerPool<Configuration>
  /** The people and their rights in the configuration in force. */
  readonly holdings: () => Holdings
  readonly lockouts: LocalLockouts
  readonly recorder: Pick<Recorder, 'note'>
  readonly audit: AuditTrail
  readonly clock: Clock
  readonly environment: Environment
  /** The gauges of all processes that live. */
  readonly readings: () => readonly GaugeReading[]
  readonly readiness: () => Readiness
  readonly loads: ConfigurationLoads
  readonly callHistory: Pick<CallHistory, 'since' | 'counts'>
  /** Of the service, milliseconds since the epoch. */
  readonly startedAt: number
  /** Of the configuration; undefined if it does not come from one. */
  readonly file: string | undefined
  /** Absent where no trail is kept, as its owner is. */
  readonly trail: ServiceContext['trail']
  readonly trailOwner: TrailOwner | undefined
}

type Refused = Extract<RestartOutcome, { outcome: 'refused' }>

const STOPPING: Refused = { outcome: 'refused', problems: ['the service is stopping'] }
/** The longest wait, when the service stops, for an order that is under way. */
const LONGEST_SETTLING_MS = 1000

/** Undefined in a sidecar. */
function keyWorkOf(configuration: Configuration, { state, clock }: ControlParts): KeyWork | undefined {
  if (isSidecar(configuration)) return undefined
  const { store } = state
  return {
    plan: keysPlanOf(configuration, store),
    clock,
    store: () => Promise.resolve(store),
    elsewhere: false,
    announced: new Set(),
    inTurn: oneAtATime(),
  }
}

export class ServiceControl {
  /** What operations work on. */
  readonly context: ServiceContext
  readonly maintenance: State['maintenance']
  readonly lockouts: LocalLockouts
  /** Absent in a sidecar. */
  readonly keys: KeyWork | undefined
  readonly #parts: ControlParts
  readonly #editors: ConfiguredEditors
  #configuration: Configuration
  #reloader: Reloader | undefined
  /** Settles when the previous order is done. Only one order at a time changes configurations and workers. */
  #last: Promise<unknown> = Promise.resolve()
  #stopping = false

  constructor(configuration: Configuration, parts: ControlParts) {
    this.#parts = parts
    this.#configuration = configuration
    this.maintenance = parts.state.maintenance
    this.lockouts = parts.lockouts
    this.keys = keyWorkOf(configuration, parts)
    this.#editors = new ConfiguredEditors(parts)
    this.#activate(configuration)
    this.context = this.#contextOf(parts)
  }

  #contextOf({ state, ...parts }: ControlParts): ServiceContext {
    const { store, rules, tokenRevoker, maintenance, doubts } = state
    const { keys } = this
    return {
      ...parts,
      version: VERSION,
      store,
      rules,
      tokenRevoker,
      maintenance,
      doubts,
      keys: () => Promise.resolve(keys),
      configuration: () => this.#configuration,
      editors: () => this.#editors.of(this.#configuration),
      reload: (operator) => this.reload(operator),
      restart: (operator) => this.restart(operator),
    }
  }

  /** Makes `reload` possible, if the configuration comes from a file. */
  reloadBy(reloader: Reloader): void {
    this.#reloader = reloader
  }

  /** Takes over the configuration that is in force now. */
  adopt(configuration: Configuration): void {
    this.#activate(configuration)
  }

  #activate(configuration: Configuration): void {
    this.#configuration = configuration
    this.#editors.forget()
    if (this.keys !== undefined) adoptSeals(this.keys.plan.place, configuration)
    const switches = compileMaintenance(
      configuration.maintenance,
      closableNames(configuration),
      new Problems(),
    )
    this.maintenance.configure(switches)
  }

  reload(operator: Operator): Promise<ReloadOutcome> {
    const reloader = this.#reloader
    if (reloader === undefined)
      return Promise.resolve({
        outcome: 'refused',
        problems: ['the configuration does not come from a file'],
      })
    return this.#inTurn(async () => {
      const failed = this.#failed('reload_failed', operator)
      const outcome = await reloader
        .reload(operator)
        .catch((thrown: unknown): ReloadOutcome => ({ ...failed(thrown), cause: 'unknown' }))
      this.#parts.loads.ended(outcome, operator)
      return outcome
    })
  }

  restart(operator: Operator): Promise<RestartOutcome> {
    const { pool, recorder, audit } = this.#parts
    if (pool.restart === undefined) {
      const problems = ['one process serves, and cannot be replaced by another — see `workers`']
      return Promise.resolve({ outcome: 'refused', problems })
    }
    const restart = async (): Promise<RestartOutcome> => {
      const workers = (await pool.restart?.()) ?? 0
      recorder.note('info', 'workers_restarted', { workers, ...operator })
      noteChange(audit, operator, { event: 'workers.restarted', change: { workers } })
      return { outcome: 'restarted', workers }
    }
    return this.#inTurn(() => restart().catch(this.#failed('restart_failed', operator)))
  }

  /** Logs the failure and refuses, since signals and file watches cannot handle an error. */
  #failed(event: string, operator: Operator): (cause: unknown) => { outcome: 'refused'; problems: string[] } {
    return (cause) => {
      this.#parts.recorder.note('error', event, { cause, ...operator })
      return { outcome: 'refused', problems: ['it failed half way; the log tells more'] }
    }
  }

  /** Refuses further orders. Resolves when none is under way, or after LONGEST_SETTLING_MS. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#parts.loads.stop()
    await Promise.race([this.#last, wait(LONGEST_SETTLING_MS, undefined, { ref: false })])
  }

  #inTurn<T>(work: () => Promise<T | Refused>): Promise<T | Refused> {
    const done = this.#last.then(() => (this.#stopping ? STOPPING : work()))
    this.#last = done.catch(() => undefined)
    return done
  }
}
