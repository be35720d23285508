/** So many calls, by key: two lists of one length. */
export interface Tallies {
  readonly keys: readonly string[]
  readonly counts: readonly number[]
}

/**
 * What one worker has let in of budgets that it shares with others since it last told. Plain data, so that it can
 * cross to another process.
 */
export interface RateUsage {
  /** By client id. */
  readonly clients: Tallies
  /** By network: an IPv4 address, an IPv6 /64. */
  readonly addresses: Tallies
}
