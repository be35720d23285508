import type { GuessingKey, Lockouts } from '../contracts/lockouts.ts'
import type { RevokedTokens } from '../contracts/tokens.ts'
import type { MaintenanceBook } from './maintenance-book.ts'
import type { ClosableNames } from './maintenance-config.ts'
import type { Operator } from './operator.ts'

/** `problems` are lines for people: where, what, what to do. They hold no secret. */
export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly warnings: readonly string[]; readonly revoked: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly workers: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

/** What operators can do to a service that runs: the admin API, signals and the watched files all come here. */
export interface ControlRoom {
  readonly maintenance: Pick<MaintenanceBook, 'list' | 'set' | 'end'>
  readonly lockouts: Pick<Lockouts, 'list'>
  /** What switches may name, by the configuration in force. */
  closableNames(): ClosableNames
  /** Whether a client of this id was added to the store. Rejects if that cannot be read. */
  hasStoredClient(id: string): Promise<boolean>
  /** The configuration in force, without its secrets. */
  configuration(): unknown
  /** Rejects with Fault `identity_unavailable` if it could not be kept: then nothing is revoked. */
  revoke(tokens: RevokedTokens, operator: Operator): Promise<void>
  /** Forgets the failures of all that fit every member given; answers how many there were. */
  clearLockouts(which: Partial<GuessingKey>, operator: Operator): Promise<number>
  reload(operator: Operator): Promise<ReloadOutcome>
  /** Replaces every worker process, one after the other, without losing a call. */
  restart(operator: Operator): Promise<RestartOutcome>
}
