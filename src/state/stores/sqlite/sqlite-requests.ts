import { openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { monotonicMs } from '../../../base/kernel/clock.ts'
import { BUSY_TIMEOUT, framesOf, openSqliteFile, type SqlitePlan } from './sqlite-file.ts'
import { atOnce, verbsOf, type SqliteVerb, type SqliteVerbs } from './sqlite-verbs.ts'
import { describeRefusal, describeTrouble } from '../link/store-error.ts'
import { FileGuard, logOf } from './store-files.ts'

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

/** `trouble`, sent when it changes: why the store does not work, in words for the log; undefined if it works. */
export type StoreThreadMessage = readonly Reply[] | { readonly trouble: string | undefined }

/** The first message of the thread. The descriptors are of the store's files, and stay open when the thread ends. */
export type StoreOpening =
  | { readonly opened: true; readonly descriptors: readonly number[] }
  | { readonly opened: false; readonly descriptors: readonly number[]; readonly message: string }

/**
 * How the requests of one message are run. `read`: it never waits for a lock (WAL mode). `quick`: a write of few records,
 * which shares a transaction with others. `long`: a write that takes milliseconds. `alone`: SQLite allows no transaction around it.
 */
const WAYS = {
  find: 'read',
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
  forget: 'alone',
} as const satisfies Readonly<Record<SqliteVerb, 'read' | 'quick' | 'long' | 'alone'>>

/** Changes nothing, so it may run twice. */
export type ReadingVerb = {
  [Verb in SqliteVerb]: (typeof WAYS)[Verb] extends 'read' ? Verb : never
}[SqliteVerb]

/** A store file that answers requests in the thread that has opened it. */
export interface OpenedRequests {
  readonly handler: RequestHandler
  readonly close: () => void
}

/**
 * Opens the file of a store, which blocks this thread, and so does each request.
 *
 * @param keep is told each descriptor of the store's files: it must stay open as long as another connection of this process
 * @throws StoreError or SQLite's error if the file cannot be used
 */
export function openRequests(
  plan: SqlitePlan,
  keep: (descriptor: number) => void,
  send: (message: StoreThreadMessage) => void,
): OpenedRequests {
  const db = openSqliteFile(plan)
  const open = (path: string): number => {
    const descriptor = openSync(path, 'r')
    keep(descriptor)
    return descriptor
  }
  const [database, log] = [open(plan.path), open(logOf(plan.path))]
  const guard = new FileGuard(plan.path, { database, log, frames: () => framesOf(db) })
  return { handler: new RequestHandler(db, guard, send), close: () => db.close() }
}

const wayOf = ({ verb }: VerbRequest): (typeof WAYS)[SqliteVerb] => WAYS[verb]

/** Writes in one transaction: less than a millisecond in which no other process can write. */
const GROUP = 100

export class RequestHandler {
  readonly #db: DatabaseSync
  readonly #verbs: SqliteVerbs
  readonly #guard: FileGuard
  readonly #send: (message: StoreThreadMessage) => void
  /** Milliseconds that SQLite waits for a lock at the moment. */
  #patience = BUSY_TIMEOUT
  #reported: string | undefined

  constructor(db: DatabaseSync, guard: FileGuard, send: (message: StoreThreadMessage) => void) {
    this.#db = db
    this.#verbs = verbsOf(db)
    this.#guard = guard
    this.#send = send
  }

  /**
   * Runs the requests of one message. Nobody who sent one has waited for another one of them, so reads come first: they
   * do not wait behind a lock. The writes of a transaction cost half as much as each by itself.
   */
  answer(requests: readonly VerbRequest[]): void {
    const { read = [], quick = [], long = [], alone = [] } = Object.groupBy(requests, wayOf)
    if (read.length > 0) this.#guard.check()
    if (read.length > 0) this.#reply(read.map((request) => this.#run(request)))
    for (let at = 0; at < quick.length; at += GROUP) this.#write(quick.slice(at, at + GROUP))
    for (const request of [...long, ...alone]) this.#write([request])
  }

  checkFiles(): void {
    this.#guard.check()
    this.#reportTrouble()
  }

  #write(group: readonly VerbRequest[]): void {
    const together = group.length > 1 ? this.#runTogether(group) : undefined
    if (together !== undefined) this.#reply(together)
    else
      for (const request of group) {
        this.#guard.check()
        this.#reply([this.#run(request)])
      }
  }

  /** Undefined if one of them cannot be run: then nothing is written, and each has to be run by itself. */
  #runTogether(group: readonly VerbRequest[]): readonly Reply[] | undefined {
    this.#guard.check()
    if (this.#guard.unfit !== undefined) return undefined
    try {
      return this.#commit(group)
    } catch {
      return undefined
    }
  }

  #run(request: VerbRequest): Reply {
    const { id } = request
    const { unfit } = this.#guard
    if (unfit !== undefined) return { id, outcome: 'unavailable', detail: unfit }
    try {
      const way = wayOf(request)
      const [written] = way === 'read' || way === 'alone' ? [] : this.#commit([request])
      if (written !== undefined) return written
      requireInTime([request])
      // Not longer: this thread answers nobody meanwhile, and no other process can write.
      if (way === 'alone') this.#wait(BUSY_TIMEOUT)
      const reply = this.#done(request)
      this.#guard.succeeded()
      return reply
    } catch (thrown) {
      this.#guard.failed(thrown)
      const detail = thrown instanceof NotDoneError ? thrown.message : describeTrouble(thrown)
      return detail === undefined
        ? { id, outcome: 'broken', error: thrown }
        : { id, outcome: 'unavailable', detail, refusal: describeRefusal(thrown) }
    }
  }

  /** All writes, or none. Throws as they do, and NotDoneError: also where they were written into a file that is lost. */
  #commit(group: readonly VerbRequest[]): readonly Reply[] {
    requireInTime(group)
    this.#wait(Math.min(...group.map(patienceOf)))
    const replies = atOnce(this.#db, () => {
      // SQLite counts only the pauses that it meant to make: on a busy machine it has waited for longer.
      requireInTime(group)
      return group.map((request) => this.#done(request))
    })
    this.#guard.check()
    if (this.#guard.unfit !== undefined) throw new NotDoneError(this.#guard.unfit)
    this.#guard.succeeded()
    return replies
  }

  #done({ id, verb, args }: VerbRequest): Reply {
    // The type VerbRequest ties each verb to its arguments; the compiler cannot follow that through a lookup.
    const run = this.#verbs[verb] as (...args: VerbRequest['args']) => unknown
    return { id, outcome: 'done', value: run(...args) }
  }

  #wait(patience: number): void {
    if (patience === this.#patience) return
    this.#db.exec(`PRAGMA busy_timeout = ${patience}`)
    this.#patience = patience
  }

  /** Reports trouble before the replies, so that the reason of a failure is known when the failure arrives. */
  #reply(replies: readonly Reply[]): void {
    this.#reportTrouble()
    this.#send(replies)
  }

  #reportTrouble(): void {
    const { trouble } = this.#guard
    if (trouble === this.#reported) return
    this.#reported = trouble
    this.#send({ trouble })
  }
}

/** The request does not count as done. The message is for the log. */
class NotDoneError extends Error {}

/** How long a write may take once it has the lock, in milliseconds. */
const TO_WRITE = 50
/** The step of SQLite's timeout, in milliseconds. The timeout is changed only when the step changes. */
const STEP = 50

/** Milliseconds that a write may wait for the lock, so that its caller gets the answer in time. */
const patienceOf = (request: VerbRequest): number =>
  Math.max(0, Math.floor((request.deadline - monotonicMs() - TO_WRITE) / STEP) * STEP)

/**
 * Throws NotDoneError if one of them would miss its deadline: so nothing is written after its caller was answered that
 * it failed. And where a frozen process holds the lock, the requests behind one waiting statement fail with it instead
 * of one by one.
 */
function requireInTime(group: readonly VerbRequest[]): void {
  const now = monotonicMs()
  for (const request of group)
    if (request.deadline - now < (wayOf(request) === 'read' ? 0 : TO_WRITE))
      throw new NotDoneError('those before it took too long')
}
