/** The thread of an audit trail (C12.4.2). It blocks: it takes no messages, only the records of its ring. */
import { parentPort, workerData } from 'node:worker_threads'
import { type ChainPlan, ChainWriter } from './chain-writer.ts'
import { RecordRing } from '../queue/record-ring.ts'

/** The data that the thread is started with. */
export interface ThreadPlan extends ChainPlan {
  readonly memory: SharedArrayBuffer
}

/** The thread's message: that there is news in the ring, or that a segment was abandoned, and why. */
export type AuditThreadMessage = null | { readonly abandoned: string; readonly displaced: boolean }

const { memory, ...plan } = workerData as ThreadPlan
const ring = new RecordRing(memory)
const send = (message: AuditThreadMessage): void => parentPort?.postMessage(message)
await new ChainWriter(plan, {
  ring,
  waits: ring,
  shares: false,
  signal: () => {
    if (ring.claimSignal()) send(null)
  },
  abandoned: (abandoned, displaced) => send({ abandoned, displaced }),
}).run()
