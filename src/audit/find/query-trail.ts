/** Asks the files of the trail, in a thread (C12.5). */
import {
  type Progress,
  type ScanRequest,
  type ScanStep,
  TrailReadError,
  type TrailReader,
} from '../../contracts/audit-query.ts'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../../kernel/beside.ts'
import { runVerification } from '../verify/run-verification.ts'
import { UnreadableTrailError } from '../verify/verify.ts'
import type { TrailBeginning } from '../beginning.ts'
import type { AuditPlan } from '../schema.ts'
import { readQuery } from './read-query.ts'
import type { FromScan } from './scan-thread.ts'
import { messageOf } from '../../kernel/thrown.ts'

/** MiB of the thread's heap. The rows of a day stand outside of it. */
const HEAP = 1024

/**
 * The rows that answer, in batches, then the end. The thread waits until a batch was taken. Rejects with TrailReadError. To
 * leave it early ends the thread.
 */
export async function* queryTrail(
  order: ScanRequest,
  onProgress: (progress: Progress) => void = () => undefined,
): AsyncGenerator<ScanStep> {
  const thread = new ScanThread(order, onProgress)
  try {
    for (;;) {
      const step = await thread.next()
      yield step
      if (step.kind === 'end') return
    }
  } finally {
    await thread.end()
  }
}

/**
 * Reads a trail. It is compared with the anchors that stand in files, those in the log are elsewhere; and with what the store
 * remembers of its beginning.
 */
export const trailReader = (
  { folder, anchors }: AuditPlan,
  beginning: () => Promise<TrailBeginning | undefined>,
): TrailReader => ({
  readQuery,
  query: (order, onProgress) => queryTrail({ ...order, folders: [folder] }, onProgress),
  verify: async () => {
    try {
      return await runVerification({ folder, anchors: filesOf(anchors), beginning: await beginning() })
    } catch (thrown) {
      throw thrown instanceof UnreadableTrailError ? new TrailReadError(thrown.message) : thrown
    }
  },
})

const filesOf = (anchors: AuditPlan['anchors']): readonly string[] =>
  anchors.flatMap((anchor) => (anchor.to === 'file' && existsSync(anchor.file) ? [anchor.file] : []))

class ScanThread {
  readonly #worker: Worker
  #waiting: PromiseWithResolvers<ScanStep> | undefined

  constructor(order: ScanRequest, onProgress: (progress: Progress) => void) {
    this.#worker = new Worker(programBeside(import.meta.url, 'scan-thread'), {
      name: 'audit scan',
      workerData: order,
      env: threadEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: HEAP },
    })
    this.#worker
      .on('message', (message: FromScan) => {
        if (message.kind === 'progress') onProgress(message.progress)
        else if (message.kind === 'step') this.#waiting?.resolve(message.step)
        else this.#fail(message.message)
      })
      .on('error', (error) => this.#fail(messageOf(error)))
      .on('exit', () => this.#fail('the thread that reads the trail has ended'))
  }

  next(): Promise<ScanStep> {
    this.#waiting = Promise.withResolvers<ScanStep>()
    this.#worker.postMessage('next')
    return this.#waiting.promise
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #fail(message: string): void {
    this.#waiting?.reject(new TrailReadError(message))
  }
}
