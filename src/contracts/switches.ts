/** A maintenance switch in force (C9). */
export interface Closure {
  /** The operator's own words, told to clients in place of the fixed text. */
  readonly message: string | undefined
  /** Seconds. */
  readonly retryAfter: number
  /** Whether this client address may pass all the same. */
  admitsAddress(address: string): boolean
  /** Ids of clients whose calls pass, if their token verifies (C9.2). Empty: no client passes. */
  readonly clients: ReadonlySet<string>
}

/** The maintenance switches, answered at once from memory: asked on every call. */
export interface Switches {
  /** The whole service (C4.2). */
  service(): Closure | undefined
  /** This business, area or backend (C4.9). */
  place(business: string, area: string, backend: string): Closure | undefined
  /** The identity endpoints, which are switched off only by their own word (C9.2). */
  identity(): Closure | undefined
}
