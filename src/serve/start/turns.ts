/** Reloads and restarts, in turn: only one at a time changes configurations and processes. */
import { setTimeout as wait } from 'node:timers/promises'
import { noteChange, type Operator } from '../../base/contracts/records/audited-change.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import { oneAtATime } from '../../base/kernel/in-turn.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { ReloadOutcome, RestartOutcome } from '../../operate/operation/context.ts'
import type { WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { ConfigurationLoads, Reloader } from '../parts/reload.ts'

type Refused = Extract<RestartOutcome, { outcome: 'refused' }>

const refused = (problem: string): Refused => ({ outcome: 'refused', problems: [problem] })

/** The longest wait, when the service stops, for what is under way. */
const LONGEST_SETTLING_MS = 1000

interface TurnsParts {
  /** Absent if the configuration does not come from a file. */
  readonly reloader: Reloader | undefined
  readonly pool: Pick<WorkerPool<Configuration>, 'restart'>
  readonly loads: ConfigurationLoads
  readonly recorder: Pick<Recorder, 'note'>
  readonly audit: AuditTrail
}

export class Turns {
  readonly #parts: TurnsParts
  readonly #queue = oneAtATime()
  #stopped: Promise<void> | undefined

  constructor(parts: TurnsParts) {
    this.#parts = parts
  }

  /** Never rejects. */
  async reload(operator: Operator): Promise<ReloadOutcome> {
    const { reloader, loads } = this.#parts
    if (reloader === undefined) return refused('the configuration does not come from a file')
    return this.#inTurn(async () => {
      const failed = this.#failed('reload_failed', operator)
      const outcome = await reloader
        .reload(operator)
        .catch((thrown: unknown): ReloadOutcome => ({ ...failed(thrown), cause: 'unknown' }))
      loads.ended(outcome, operator)
      return outcome
    })
  }

  /** Never rejects. */
  async restart(operator: Operator): Promise<RestartOutcome> {
    const { pool, recorder, audit } = this.#parts
    if (pool.restart === undefined)
      return refused('one process serves, and cannot be replaced by another — see `workers`')
    const restart = async (): Promise<RestartOutcome> => {
      const workers = (await pool.restart?.()) ?? 0
      recorder.note('info', 'workers_restarted', { workers, ...operator })
      noteChange(audit, operator, { event: 'workers.restarted', change: { workers } })
      return { outcome: 'restarted', workers }
    }
    return this.#inTurn(() => restart().catch(this.#failed('restart_failed', operator)))
  }

  /** Logs the failure and refuses, because signals and file watches cannot handle an error. */
  #failed(event: string, operator: Operator): (cause: unknown) => Refused {
    return (cause) => {
      this.#parts.recorder.note('error', event, { cause, ...operator })
      return refused('it failed half way; the log tells more')
    }
  }

  /** Refuses all further ones. Resolves when none is under way, or after LONGEST_SETTLING_MS. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  async #stop(): Promise<void> {
    this.#parts.loads.stop()
    const settled = this.#queue(() => Promise.resolve())
    await Promise.race([settled, wait(LONGEST_SETTLING_MS, undefined, { ref: false })])
  }

  #inTurn<T>(work: () => Promise<T | Refused>): Promise<T | Refused> {
    return this.#queue(() =>
      this.#stopped === undefined ? work() : Promise.resolve(refused('the service is stopping')),
    )
  }
}
