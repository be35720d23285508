import { Fault, toFault, type FaultCode } from '../../kernel/faults.ts'

/** What the thread is sent is a task; this comes back. */
export type Reply =
  | { readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly code: FaultCode; readonly say: string | undefined; readonly detail: string | undefined }

/** A fault without what no other thread can be sent. What its cause said is told in its detail. */
export function replyOf(thrown: unknown): Reply {
  const { code, facts } = toFault(thrown)
  const { cause } = facts
  const why = cause instanceof Error && !(cause instanceof Fault) ? cause.message : undefined
  const detail = [facts.detail, why].filter((part) => part !== undefined).join(': ')
  return { code, say: facts.say, detail: detail === '' ? undefined : detail }
}

export function faultOf({ code, say, detail }: Exclude<Reply, { bytes: unknown }>): Fault {
  return new Fault(code, { ...(say !== undefined && { say }), ...(detail !== undefined && { detail }) })
}

/** Bytes that may be handed to another thread: all of their memory goes with them. */
export const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes)
