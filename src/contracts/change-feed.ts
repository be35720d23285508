import type { Change, StoredValue } from './store.ts'

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
