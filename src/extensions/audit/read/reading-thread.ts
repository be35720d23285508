/** The program of a thread that reads a trail, or erases values of it: on the main thread that would keep all calls waiting. */
import { parentPort, workerData } from 'node:worker_threads'
import type { ScanRequest } from '../../../base/contracts/records/audit-query.ts'
import { leftOpen, type OpenEnd } from './left-open.ts'
import { eraseSubjectValues, findSubjectValues, type MeantSubject, type SubjectValues } from './personal.ts'
import { scan } from './scan.ts'
import type { Segment } from '../format/segments.ts'
import { type VerifyRequest, verifyTrail } from './verify.ts'

export type ReadingRequest =
  | { readonly query: ScanRequest }
  | { readonly verify: VerifyRequest }
  | { readonly leftOpen: OpenEnd }
  | { readonly find: { readonly segments: readonly Segment[]; readonly meant: MeantSubject } }
  | { readonly erase: readonly SubjectValues[] }

/** The thread does the next step when it is sent any message. An error that it throws ends it. */
export type ReadingMessage = { readonly progress: unknown } | { readonly step: unknown }

/** The rows of a query in batches; of all else the one result. */
function* stepsOf(request: ReadingRequest): Generator {
  const progress = (done: unknown): void => send({ progress: done })
  if ('query' in request) yield* scan(request.query, progress)
  else if ('verify' in request) yield verifyTrail(request.verify, progress)
  else if ('leftOpen' in request) yield leftOpen(request.leftOpen)
  else if ('find' in request) yield findSubjectValues(request.find.segments, request.find.meant)
  else yield eraseSubjectValues(request.erase)
}

const send = (message: ReadingMessage): void => parentPort?.postMessage(message)
const steps = stepsOf(workerData as ReadingRequest)

async function nextStep(): Promise<void> {
  const next = steps.next()
  if (next.done !== true) send({ step: await next.value })
}

parentPort?.on('message', () => void nextStep())
