/** The thread of the store. While the service runs, SQLite runs only here (sqlite-link.ts says why). */
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { BUSY_TIMEOUT, monotonicMs, openSqliteFile, type SqlitePlan } from './sqlite-file.ts'
import type { VerbRequest, Opening, Reply, TroubleMessage } from './sqlite-link.ts'
import { prepareVerbs, type SqliteVerb, type SqliteVerbs } from './sqlite-verbs.ts'
import { describeTrouble } from './store-error.ts'
import { FileGuard } from './store-files.ts'
import { messageOf } from '../kernel/thrown.ts'

// In WAL mode, a read never waits for a lock.
const READS: ReadonlySet<SqliteVerb> = new Set([
  'find',
  'list',
  'listBy',
  'countBy',
  'changes',
  'running',
] as const)
/** Milliseconds between two checks of the files. */
const CHECK_INTERVAL = 1000

/** Runs the verbs that are requested, and reports when the store gets into trouble or out of it. */
class RequestHandler {
  readonly #db: DatabaseSync
  readonly #verbs: SqliteVerbs
  readonly #guard: FileGuard
  readonly #send: (message: Reply | TroubleMessage) => void
  /** Milliseconds that SQLite waits for a lock at the moment. */
  #patience = BUSY_TIMEOUT
  #reported: string | undefined

  constructor(db: DatabaseSync, path: string, send: (message: Reply | TroubleMessage) => void) {
    this.#db = db
    this.#verbs = prepareVerbs(db)
    this.#guard = new FileGuard(path)
    this.#send = send
  }

  answer(request: VerbRequest): void {
    // What is written to a deleted file is lost.
    if (!READS.has(request.verb)) this.#guard.checkFiles()
    const reply = this.#reply(request)
    // Before the reply, so that the reason of a failure is known when the failure arrives.
    this.#reportTrouble()
    this.#send(reply)
  }

  checkFiles(): void {
    try {
      this.#guard.checkContents()
    } catch {
      // A file vanished between two system calls, or no descriptor is left: the next check will show it.
    }
    this.#reportTrouble()
  }

  #reply(request: VerbRequest): Reply {
    const { id } = request
    const { unfit } = this.#guard
    if (unfit !== undefined) return { id, outcome: 'unavailable', detail: unfit }
    if (isLate(request)) return { id, outcome: 'unavailable', detail: 'those before it took too long' }
    try {
      this.#wait(request.patience)
      // The type VerbRequest ties each verb to its arguments; the compiler cannot follow that through a lookup.
      const verb = this.#verbs[request.verb] as (...args: VerbRequest['args']) => unknown
      const value = verb(...request.args)
      this.#guard.succeeded()
      return { id, outcome: 'done', value }
    } catch (thrown) {
      this.#guard.failed(thrown)
      const detail = describeTrouble(thrown)
      return detail === undefined
        ? { id, outcome: 'broken', error: thrown }
        : { id, outcome: 'unavailable', detail }
    }
  }

  #wait(patience: number): void {
    if (patience === this.#patience) return
    this.#db.exec(`PRAGMA busy_timeout = ${patience}`)
    this.#patience = patience
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
const isLate = ({ verb, deadline, patience }: VerbRequest): boolean =>
  deadline - monotonicMs() < (READS.has(verb) ? 0 : patience)

/** Opens the store, reports that, and serves requests until the message `close`. */
function serveRequests(port: MessagePort, plan: SqlitePlan): void {
  const send = (message: Opening | Reply | TroubleMessage): void => port.postMessage(message)
  try {
    const db = openSqliteFile(plan)
    const handler = new RequestHandler(db, plan.path, send)
    const timer = setInterval(() => handler.checkFiles(), CHECK_INTERVAL)
    port.on('message', (request: VerbRequest | 'close') => {
      if (request !== 'close') handler.answer(request)
      else {
        clearInterval(timer)
        db.close()
        port.close()
      }
    })
    send({ opened: true })
  } catch (thrown) {
    send({ opened: false, message: messageOf(thrown) })
  }
}

if (parentPort) serveRequests(parentPort, workerData as SqlitePlan)
