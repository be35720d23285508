/**
 * With this the keys of addresses begin. Anybody can call from many, so their budgets may be forgotten two days after their
 * last use; those of clients may not.
 */
export const OF_ADDRESS = 'a:'

/** What one process tells of a rate that all nodes share, and what it asks for. */
export interface BudgetUse {
  readonly key: string
  /** Calls per millisecond. */
  readonly perMs: number
  /** Calls at once, after a rest. */
  readonly burst: number
  /** Calls that were let in and that nobody has taken out of the budget yet; below 0: taken out, and given back. */
  readonly spent: number
  /** Calls to be taken out now, for this process to let in. */
  readonly want: number
}

export interface BudgetGrant {
  readonly key: string
  /** Calls that were taken out for this process: at most what it wanted. */
  readonly granted: number
  /** Calls that are left in the budget; below 0 if more were let in than there were. */
  readonly level: number
}

/** Keys of one request at most. */
export const MOST_REPORTS = 500

/**
 * The budgets of rates that several nodes share. A budget fills up by its rate, to its burst. Fits any engine that can
 * change a few rows at once.
 */
export interface Budgets {
  /**
   * Tells and asks for several keys at once, MOST_REPORTS at most. A number that `who` has used before changes nothing, so
   * a request may be repeated: then nothing is granted. What has no grant in the answer must be told again. Rejects with
   * Fault `identity_unavailable`.
   */
  exchange(who: string, number: number, reports: readonly BudgetUse[]): Promise<readonly BudgetGrant[]>
}
