/** The thread of a store in a file: a service runs its statements only here (sqlite-link.ts says why). */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../../base/kernel/thrown.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import {
  type StoreOpening,
  openRequests,
  type StoreThreadMessage,
  type VerbRequest,
} from './sqlite-requests.ts'

/** Milliseconds between two checks of the files. */
const CHECK_INTERVAL = 1000

/** The messages of the link: the requests of one turn, or `close`, and nothing after that. */
type Message = readonly VerbRequest[] | 'close'

/** The messages that arrived while the thread waited for the disk: all of them share the next flush. */
function waitingAt(port: MessagePort): readonly Message[] {
  const found: Message[] = []
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    found.push((next as { readonly message: Message }).message)
  return found
}

function serveRequests(port: MessagePort, plan: SqlitePlan): void {
  const send = (message: StoreOpening | StoreThreadMessage): void => port.postMessage(message)
  const descriptors: number[] = []
  try {
    const { handler, close } = openRequests(plan, (descriptor) => descriptors.push(descriptor), send)
    const timer = setInterval(() => handler.checkFiles(), CHECK_INTERVAL)
    port.on('message', (message: Message) => {
      const messages = [message, ...waitingAt(port)]
      handler.answer(messages.filter((each) => each !== 'close').flat())
      if (messages.includes('close')) {
        clearInterval(timer)
        close()
        port.close()
      }
    })
    send({ opened: true, descriptors })
  } catch (thrown) {
    send({ opened: false, descriptors, message: messageOf(thrown) })
  }
}

if (parentPort) serveRequests(parentPort, workerData as SqlitePlan)
