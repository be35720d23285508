/** The thread of the store: the only place where SQLite runs while serving (why: sqlite-link.ts). */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { BUSY_TIMEOUT, openSqliteFile, type SqlitePlan } from './sqlite-file.ts'
import { monotonicMs, type Ask, type Opening, type Reply } from './sqlite-messages.ts'
import { describeTrouble } from './sqlite-trouble.ts'
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

/**
 * Whether it can still be answered in time, should its statement have to wait for a lock as long as it may. What
 * cannot is not begun, so that nothing is written after its caller was told that it failed; and where a frozen
 * process holds the lock, those who queued up behind one waiting statement are told so at once, not one by one.
 */
const isLate = ({ verb, deadline }: Ask): boolean =>
  deadline - monotonicMs() < (READS.has(verb) ? 0 : BUSY_TIMEOUT)

function answer(verbs: SqliteVerbs, ask: Ask): Reply {
  const { id } = ask
  if (isLate(ask)) return { id, outcome: 'unavailable', detail: 'those before it took too long' }
  try {
    // The union of asks ties each verb to its arguments; the compiler cannot follow that through a lookup.
    const verb = verbs[ask.verb] as (...args: Ask['args']) => unknown
    return { id, outcome: 'done', value: verb(...ask.args) }
  } catch (thrown) {
    const detail = describeTrouble(thrown)
    return detail === undefined
      ? { id, outcome: 'broken', error: thrown }
      : { id, outcome: 'unavailable', detail }
  }
}

/** Opens the store, says so, and answers what is asked until it is told to close. */
function answerAsks(port: MessagePort, plan: SqlitePlan): void {
  const send = (message: Opening | Reply): void => port.postMessage(message)
  try {
    const db = openSqliteFile(plan)
    const verbs = prepareVerbs(db)
    port.on('message', (ask: Ask | 'close') => {
      if (ask !== 'close') send(answer(verbs, ask))
      else {
        db.close()
        port.close()
      }
    })
    send({ opened: true })
  } catch (thrown) {
    send({ opened: false, message: thrown instanceof Error ? thrown.message : String(thrown) })
  }
}

if (parentPort) answerAsks(parentPort, workerData as SqlitePlan)
