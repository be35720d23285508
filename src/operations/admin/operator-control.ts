import type { GuessingKey, Lockouts } from '../../contracts/lockouts.ts'
import type { Ended, RevokedTokens } from '../../contracts/tokens.ts'
import type { MaintenanceRecords, Operator } from '../maintenance/records.ts'
import type { ClosableNames } from '../maintenance/config.ts'

/** `problems` are lines for people: where, what, what to do. They hold no secret. */
export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly warnings: readonly string[]; readonly revoked: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly workers: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export interface RevokeOptions {
  /** Changes nothing. */
  readonly preview: boolean
  readonly consents: boolean
  /** Also where an id is not known. */
  readonly force: boolean
}

export type RevokeOutcome =
  | { readonly outcome: 'revoked' | 'previewed'; readonly ended: Ended }
  | { readonly outcome: 'unknown'; readonly problems: readonly string[] }

/** What operators can do to a service that runs: the admin API, signals and the watched files all come here. */
export interface OperatorControl {
  readonly maintenance: Pick<MaintenanceRecords, 'list' | 'set' | 'end'>
  readonly lockouts: Pick<Lockouts, 'list'>
  /** What switches may name, by the configuration in force. */
  closableNames(): ClosableNames
  /** Whether a client of this id was added to the store. Rejects if that cannot be read. */
  hasStoredClient(id: string): Promise<boolean>
  /** The configuration in force, without its secrets. */
  configuration(): unknown
  /**
   * Ends what is held (C6.3.3); `problems` has a line for each id that is not known, and then nothing has changed.
   * Rejects with Fault `identity_unavailable` if it is not done whole: it may be done in part then.
   */
  revoke(tokens: RevokedTokens, options: RevokeOptions, operator: Operator): Promise<RevokeOutcome>
  /** Forgets the failures of all that fit every member given; answers how many there were. */
  clearLockouts(which: Partial<GuessingKey>, operator: Operator): Promise<number>
  reload(operator: Operator): Promise<ReloadOutcome>
  /** Replaces every worker process, one after the other, without losing a call. */
  restart(operator: Operator): Promise<RestartOutcome>
}
