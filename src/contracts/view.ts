/** What this process knows of the store, as the change feed told it, and how old that is. */
export interface View {
  /** Too old to judge tokens by: nobody knows what was revoked meanwhile. */
  readonly isOutdated: boolean
  /**
   * Whether calls may be answered by it at once: false in the first turn after this process was paused, or the machine
   * suspended. A call asks this, so it costs next to nothing.
   */
  isSettled(): boolean
  /** Waits for one reading of the feed, 300 ms at most. Never rejects. */
  settle(): Promise<void>
  /**
   * Resolves if tokens may be issued by it: it is at most a second old. If it is older, the feed is read once. Rejects
   * with Fault `identity_unavailable` if that takes more than 300 ms, or fails.
   */
  requireCurrent(): Promise<void>
}

/** Of a process that shares its state with nobody. */
export const OWN_VIEW: View = {
  isOutdated: false,
  isSettled: () => true,
  settle: () => Promise.resolve(),
  requireCurrent: () => Promise.resolve(),
}
