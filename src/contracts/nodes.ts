/** What a node tells the others about itself. */
export interface NodeFacts {
  /** Drawn at each start. */
  readonly id: string
  /** Its host name, for people. */
  readonly host: string
  /** Of Postern. */
  readonly version: string
  /** The version of the store's tables that it knows. */
  readonly schema: number
  /** A digest of its configuration: nodes with the same one serve the same. */
  readonly config: string
  /** Processes that serve. */
  readonly workers: number
  /** By how much the store's clock is ahead of its own, in seconds. */
  readonly clockOffset: number
  /** Milliseconds since it read the change feed. */
  readonly feedAge: number
  /** Milliseconds by which it takes the store's clock to be ahead; 0 if it believes it. Absent: of an older version. */
  readonly clockDoubt?: number
  /** It takes the store for older than what it has seen. Absent: of an older version. */
  readonly contentsDoubted?: boolean
}

export interface SeenNode extends NodeFacts {
  /** Milliseconds since the epoch, by the store's clock. */
  readonly seenAt: number
}

/** The nodes that are alive, and what they have in common. */
export interface LiveNodes {
  readonly nodes: number
  /** Of all of them. */
  readonly workers: number
  /** How many different configurations they have. */
  readonly configs: number
}

/** What a store and its nodes say to a process that starts, besides the store's clock. */
export interface StoreAtStart {
  /** The newest time that somebody who was believed has written, milliseconds since the epoch; 0 if there is none. */
  readonly newest: number
  /** What a node that is alive takes the clock to be ahead by; undefined if none is alive. */
  readonly clockDoubt: number | undefined
  /** Whether a node that is alive takes the store for older than what it has seen. */
  readonly contentsDoubted: boolean
}

/** The nodes that share a store. Methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Nodes {
  /** The version of the tables that this process knows. */
  readonly knownSchema: number
  /** Tells that a node is alive, and what it is. */
  beat(facts: NodeFacts): Promise<LiveNodes>
  /** Those that are alive. */
  live(): Promise<LiveNodes>
  /** For a process that starts, and cannot know whether the store's clock is right, nor what its newest change hides. */
  atStart(): Promise<StoreAtStart>
  /** All that were seen within the last hour, the latest first. */
  list(): Promise<readonly SeenNode[]>
  /** A node ends: nobody counts it any more. */
  leave(id: string): Promise<void>
}
