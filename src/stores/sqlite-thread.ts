/** The thread of the store: the only place where SQLite runs while serving (why: sqlite-link.ts). */
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { FileGuard } from './store-files.ts'
import { BUSY_TIMEOUT, monotonicMs, openSqliteFile, type SqlitePlan } from './sqlite-file.ts'
import type { VerbRequest, Opening, Reply, TroubleMessage } from './sqlite-link.ts'
import { describeTrouble } from './store-error.ts'
import { prepareVerbs, type SqliteVerb, type SqliteVerbs } from './sqlite-verbs.ts'

// In WAL, readers wait for nobody.
const READS: ReadonlySet<SqliteVerb> = new Set([
  'find',
  'list',
  'listBy',
  'countBy',
  'changes',
  'running',
] as const)
/** How often the files are looked at, in milliseconds. */
const LOOK = 1000

/** Answers what is asked, and knows how the store is. */
class RequestHandler {
  readonly #db: DatabaseSync
  readonly #verbs: SqliteVerbs
  readonly #guard: FileGuard
  readonly #send: (message: Reply | TroubleMessage) => void
  /** Milliseconds that SQLite waits for a lock now. */
  #patience = BUSY_TIMEOUT
  #reported: string | undefined

  constructor(db: DatabaseSync, path: string, send: (message: Reply | TroubleMessage) => void) {
    this.#db = db
    this.#verbs = prepareVerbs(db)
    this.#guard = new FileGuard(path)
    this.#send = send
  }

  answer(request: VerbRequest): void {
    // What is written to a file that is not there any more is lost.
    if (!READS.has(request.verb)) this.#guard.checkFiles()
    const reply = this.#reply(request)
    // First: whoever hears that it failed can request why.
    this.#reportTrouble()
    this.#send(reply)
  }

  checkFiles(): void {
    try {
      this.#guard.checkContents()
    } catch {
      // It was taken away between two system calls, or there is no descriptor left: the next look tells.
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
      // The union of asks ties each verb to its arguments; the compiler cannot follow that through a lookup.
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
 * Whether it can still be answered in time, should its statement have to wait for a lock as long as it may. What
 * cannot is not begun, so that nothing is written after its caller was told that it failed; and where a frozen
 * process holds the lock, those who queued up behind one waiting statement are told so at once, not one by one.
 */
const isLate = ({ verb, deadline, patience }: VerbRequest): boolean =>
  deadline - monotonicMs() < (READS.has(verb) ? 0 : patience)

/** Opens the store, says so, and answers what is asked until it is told to close. */
function serveRequests(port: MessagePort, plan: SqlitePlan): void {
  const send = (message: Opening | Reply | TroubleMessage): void => port.postMessage(message)
  try {
    const db = openSqliteFile(plan)
    const handler = new RequestHandler(db, plan.path, send)
    const timer = setInterval(() => handler.checkFiles(), LOOK)
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
    send({ opened: false, message: thrown instanceof Error ? thrown.message : String(thrown) })
  }
}

if (parentPort) serveRequests(parentPort, workerData as SqlitePlan)
