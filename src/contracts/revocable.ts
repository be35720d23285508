/** What people and clients hold in the store, as operators see and end it. */
import type { IndexValues } from './store.ts'
import type { RevocationCause } from './tokens.ts'

/** Logins in browsers, families of refresh tokens, what users have allowed clients. */
export const REVOCABLE_KINDS = ['sessions', 'families', 'consents'] as const

export type RevocableKind = (typeof REVOCABLE_KINDS)[number]

/** A record as operators see it. It has no token, no code and no value of a cookie. Times in ms since the epoch. */
export interface RevocableRecord {
  /** The hash of a session's cookie, the id of a family, the key of a consent. */
  readonly id: string
  readonly subject: string
  readonly client?: string | undefined
  readonly business?: string | undefined
  readonly fund?: string | undefined
  /** Without the target. */
  readonly scopes?: readonly string[] | undefined
  /** When the user logged in; of a consent: when it was given last. */
  readonly begunAt: number
  /** When a page of the session, or a refresh token of the family, was used last. */
  readonly lastUsedAt?: number | undefined
  /** Undefined for a consent, which stays until it is withdrawn. */
  readonly endsAt?: number | undefined
  /** Of a session: "Firefox on Windows". */
  readonly browser?: string | undefined
}

/** By which values each kind can be selected. */
export type RevocableWhere = Pick<IndexValues, 'subject' | 'client' | 'business'>

export interface RevocablePage {
  readonly found: readonly RevocableRecord[]
  /** `after` of the next page; undefined after the last. A page may hold fewer than asked for, and not be the last. */
  readonly next: string | undefined
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface RevocableRecords {
  /** In the order of ids. What a revocation rule has ended is left out. */
  list(
    kind: RevocableKind,
    where: RevocableWhere,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<RevocablePage>
  find(kind: RevocableKind, id: string): Promise<RevocableRecord | undefined>
  /**
   * Ends one: a session; a family with its code and access tokens; a consent with all that it gave. Resolves with the
   * number of families that have ended with it; undefined if it was gone already.
   */
  end(kind: RevocableKind, record: RevocableRecord, order: RevocationCause): Promise<number | undefined>
}
