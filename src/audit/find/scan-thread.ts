/** The program of a thread that scans the trail: on the main thread a scan would keep all calls waiting. */
import type { Progress, ScanRequest, ScanStep } from '../../contracts/audit-query.ts'
import { parentPort, workerData } from 'node:worker_threads'
import { scan } from './scan.ts'
import { messageOf } from '../../kernel/thrown.ts'

/** What the thread tells. It does the next step when it is sent any message. */
export type FromScan =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'step'; readonly step: ScanStep }
  | { readonly kind: 'failed'; readonly message: string }

const tell = (message: FromScan): void => parentPort?.postMessage(message)
const steps = scan(workerData as ScanRequest, (progress) => tell({ kind: 'progress', progress }))

function nextStep(): void {
  try {
    const next = steps.next()
    if (next.done !== true) tell({ kind: 'step', step: next.value })
  } catch (thrown) {
    tell({ kind: 'failed', message: messageOf(thrown) })
  }
}

parentPort?.on('message', nextStep)
