/** What a link and the thread of the store send each other. */
import type { SqliteVerb, SqliteVerbs } from './sqlite-verbs.ts'

/** A request to the thread of the store. */
export type VerbRequest<V extends SqliteVerb = SqliteVerb> = {
  [Verb in V]: {
    readonly id: number
    readonly verb: Verb
    readonly args: Parameters<SqliteVerbs[Verb]>
    /** `monotonicMs` after which nobody waits for the reply. */
    readonly deadline: number
  }
}[V]

export type Reply =
  | { readonly id: number; readonly outcome: 'done'; readonly value: unknown }
  /** The store cannot answer at the moment. The detail is for the log. `refusal`: it can be read, and takes no write. */
  | {
      readonly id: number
      readonly outcome: 'unavailable'
      readonly detail: string
      readonly refusal?: string | undefined
    }
  /** A programming error. */
  | { readonly id: number; readonly outcome: 'broken'; readonly error: unknown }

/** Sent when it changes: why the store does not work, in words for the log; undefined if it works. */
export interface TroubleMessage {
  readonly trouble: string | undefined
}

/** What the thread sends while it runs. */
export type ThreadMessage = readonly Reply[] | TroubleMessage

/** The first message of the thread. The descriptors are of the store's files, and stay open when the thread ends. */
export type Opening =
  | { readonly opened: true; readonly descriptors: readonly number[] }
  | { readonly opened: false; readonly descriptors: readonly number[]; readonly message: string }

/**
 * How the requests of one message are run. `read`: it never waits for a lock (WAL mode). `quick`: a write of few records,
 * which shares a transaction with others. `long`: a write that takes milliseconds.
 */
const WAYS = {
  find: 'read',
  list: 'read',
  listBy: 'read',
  pageBy: 'read',
  countBy: 'read',
  lastUseBy: 'read',
  changes: 'read',
  running: 'read',
  create: 'quick',
  consume: 'quick',
  redeem: 'quick',
  replace: 'quick',
  remove: 'quick',
  append: 'quick',
  removeBy: 'long',
  purge: 'long',
  ran: 'long',
} as const satisfies Readonly<Record<SqliteVerb, 'read' | 'quick' | 'long'>>

/** Changes nothing, so it may run twice. */
export type ReadingVerb = {
  [Verb in SqliteVerb]: (typeof WAYS)[Verb] extends 'read' ? Verb : never
}[SqliteVerb]

export const wayOf = ({ verb }: VerbRequest): 'read' | 'quick' | 'long' => WAYS[verb]
