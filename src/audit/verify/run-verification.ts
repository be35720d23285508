import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../../kernel/beside.ts'
import { UnreadableTrailError, type Verification, type VerifyRequest, type VerifyProgress } from './verify.ts'
import type { FromVerification } from './verify-thread.ts'

/** Verifies a trail in a thread of its own. Rejects with UnreadableTrailError. */
export function runVerification(
  order: VerifyRequest,
  progress: (progress: VerifyProgress) => void = () => undefined,
): Promise<Verification> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(programBeside(import.meta.url, 'verify-thread'), {
      name: 'audit verification',
      workerData: order,
      env: threadEnvironment(),
    })
    thread
      .on('message', (message: FromVerification) => {
        if (message.kind === 'progress') progress(message.progress)
        else if (message.kind === 'done') resolve(message.verification)
        else reject(new UnreadableTrailError(message.message))
      })
      .on('error', reject)
      .on('exit', () => reject(new Error('the thread of the verification has ended')))
  })
}
