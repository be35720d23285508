import type { DatabaseSync } from 'node:sqlite'
import { BUSY_TIMEOUT, monotonicMs } from './sqlite-file.ts'
import type { Reply, ThreadMessage, VerbRequest } from './sqlite-link.ts'
import { prepareVerbs, type SqliteVerb, type SqliteVerbs } from './sqlite-verbs.ts'
import { atOnce } from './sqlite-transaction.ts'
import { describeTrouble } from './store-error.ts'
import type { FileGuard } from './store-files.ts'

/**
 * How the requests of one message are run. `read`: it never waits for a lock (WAL mode). `quick`: a write of few records,
 * which shares a transaction with others. `long`: a write that takes milliseconds.
 */
const WAYS: Readonly<Record<SqliteVerb, 'read' | 'quick' | 'long'>> = {
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
}

const wayOf = ({ verb }: VerbRequest): 'read' | 'quick' | 'long' => WAYS[verb]

/** Writes in one transaction: less than a millisecond in which no other process can write. */
const GROUP = 100

/** Runs the verbs that are requested, and reports when the store gets into trouble or out of it. */
export class RequestHandler {
  readonly #db: DatabaseSync
  readonly #verbs: SqliteVerbs
  readonly #guard: FileGuard
  readonly #send: (message: ThreadMessage) => void
  /** Milliseconds that SQLite waits for a lock at the moment. */
  #patience = BUSY_TIMEOUT
  #reported: string | undefined

  constructor(db: DatabaseSync, guard: FileGuard, send: (message: ThreadMessage) => void) {
    this.#db = db
    this.#verbs = prepareVerbs(db)
    this.#guard = guard
    this.#send = send
  }

  /**
   * Runs the requests of one message. Nobody who sent one has waited for another one of them, so reads come first: they
   * do not wait behind a lock. The writes of a transaction cost half as much as each by itself.
   */
  answer(requests: readonly VerbRequest[]): void {
    const { read = [], quick = [], long = [] } = Object.groupBy(requests, wayOf)
    if (read.length > 0) this.#reply(read.map((request) => this.#run(request)))
    for (let at = 0; at < quick.length; at += GROUP) this.#write(quick.slice(at, at + GROUP))
    for (const request of long) this.#write([request])
  }

  checkFiles(): void {
    try {
      this.#guard.checkContents()
    } catch {
      // A file vanished between two system calls, or no descriptor is left: the next check will show it.
    }
    this.#reportTrouble()
  }

  #write(group: readonly VerbRequest[]): void {
    const together = group.length > 1 ? this.#runTogether(group) : undefined
    if (together !== undefined) this.#reply(together)
    else
      for (const request of group) {
        this.#guard.checkFiles()
        this.#reply([this.#run(request)])
      }
  }

  /** Undefined if one of them cannot be run: then nothing is written, and each has to be run by itself. */
  #runTogether(group: readonly VerbRequest[]): readonly Reply[] | undefined {
    this.#guard.checkFiles()
    if (this.#guard.unfit !== undefined || group.some(isLate)) return undefined
    try {
      this.#wait(Math.min(...group.map(({ patience }) => patience)))
      const replies = atOnce(this.#db, () => group.map((request) => this.#done(request)))
      this.#guard.succeeded()
      return replies
    } catch {
      return undefined
    }
  }

  #run(request: VerbRequest): Reply {
    const { id } = request
    const { unfit } = this.#guard
    if (unfit !== undefined) return { id, outcome: 'unavailable', detail: unfit }
    if (isLate(request)) return { id, outcome: 'unavailable', detail: 'those before it took too long' }
    try {
      this.#wait(request.patience)
      const reply = this.#done(request)
      this.#guard.succeeded()
      return reply
    } catch (thrown) {
      this.#guard.failed(thrown)
      const detail = describeTrouble(thrown)
      return detail === undefined
        ? { id, outcome: 'broken', error: thrown }
        : { id, outcome: 'unavailable', detail }
    }
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

/**
 * Whether the request might miss its deadline, if its statement must wait for a lock as long as it may. Such a
 * request is not begun, so that nothing is written after its caller was told that it failed. And if a frozen process
 * holds the lock, the requests behind one waiting statement fail at once instead of one by one.
 */
const isLate = (request: VerbRequest): boolean =>
  request.deadline - monotonicMs() < (wayOf(request) === 'read' ? 0 : request.patience)
