import { Buffer } from 'node:buffer'
import { stringifyJson } from '../../base/http/body/json.ts'
import { compileValidator } from '../../base/http/body/validate-body.ts'
import { Fault, type FaultCode, toFault } from '../../base/kernel/faults.ts'
import { type AnswerTask, convertAnswer, searchAnswer, type SearchTask } from './answers.ts'
import {
  checkedBody,
  convertRequest,
  keptOf,
  type KeptTask,
  makeOf,
  readMaking,
  type RequestTask,
} from './bodies.ts'

export type Task = AnswerTask | RequestTask | KeptTask | SearchTask

/** What a task has made. */
export interface Converted {
  readonly bytes: Uint8Array
  /** The values that templates name and the client's body had, as JSON. Only for a request with a `making`. */
  readonly found?: string | undefined
}

const NOTHING = new Uint8Array()

/** Runs a task. @throws the faults of `convertAnswer`, or of a request's body: `body_malformed`, `body_invalid` */
export function perform(task: Task): Converted {
  if (task.kind === 'answer') return { bytes: convertAnswer(task) }
  if (task.kind === 'search') return { bytes: Buffer.from(JSON.stringify(searchAnswer(task) ?? null)) }
  if (task.kind === 'kept') return { bytes: Buffer.from(JSON.stringify(keptOf(task))) }
  const { making, schema } = task
  if (making === undefined) return { bytes: convertRequest(task) }
  const client = task.bytes.length === 0 ? undefined : task.bytes
  const given = { ...task, bytes: client, validate: schema && compileValidator(schema) }
  const how = readMaking(making)
  const { bytes = NOTHING, found } = makeOf(checkedBody(given, how), given, how)
  return { bytes, found: stringifyJson(found) }
}

/** The fault of a task that needs more memory than a thread may have. */
export const TOO_LARGE: Readonly<Record<Task['kind'], FaultCode>> = {
  answer: 'answer_too_large',
  request: 'body_too_large',
  kept: 'body_too_large',
  search: 'answer_too_large',
}

export type ConversionReply =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly found?: string | undefined }
  | { readonly code: FaultCode; readonly say: string | undefined; readonly detail: string | undefined }

/** A fault as plain data for another thread. The message of its cause becomes part of the detail. */
export function replyOf(thrown: unknown): ConversionReply {
  const { code, facts } = toFault(thrown)
  const { cause } = facts
  const why = cause instanceof Error && !(cause instanceof Fault) ? cause.message : undefined
  const detail = [facts.detail, why].filter((part) => part !== undefined).join(': ')
  return { code, say: facts.say, detail: detail === '' ? undefined : detail }
}

export function faultOf({ code, say, detail }: Exclude<ConversionReply, { bytes: unknown }>): Fault {
  return new Fault(code, { ...(say !== undefined && { say }), ...(detail !== undefined && { detail }) })
}

/** Bytes that may be transferred to another thread: they own all of their memory, or are copied. */
export const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes)
