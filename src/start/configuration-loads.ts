/** What became of the configuration files that were read: for the metrics and for the status. */
import type { Clock } from '../kernel/clock.ts'
import type { ReloadOutcome } from '../operations/admin/operator-control.ts'
import type { ConfigurationStanding } from '../operations/configuration-orders.ts'
import type { Operator } from '../operations/operator.ts'

export class ConfigurationLoads {
  readonly #clock: Pick<Clock, 'now'>
  /** When the configuration in force was read, milliseconds since the epoch. */
  loadedAt: number
  /** The last reload, if it was refused. */
  refused: ConfigurationStanding['refused']

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.loadedAt = clock.now()
  }

  /** A reload has ended. */
  ended(outcome: ReloadOutcome, { via }: Operator): void {
    const at = this.#clock.now()
    if (outcome.outcome === 'reloaded') this.loadedAt = at
    this.refused = outcome.outcome === 'reloaded' ? undefined : { at, via, problems: outcome.problems }
  }
}
