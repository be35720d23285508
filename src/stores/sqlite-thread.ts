/** The thread of the store. While the service runs, SQLite runs only here (sqlite-link.ts says why). */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { messageOf } from '../kernel/thrown.ts'
import { openSqliteFile, type SqlitePlan } from './sqlite-file.ts'
import type { Opening, ThreadMessage, VerbRequest } from './sqlite-link.ts'
import { RequestHandler } from './sqlite-requests.ts'

/** Milliseconds between two checks of the files. */
const CHECK_INTERVAL = 1000

/** Opens the store, reports that, and serves requests until the message `close`. */
function serveRequests(port: MessagePort, plan: SqlitePlan): void {
  const send = (message: Opening | ThreadMessage): void => port.postMessage(message)
  try {
    const db = openSqliteFile(plan)
    const handler = new RequestHandler(db, plan.path, send)
    const timer = setInterval(() => handler.checkFiles(), CHECK_INTERVAL)
    port.on('message', (message: readonly VerbRequest[] | 'close') => {
      if (message !== 'close') handler.answer(message)
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
