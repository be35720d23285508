/** The program of a conversion thread. On the main thread, a large conversion would delay all other calls (T4.7). */
import { parentPort } from 'node:worker_threads'
import { own, perform, type ConversionReply, replyOf, type Task } from './tasks.ts'

function answer(task: Task): ConversionReply {
  try {
    const { bytes, found } = perform(task)
    return { bytes: own(bytes), found }
  } catch (thrown) {
    return replyOf(thrown)
  }
}

const port = parentPort
port?.on('message', (task: Task) => {
  const reply = answer(task)
  port.postMessage(reply, 'bytes' in reply ? [reply.bytes.buffer] : [])
})
