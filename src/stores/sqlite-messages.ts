import type { SqliteVerb, SqliteVerbs } from './sqlite-verbs.ts'

/** What passes between the thread that serves and the thread of the store. */
export type Ask<V extends SqliteVerb = SqliteVerb> = {
  [Verb in V]: {
    readonly id: number
    readonly verb: Verb
    readonly args: Parameters<SqliteVerbs[Verb]>
    /** By `monotonicMs`, after which nobody waits for it any more. */
    readonly deadline: number
    /** Milliseconds that its statement may wait for a lock. */
    readonly patience: number
  }
}[V]

export type Reply =
  | { readonly id: number; readonly outcome: 'done'; readonly value: unknown }
  /** The store is out of reach for a while: the detail is for the log. */
  | { readonly id: number; readonly outcome: 'unavailable'; readonly detail: string }
  /** A mistake of the code. */
  | { readonly id: number; readonly outcome: 'broken'; readonly error: unknown }

/** What keeps the store from working, in words for the log; told when it changes. */
export interface Trouble {
  readonly trouble: string | undefined
}

/** The first message of the thread. */
export type Opening = { readonly opened: true } | { readonly opened: false; readonly message: string }

/** Milliseconds of a clock that all threads of the machine share (performance.now() starts anew in each). */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n)
