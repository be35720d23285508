/** The program of a thread that finds or erases a subject's values: on the main thread it would keep all calls waiting. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Segment } from './find/segments.ts'
import { eraseSubjectValues, findSubjectValues, type SubjectValues } from './redact.ts'

export type RedactMessage =
  | { readonly find: { readonly segments: readonly Segment[]; readonly subject: string } }
  | { readonly erase: readonly SubjectValues[] }

const order = workerData as RedactMessage
if ('find' in order) parentPort?.postMessage(findSubjectValues(order.find.segments, order.find.subject))
else {
  await eraseSubjectValues(order.erase)
  parentPort?.postMessage([])
}
