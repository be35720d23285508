/** Reads a trail in a thread: questions (C12.5), verifications (C12.4.6), and what is to be erased (C12.2.3). */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import {
  type ReadProgress,
  type RecordedErasure,
  type Redacted,
  type ScanRequest,
  type ScanStep,
  type TrailReader,
  TrailReadError,
} from '../../../base/contracts/records/audit-query.ts'
import { programBeside, threadEnvironment } from '../../../base/files/beside.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import type { RememberedTrails } from '../format/beginning.ts'
import type { AuditPlan } from '../format/schema.ts'
import type { OpenEnd } from './left-open.ts'
import { type MeantSubject, segmentsOf, type SubjectValues } from './personal.ts'
import type { ReadingMessage, ReadingRequest } from './reading-thread.ts'
import type { TrailVerification, VerifyRequest } from './verify.ts'

/**
 * Reads a trail. It is compared with the anchors that are in files, those in the log are elsewhere; and with what the store
 * remembers of its beginning.
 */
export const trailReader = (
  { folder, anchors }: AuditPlan,
  known: () => Promise<RememberedTrails>,
): TrailReader => ({
  query: (request, onProgress) => queryTrail({ ...request, folders: [folder] }, onProgress),
  verify: async () => runVerification({ folder, anchors: filesOf(anchors), ...(await known()) }),
})

const filesOf = (anchors: AuditPlan['anchors']): readonly string[] =>
  anchors.flatMap((anchor) => (anchor.to === 'file' && existsSync(anchor.file) ? [anchor.file] : []))

/**
 * The rows that answer, in batches, then the end. The thread waits until a batch was taken. Rejects with TrailReadError. To
 * leave it early ends the thread.
 */
export async function* queryTrail(
  query: ScanRequest,
  onProgress: (progress: ReadProgress) => void = () => undefined,
): AsyncGenerator<ScanStep> {
  await using thread = new ReadingThread<ScanStep, ReadProgress>({ query }, onProgress)
  for (;;) {
    const step = await thread.next().catch(cannotRead)
    yield step
    if (step.kind === 'end') return
  }
}

/** Rejects with TrailReadError. */
export async function runVerification(
  verify: VerifyRequest,
  onProgress: (progress: ReadProgress) => void = () => undefined,
): Promise<TrailVerification> {
  await using thread = new ReadingThread<TrailVerification, ReadProgress>({ verify }, onProgress)
  return await thread.next().catch(cannotRead)
}

/** How many intents are open at the end that a trail had. Rejects with TrailReadError. */
export async function countLeftOpen(leftOpen: OpenEnd): Promise<number> {
  await using thread = new ReadingThread<number>({ leftOpen })
  return await thread.next().catch(cannotRead)
}

/** An error leaves its class behind in the thread. */
function cannotRead(thrown: unknown): never {
  throw new TrailReadError(messageOf(thrown))
}

/** The size of the thread's heap, in MiB. The rows of a day are outside of it. */
const HEAP = 1024

class ReadingThread<Step, Done = never> {
  readonly #worker: Worker
  #waiting: PromiseWithResolvers<Step> | undefined

  constructor(request: ReadingRequest, onProgress: (progress: Done) => void = () => undefined) {
    const fail = (error: unknown): void => this.#waiting?.reject(error)
    this.#worker = new Worker(programBeside(import.meta.url, 'reading-thread'), {
      name: 'audit reading',
      workerData: request,
      env: threadEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: HEAP },
    })
      .on('message', (message: ReadingMessage) => {
        if ('progress' in message) onProgress(message.progress as Done)
        else this.#waiting?.resolve(message.step as Step)
      })
      .on('error', fail)
      .on('exit', () => fail(new Error('the thread that reads the trail has ended')))
  }

  /** Rejects with what the thread has thrown, as an Error. */
  next(): Promise<Step> {
    this.#waiting = Promise.withResolvers<Step>()
    this.#worker.postMessage('next')
    return this.#waiting.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

interface RedactionParts {
  readonly folder: string
  readonly meant: MeantSubject
  /** Ends the segment that is being written. Rejects if that cannot be done. */
  readonly roll: () => Promise<void>
  /** Makes the erasure durable in the trail, then does it. */
  readonly recorded: RecordedErasure
}

/**
 * Erases the values in the segments that the trail has now. A record that is made from now on may be in a segment that begins
 * meanwhile, and keeps its values. Rejects as `roll` and `recorded` do, with nothing erased, or with the system's error,
 * with a part erased.
 */
export async function redactSubject(parts: RedactionParts): Promise<Redacted> {
  const { folder, meant, roll, recorded } = parts
  // Listed before the roll: whatever is written to these segments is behind us then.
  const segments = segmentsOf(folder)
  await roll()
  const found = await inThread({ find: { segments, meant } })
  const redacted = { values: found.reduce((sum, { values }) => sum + values, 0), files: found.length }
  const erase = async (): Promise<void> => {
    await inThread({ erase: found })
  }
  await recorded(redacted, erase, found[0]?.subject)
  return redacted
}

async function inThread(request: ReadingRequest): Promise<readonly SubjectValues[]> {
  await using thread = new ReadingThread<readonly SubjectValues[]>(request)
  return await thread.next()
}
