/** The program of a thread that verifies a trail: on the main thread it would keep all calls waiting. */
import { parentPort, workerData } from 'node:worker_threads'
import {
  UnreadableTrailError,
  type Verification,
  type VerifyRequest,
  type VerifyProgress,
  verifyTrail,
} from './verify.ts'

export type FromVerification =
  | { readonly kind: 'progress'; readonly progress: VerifyProgress }
  | { readonly kind: 'done'; readonly verification: Verification }
  | { readonly kind: 'unreadable'; readonly message: string }

const tell = (message: FromVerification): void => parentPort?.postMessage(message)

try {
  const verification = verifyTrail(workerData as VerifyRequest, (progress) =>
    tell({ kind: 'progress', progress }),
  )
  tell({ kind: 'done', verification })
} catch (thrown) {
  if (!(thrown instanceof UnreadableTrailError)) throw thrown
  tell({ kind: 'unreadable', message: thrown.message })
}
