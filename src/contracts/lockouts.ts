/** Whose attempts at a password are counted together (C6.3.5). */
export interface GuessingKey {
  /** As typed: a name that nobody has is counted like any other. */
  readonly user: string
  readonly client: string
  /** The user agent's address. */
  readonly network: string
}

/** What is known of an attempt before it is made. Decides how it is counted, never what it is answered. */
export interface AttemptStanding {
  /** Somebody has this name: invented ones are counted apart, so that they push nobody's count out. */
  readonly nameExists: boolean
  /** This user has logged in from there before: what others try at the account slows nothing down there. */
  readonly familiar: boolean
}

/** One attempt whose turn has come. Must be ended, however it went. */
export interface Turn {
  /**
   * Counts the outcome: `undefined` where the attempt broke, which counts as nothing. Answers for how many milliseconds
   * a failed answer is to be held back, by what its network has earned.
   */
  end(right: boolean | undefined): Promise<number>
}

/**
 * Lets attempts at a password in (C6.3.5). One owner may serve many processes: what goes to and fro is plain data, but
 * for `Turn.end`, which becomes a second message; a process that dies ends its turns with undefined.
 */
export interface AttemptLimiter {
  /**
   * Resolves when this attempt may run: alone of its key, after the delay that the key's failures have earned; alone of
   * its account too, after the account's delay, where that is guessed at from many networks and this one is not
   * familiar. Rejects with Fault invalid_grant or identity_unavailable if too many wait already.
   */
  enter(key: GuessingKey, standing: AttemptStanding): Promise<Turn>
}

/** Somebody's failed logins, which make the next ones slow (C6.3.5). */
export interface Lockout {
  /** As typed; shortened, where that is very long. */
  readonly user: string
  /** Absent, as `network` is, where an account is guessed at from everywhere: see `AttemptLimiter.enter`. */
  readonly client?: string
  /** An address, or the site of an IPv6 address. */
  readonly network?: string
  readonly failures: number
  /** Milliseconds that the next attempt waits, from the last failure on. */
  readonly delay: number
  /** Of the last failure, milliseconds since the epoch. */
  readonly at: number
}

/** Which failures are meant: those that have every member that is given. */
export interface LockoutFilter {
  readonly user?: string | undefined
  readonly client?: string | undefined
  readonly network?: string | undefined
}

export interface Lockouts {
  /** Whoever is slowed down now, the latest first. */
  list(): readonly Lockout[]
  /** Forgets failures, in every process within a second; answers how many there were. */
  clear(filter: LockoutFilter): Promise<number>
}
