import type { OpenSharedRates } from '../calls/admission.ts'
import type { OpenSharedTurns } from '../people/lockouts.ts'

/** JSON data of a record, always copied. Its shape belongs to the code that writes that kind of record. */
export type StoredValue = Readonly<Record<string, unknown>>

/** The indexes by which several records are found and removed. The one with the fewest records per value comes first. */
export const STORE_INDEXES = ['family', 'subject', 'client', 'business'] as const
export type StoreIndex = (typeof STORE_INDEXES)[number]

/** Selects the records whose indexes have all these values. Without values, every record of the kind. */
export type IndexValues = Readonly<Partial<Record<StoreIndex, string>>>

export interface NewEntry {
  readonly value: StoredValue
  /** When the record expires, in milliseconds since the epoch. From then on it is absent. Undefined: kept until it is removed. */
  readonly expiresAt?: number
  readonly indexes?: IndexValues
}

export interface Entry {
  readonly key: string
  readonly value: StoredValue
  /** Grows by one with each `replace`. */
  readonly version: number
  readonly expiresAt: number | undefined
  /** Time of the first `consume`, milliseconds since the epoch. */
  readonly usedAt: number | undefined
}

/** In the order of keys, each record once. A record that is created or removed while pages are read may be missing. */
export interface PageQuery {
  /** The page holds later keys only: that of the last record of the page before; undefined for the first page. */
  readonly after: string | undefined
  readonly limit: number
  /** Only keys that begin with it, character by character. */
  readonly prefix?: string | undefined
}

/** A record that is created together with another one's last write. */
export interface NewRecord extends NewEntry {
  readonly kind: string
  readonly key: string
}

/**
 * A place in the change feed: the number of a change, and the mark that its append was given. After a failover that
 * lost changes a number may be given again, but never with the same mark.
 */
export interface FeedPlace {
  readonly sequence: number
  /** Empty in stores that cannot lose changes while they run. */
  readonly mark: string
}

export interface FeedPage {
  readonly changes: readonly Change[]
  /** Where the next reading continues; undefined while nothing was ever appended. */
  readonly last: FeedPlace | undefined
  /** The store's clock at the reading, milliseconds since the epoch. */
  readonly now: number
  /** Differs whenever a signing key or the secret of refresh tokens was written; undefined: they are not in the store. */
  readonly keys?: string | undefined
  /** The place from which it was to continue is not in the store any more: this page is the first of the whole feed. */
  readonly restarted: boolean
  readonly more: boolean
}

/** A reading of the change feed by one process, for the others of its machine. */
export interface FeedReading {
  /** The place behind which it was read. */
  readonly from: FeedPlace | undefined
  readonly page: FeedPage
  /** When the store was asked, and had answered: Clock.monotonic() of the process that holds it. */
  readonly askedAt: number
  readonly answeredAt: number
  /** Wall time, milliseconds since the epoch. */
  readonly askedAtWall: number
}

/** Kinds of records: signing keys, and the secret of refresh tokens. */
export const SIGNING_KEY = 'signing_key'
export const SECRET = 'secret'

/** One entry of the numbered change feed (revocation rules, switches, directory and configuration generations). */
export interface Change extends FeedPlace {
  /**
   * Strictly growing over all processes of a store, and never less than the wall clock (milliseconds since the epoch)
   * at the time of the append. So a new store, or one that was restored from a backup, continues above earlier numbers.
   */
  readonly sequence: number
  readonly topic: string
  readonly value: StoredValue
  readonly expiresAt: number | undefined
  /**
   * Milliseconds from the time of reading for which the change must stay in force. It ends only when that time has
   * passed *and* the wall clock has reached `expiresAt`. So a clock that is ahead for a while ends nothing too early.
   */
  readonly remaining?: number | undefined
}

export interface AppendOptions {
  /** When the change expires, in milliseconds since the epoch; undefined: never. */
  readonly expiresAt?: number | undefined
  /**
   * The highest number that the caller has seen. The change gets a higher one, also in a store that has lost changes in
   * a failover: otherwise a new revocation rule could be older than the tokens in use, and end none of them.
   */
  readonly above?: number | undefined
}

/** The kinds of stores of one machine alone. Nodes share a store of any other kind, which an extension adds. */
const OF_ONE_MACHINE: readonly string[] = ['sqlite', 'memory']

/** Whether several nodes share the store of a section `store`. */
export const isShared = ({ kind }: { readonly kind: string }): boolean => !OF_ONE_MACHINE.includes(kind)

/**
 * Parts of a store that nodes share, besides records and changes. Methods reject with Fault `identity_unavailable` if the store
 * cannot be reached.
 */
export interface SharedParts {
  /** How long calls are served with what is known of the store while it cannot be reached, in milliseconds. */
  readonly maxAge: number
  /** For a process that starts, and cannot know whether the store's clock is right, nor what its newest change hides. */
  atStart(): Promise<StoreAtStart>
  live(): Promise<LiveNodes>
  /** From now on the other nodes learn that this one is alive, and what it is. */
  join(node: JoiningNode): JoinedNode
  readonly openRates: OpenSharedRates
  readonly openTurns: OpenSharedTurns
}

/** The purpose of looking a record up; `use` if nothing is said. */
export type Purpose = 'use' | 'end'

/**
 * Keeps codes, token families, sessions, consents, revocations and switches. Each method is atomic, over any number of
 * processes. Every method rejects with Fault `identity_unavailable` if the store cannot be reached in time. A change that a
 * method has confirmed is not lost by a crash.
 */
export interface Store {
  /** False if a live record of that kind and key exists; then nothing changes. */
  create(kind: string, key: string, entry: NewEntry): Promise<boolean>
  /**
   * While nobody knows whether a record has expired (C11.7.1), it is found by who ends it, and rejects for who uses it with
   * Fault `identity_unavailable`.
   */
  find(kind: string, key: string, purpose?: Purpose): Promise<Entry | undefined>
  /** Marks a record as used. Exactly one caller ever gets `first: true`; a replay still finds the record. */
  consume(kind: string, key: string): Promise<{ readonly first: boolean; readonly entry: Entry } | undefined>
  /**
   * As `consume`. The first caller's write also gives the record its last value and creates other records: all of it or
   * nothing. A record to be created that exists already stays as it is. `entry` is the record after the write.
   */
  redeem(
    kind: string,
    key: string,
    next: { readonly value: StoredValue; readonly expiresAt?: number | undefined },
    creates: readonly NewRecord[],
  ): Promise<{ readonly first: boolean; readonly entry: Entry } | undefined>
  /** Compare-and-set: false if the version is another, or the record is gone. Without `expiresAt` that stays. */
  replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean>
  /** True if the record existed. With `version`: only if it has this version; otherwise nothing changes. */
  remove(kind: string, key: string, version?: number): Promise<boolean>
  /** All records of a kind, or one page of them. Many records need pages, because one method call has a time limit. */
  list(kind: string, page?: PageQuery): Promise<readonly Entry[]>
  listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]>
  /** A page of the records of a kind that have all the given index values. */
  pageBy(kind: string, where: IndexValues, page: PageQuery): Promise<readonly Entry[]>
  /**
   * Removes the records that exist when it is called, in small batches, so that other calls are not blocked. Resolves
   * with the number of live ones. Expired records are removed too, because the clock may be set back later.
   */
  removeBy(kind: string, where: IndexValues): Promise<number>
  /** The number that `removeBy` would resolve with. */
  countBy(kind: string, where: IndexValues): Promise<number>
  /** When one of these records was used last, milliseconds since the epoch; undefined if none was. */
  lastUseBy(kind: string, where: IndexValues): Promise<number | undefined>
  append(topic: string, value: StoredValue, options?: AppendOptions): Promise<FeedPlace>
  /** Changes behind a place that are still in force (`remaining`), in order. Undefined: from the beginning. */
  changes(after: FeedPlace | undefined, limit: number): Promise<FeedPage>
  /** Takes or keeps a lease, for `ms` milliseconds. True for each process where no other node shares the store. */
  hold(lease: string, ms: number): Promise<boolean>
  release(lease: string): Promise<void>
  /** Removes at most `limit` expired records and changes. Resolves with their number; 0 if none is left. */
  purge(limit: number): Promise<number>
  /**
   * Leaves nothing in the store's files of what was removed or replaced. Resolves with false while another process reads them: to be
   * tried again. Absent where the files are another program's.
   */
  readonly forget?: (() => Promise<boolean>) | undefined
  /** A lasting problem that an operator must solve, as text for the log: a missing or a damaged file. */
  readonly trouble?: string | undefined
  /** Why it takes no writes though it can be read, in words without an address: its disk is full, for example. */
  readonly refusesWrites?: string | undefined
  /** Parts that only a store which several nodes share has. */
  readonly shared?: SharedParts | undefined
  /**
   * For how many milliseconds since `time` (milliseconds since the epoch) the store did not answer this process. A change
   * written then may have been stored though its answer was lost. Undefined: that cannot be.
   */
  silentSince?(time: number): number
  /** How long all requests of one call to it may take together, in milliseconds; undefined: 5,000. */
  readonly patience?: number | undefined
  close(): Promise<void>
}

/**
 * Writes a record that other processes write too: from its value as it is then, as often as another one comes between.
 * Resolves with false if nothing was written. Rejects as the store does.
 *
 * @param change returns the next value from the present one, which is undefined if there is no record; undefined: it stays
 */
export async function changeRecord(
  store: Pick<Store, 'find' | 'create' | 'replace'>,
  kind: string,
  key: string,
  change: (value: StoredValue | undefined) => StoredValue | undefined,
): Promise<boolean> {
  for (;;) {
    const entry = await store.find(kind, key)
    const value = change(entry?.value)
    if (value === undefined) return false
    const written =
      entry === undefined
        ? await store.create(kind, key, { value })
        : await store.replace(kind, key, entry.version, value)
    if (written) return true
  }
}

/** Whether the clock of a store that nodes share is right, and whether its contents are the newest. */
export const DOUBTED = ['clock', 'contents'] as const
export type Doubted = (typeof DOUBTED)[number]

/** Applies the changes of a topic. Neither method may throw. */
export interface Subscriber {
  /**
   * Called at least once for each change, in the order of their sequence. A change may come twice, so applying it must
   * be idempotent.
   *
   * @param early true if this process has just appended the change and cannot read the store: earlier changes may be
   *   missing. The change comes again, in its order, when the store can be read.
   */
  apply(change: Change, early: boolean): void
  expire?(change: Change): void
  /**
   * Called when the store has lost changes in a failover, before all that it has come anew: whatever was made of changes
   * must be forgotten. A subscriber with `restore` keeps its changes instead.
   */
  reset?(): void
  /** The value with which a change that the store has lost is appended again. It ends when the lost one would. */
  restore?(change: Change): StoredValue
}

export interface Feed {
  /** Applies the changes of the topic that are known already before it returns. */
  subscribe(topic: string, subscriber: Subscriber): void
  /**
   * Stores a change. It is in force here when this resolves; other processes follow within a second. `expiresAt` is in
   * milliseconds since the epoch. Rejects with Fault `identity_unavailable` if the change could not be stored.
   */
  append(topic: string, value: StoredValue, expiresAt?: number): Promise<void>
}

/** This process's knowledge of the store, by the change feed, and how old that is. */
export interface View {
  /** Too old to judge tokens by: nobody knows what was revoked meanwhile. */
  readonly isOutdated: boolean
  /** Whether calls may be answered by it at once: not in the first turn after a pause. Every call asks it. */
  isSettled(): boolean
  /** Waits for one reading of the feed, 300 ms at most. Never rejects. */
  settle(): Promise<void>
  /**
   * Resolves if tokens may be issued by it: it is at most a second old. If it is older, the feed is read once. Rejects
   * with Fault `identity_unavailable` if that takes more than 300 ms, or fails.
   */
  requireCurrent(): Promise<void>
}

/** The view of a process that shares its state with nobody. */
export const OWN_VIEW: View = {
  isOutdated: false,
  isSettled: () => true,
  settle: () => Promise.resolve(),
  requireCurrent: () => Promise.resolve(),
}

/** The facts that the other nodes know of a node. */
export interface NodeFacts {
  /** Drawn at each start. */
  readonly id: string
  readonly host: string
  /** Where it listens for clients: address and port. Absent: of an older version. */
  readonly address?: string
  /** The version of Postern. */
  readonly version: string
  /** A digest of its configuration: nodes with the same one serve the same. */
  readonly config: string
  /** Processes that serve. */
  readonly workers: number
  /** By how much the store's clock is ahead of its own, in seconds. */
  readonly clockOffset: number
  /** How long ago it read the change feed, in milliseconds. */
  readonly feedAge: number
  /** By how much it takes the store's clock to be ahead, in milliseconds; 0 if it believes it. Absent: of an older version. */
  readonly clockDoubt?: number
  /** It takes the store for older than what it has seen. Absent: of an older version. */
  readonly contentsDoubted?: boolean
}

/** The nodes that are alive, and what they have in common. */
export interface LiveNodes {
  readonly nodes: number
  readonly workers: number
  /** How many different configurations they have. */
  readonly configs: number
}

/** The facts that a store and its nodes tell a process that starts, besides the store's clock. */
export interface StoreAtStart {
  /** The newest time that somebody who was believed has written, milliseconds since the epoch; 0 if there is none. */
  readonly newest: number
  /** By how much a living node takes the clock to be ahead; undefined if no node is alive. */
  readonly clockDoubt: number | undefined
  /** Whether a node that is alive takes the store for older than what it has seen. */
  readonly contentsDoubted: boolean
}

/** A node that joins those that share its store. */
export interface JoiningNode {
  /** Its facts as they are now. */
  readonly facts: () => NodeFacts
  /**
   * Called when all nodes have had the same configuration for a while. Once it has resolved with true, it is not called
   * again for this agreement; until then each time that the others learn of this node. If it rejects, only after another while.
   */
  readonly agreed: () => Promise<boolean>
  /** Called with an error that is not the store's. */
  readonly failed: (cause: unknown) => void
}

export interface JoinedNode {
  /** The nodes that were alive when the others last learned of this one; undefined before that. */
  readonly live: LiveNodes | undefined
  /** This node has another configuration from now on. */
  changed(): void
  /** The others stop counting this node. Never rejects. */
  stop(): Promise<void>
}
