/** A switch that closes something, for people (C14.3). Times in milliseconds since the epoch. */
export interface ClosedBy {
  /** `service`, `business/ACME` … */
  readonly scope: string
  /** Undefined for a switch that has no name. */
  readonly id?: string | undefined
  readonly source?: 'operator' | 'configuration' | undefined
  readonly from?: number | undefined
  readonly until?: number | undefined
  readonly by?: string | undefined
  readonly reason?: string | undefined
}

/** A maintenance switch in force (C9). */
export interface Closure {
  /** The operator's text for clients; undefined for the fixed text. */
  readonly message: string | undefined
  /** After how many seconds a client shall try again, for `Retry-After`. */
  readonly retryAfter: number
  /** Whether calls from this client address pass in spite of the switch. */
  admitsAddress(address: string): boolean
  /** Ids of clients whose calls pass if their token is valid (C9.2). Empty: no client passes. */
  readonly clients: ReadonlySet<string>
  readonly closedBy: readonly ClosedBy[]
}

/** The maintenance switches. Synchronous and from memory, because every call checks them. */
export interface Switches {
  /** The whole service (C4.2). */
  service(): Closure | undefined
  /** This business, area or backend (C4.9). */
  place(business: string, area: string, backend: string): Closure | undefined
  /** The identity endpoints. They have a switch of their own: that of the service does not close them (C9.2). */
  identity(): Closure | undefined
}
