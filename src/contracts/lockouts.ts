/** Whose attempts at a password are counted together (C6.3.5). */
export interface GuessingKey {
  /** As typed: a name that nobody has is counted like any other. */
  readonly user: string
  readonly client: string
  /** The user agent's address. */
  readonly network: string
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
export interface AttemptGate {
  /**
   * Resolves when this attempt may run: alone of its key, after the delay that the key's failures have earned.
   * Rejects with Fault invalid_grant or identity_unavailable if too many of the key wait already.
   */
  enter(key: GuessingKey): Promise<Turn>
}

/** Somebody's failed logins, which make the next ones slow (C6.3.5). */
export interface Lockout {
  /** As typed. */
  readonly user: string
  readonly client: string
  /** An address, or the site of an IPv6 address. */
  readonly network: string
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
