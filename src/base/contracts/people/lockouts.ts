import type { Clock } from '../../kernel/clock.ts'

/** Password attempts with the same key are counted together (C6.3.5). */
export interface GuessingKey {
  /** As typed. A name that no user has is counted like any other. */
  readonly user: string
  readonly client: string
  /** The user agent's address. */
  readonly network: string
}

/** The facts known about an attempt before it is made. It decides how the attempt is counted, never the answer. */
export interface AttemptStanding {
  /** True if a user has this name. Invented names are counted apart, so that they displace no counts of real ones. */
  readonly nameExists: boolean
  /** True if this user has logged in from this network before. Failures elsewhere then do not delay the attempt. */
  readonly familiar: boolean
  /** The `sub` of the user who has this name, for the record. */
  readonly subject?: string | undefined
}

/** One attempt that may run now. It must be ended, whatever its outcome. */
export interface Turn {
  /**
   * Counts the outcome: true or false for a right or a wrong password; undefined if the attempt broke, which is not
   * counted. Rejects with Fault `identity_unavailable` if that cannot be counted.
   * @returns milliseconds by which a failed answer must be delayed, because of earlier failures from its network; undefined:
   *   the turn had lapsed, so that others may have had it meanwhile. The attempt counts as none, and is made again
   */
  end(right: boolean | undefined): Promise<number | undefined>
}

/**
 * Limits attempts at passwords (C6.3.5). One process may own the limiter for all workers: arguments and results are
 * plain data, and `Turn.end` is sent as a second message. If a worker dies, its turns end with undefined.
 */
export interface AttemptLimiter {
  /**
   * Resolves when this attempt may run. Only one attempt of a key runs at a time, after the delay for the failures of
   * that key. If the account is attacked from many networks and this network is not familiar, only one such attempt of
   * the account runs at a time, after the account's delay.
   * Rejects with Fault `invalid_grant` or `identity_unavailable` if too many attempts are waiting already.
   */
  enter(key: GuessingKey, standing: AttemptStanding): Promise<Turn>
}

/** Failed logins that delay the next attempts (C6.3.5). */
export interface Lockout {
  /** As typed; a very long name is shortened. */
  readonly user: string
  /** Absent, like `network`, if the failures of an account are counted over all networks: see `AttemptLimiter.enter`. */
  readonly client?: string
  /** An IPv4 address, or the /64 of an IPv6 address. */
  readonly network?: string
  readonly failures: number
  /** Milliseconds from the last failure until the next attempt may run. */
  readonly delay: number
  /** Time of the last failure, milliseconds since the epoch. */
  readonly at: number
}

export interface LockoutFilter {
  readonly user?: string | undefined
  readonly client?: string | undefined
  readonly network?: string | undefined
}

/** After how many failures the next attempt waits, and how long. Times in milliseconds. */
export interface Delays {
  readonly free: number
  readonly delay: number
  readonly longest: number
}

/** The rules of a configuration that count over all nodes. */
interface SharedRules {
  readonly attempts: Delays
  readonly accounts: Delays
  /** The time after which failures of a name, client and network are forgotten, in milliseconds. */
  readonly forget: number
}

/** Ends a turn that was taken, with the outcome of the attempt. Resolves with false if others may have had it meanwhile. */
export type EndTurn = (right: boolean | undefined) => Promise<boolean>

/**
 * The turns of attempts over all nodes of a shared store, behind those of this node (C6.3.5). An attempt that cannot be counted
 * is not made, so every method rejects with Fault `identity_unavailable` if the store is out of reach.
 */
export interface SharedTurns {
  /**
   * Resolves when the attempt may run on this node as far as the others are concerned.
   * @param familiar whether failures elsewhere are not to delay it
   * @param until time of Clock.monotonic() until which it may wait for other attempts
   */
  enter(key: GuessingKey, familiar: boolean, rules: SharedRules, until: number): Promise<EndTurn>
  /** Forgets failures. Resolves with their number. */
  clear(filter: LockoutFilter): Promise<number>
}

/** @param wait resolves after so many milliseconds */
export type OpenSharedTurns = (wait: (ms: number) => Promise<void>, clock: Clock) => SharedTurns
