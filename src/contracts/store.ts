/** JSON data as it is kept, always by copy; whoever writes a kind of record owns its shape. */
export type StoredValue = Readonly<Record<string, unknown>>

/** The indexes by which records are found and removed together. */
export type StoreIndex = 'family' | 'subject' | 'client' | 'business'

/** Which records are meant: those whose indexes have all these values; with none, every record of the kind. */
export type IndexValues = Readonly<Partial<Record<StoreIndex, string>>>

export interface NewEntry {
  readonly value: StoredValue
  /** Milliseconds since the epoch; from that moment on the record is absent. Undefined: kept until removed. */
  readonly expiresAt?: number
  readonly indexes?: IndexValues
}

export interface Entry {
  readonly key: string
  readonly value: StoredValue
  /** Grows by one with each `replace`. */
  readonly version: number
  readonly expiresAt: number | undefined
  /** When `consume` first took it, milliseconds since the epoch. */
  readonly usedAt: number | undefined
}

/** Records in an order of the store's own, each once. What comes and goes meanwhile may be there or not. */
export interface Page {
  /** The key of the last record of the page before; undefined for the first page. */
  readonly after: string | undefined
  readonly limit: number
}

/** One entry of the numbered change feed (revocation rules, switches, directory and configuration generations). */
export interface Change {
  /**
   * Strictly growing over all processes of a store, and never less than the wall clock (ms since the epoch) when it was
   * appended: a store that is new, or was put back from a backup, goes on above what was given before.
   */
  readonly sequence: number
  readonly topic: string
  readonly value: StoredValue
  readonly expiresAt: number | undefined
  /**
   * Milliseconds that the service must still run before it may be over, counted when it was read. It is over when that
   * time has passed *and* the wall clock says so: a clock that is ahead for a while ends nothing.
   */
  readonly remaining?: number | undefined
}

/**
 * What happened: codes, token families, sessions, consents, revocations, switches. Its verbs cannot be misused under
 * concurrency, over any number of processes. Every verb rejects with Fault `identity_unavailable` if the store
 * cannot be reached in time; nothing that was answered is lost by a crash.
 */
export interface Store {
  /** False if a live record of that kind and key exists; then nothing changes. */
  create(kind: string, key: string, entry: NewEntry): Promise<boolean>
  find(kind: string, key: string): Promise<Entry | undefined>
  /** Marks as used. Exactly one caller ever gets `first: true`; a replay still finds the record. */
  consume(kind: string, key: string): Promise<{ readonly first: boolean; readonly entry: Entry } | undefined>
  /** Compare-and-set: false if the version is another by now, or the record is gone. `expiresAt` unchanged unless given. */
  replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean>
  /** True if it was there. */
  remove(kind: string, key: string): Promise<boolean>
  /** All of them, or a page: of many, all would take longer than a verb may. */
  list(kind: string, page?: Page): Promise<readonly Entry[]>
  listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]>
  /**
   * Removes what is there when it is called, in small batches, so that others have their turn. Answers how many were
   * live. What has expired by the wall clock goes too: the clock may be set back.
   */
  removeBy(kind: string, where: IndexValues): Promise<number>
  /** How many `removeBy` would answer. */
  countBy(kind: string, where: IndexValues): Promise<number>
  /** Appends to the change feed; answers its sequence. */
  append(topic: string, value: StoredValue, expiresAt?: number): Promise<number>
  /** Entries after `sequence` that are not over (Change.remaining), in order; 0 for all. */
  changes(sequence: number): Promise<readonly Change[]>
  /** Removes at most `limit` expired records and changes; answers how many: 0 when none is left. */
  purge(limit: number): Promise<number>
  /** What keeps it from working until somebody mends it, in words for the log: a file that is gone, or damaged. */
  readonly trouble?: string | undefined
  close(): Promise<void>
}

/** Whoever acts on the changes of a topic. Neither method may throw. */
export interface Subscriber {
  /**
   * At least once per change, in order of their sequence; the same change may come again, if the store was out of
   * reach when this process appended it. Acting on it twice must do what once does.
   *
   * `early`: such a change, told before others that came before it. It comes again, in its order, when the store can be
   * read. Nobody may take it for a sign that those before it were heard of.
   */
  apply(change: Change, early: boolean): void
  /** It has expired. */
  expire?(change: Change): void
}

/** The numbered change feed as a process follows it (design: stores). */
export interface Feed {
  /** What is known of the topic already is applied before this returns. */
  subscribe(topic: string, subscriber: Subscriber): void
  /**
   * Keeps a change and applies it here before it resolves; other processes follow within a second. `expiresAt` in ms
   * since the epoch. Rejects with Fault `identity_unavailable` if it could not be kept.
   */
  append(topic: string, value: StoredValue, expiresAt?: number): Promise<void>
}
