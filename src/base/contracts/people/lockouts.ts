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
export interface SharedDelays {
  readonly free: number
  readonly delay: number
  readonly longest: number
  /** After that time without a failure, earlier ones count no more. */
  readonly forget: number
}

export interface TakenTurn {
  /** Whether the attempt may run. */
  readonly taken: boolean
  /** Whether nobody else may run meanwhile. */
  readonly alone: boolean
  /** Why it may not run: true if somebody else has the turn, false if the delay of the failures has not passed. */
  readonly isBusy: boolean
  /** How long to wait before it may be tried again, in milliseconds; 0 if it was taken. */
  readonly wait: number
}

export interface AttemptTurns {
  /** Drawn for each attempt. */
  readonly by: string
  /** The key that `take` was called with. */
  readonly key: string
  /** The key that `count` was called with, and whether it has the turn alone. */
  readonly account?: { readonly key: string; readonly alone: boolean } | undefined
}

/**
 * Turns of attempts that several nodes share. Their keys are digests: names and addresses are not stored. A turn is a
 * lease by the store's clock. Every method has the same effect when it is called twice by one attempt. Methods reject
 * with Fault `identity_unavailable` if the store cannot be reached.
 */
export interface LockoutTurns {
  /** Takes the turn of a key for `ms` milliseconds, if nobody has it and the delay for its failures has passed. */
  take(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn>
  /** As `take`, but attempts run at the same time until there are `free` failures. Each counts as one until it has ended. */
  count(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn>
  /** The turns last `ms` milliseconds from now on, those that have not gone to another attempt. */
  renew(held: AttemptTurns, ms: number): Promise<void>
  /**
   * Ends an attempt. `right`: true forgets failures, false counts one, undefined leaves them as they were. Resolves with
   * false if another attempt has had a turn of it meanwhile; then it counts as `undefined` does.
   * @param forget milliseconds after which failures of the key and of the account are forgotten
   */
  end(
    held: AttemptTurns,
    right: boolean | undefined,
    forget: { readonly key: number; readonly account: number },
  ): Promise<boolean>
  /** Forgets the failures of all keys that fit one of the patterns (`%`: any part). Resolves with their number. */
  clear(patterns: readonly string[]): Promise<number>
}
