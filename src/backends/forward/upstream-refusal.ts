import type { Readable } from 'node:stream'
import type { BackendAnswer } from '../../contracts/backend.ts'
import type { Fault } from '../../kernel/faults.ts'
import { envelopeErrors } from './upstream-body.ts'
import { statusFault, type StatusVerdict } from './upstream-status.ts'

/** An upstream's answer that is no success. */
export interface UpstreamRefusal {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Only what is whole is looked at. */
  readonly body: Buffer | Readable
}

/**
 * What the client gets of a refusal (C8.4): the upstream's own errors where its verdict lets them pass and they are
 * well formed, else the verdict's fault, thrown.
 */
export function refusalAnswer(
  verdict: StatusVerdict,
  { statusCode, headers, body }: UpstreamRefusal,
  format: 'json' | 'xml',
  now: number,
): BackendAnswer {
  const errors = verdict.kind === 'errors' ? envelopeErrors(body, format) : undefined
  if (!Buffer.isBuffer(body)) body.destroy()
  const fault = statusFault(verdict, statusCode, headers, now)
  if (errors === undefined) throw fault
  return { status: statusCode, headers: errorHeaders(fault), body: { kind: 'errors', errors } }
}

/** What a client needs beside the upstream's own errors. */
const errorHeaders = ({ facts }: Fault): Record<string, string> => ({
  ...(facts.retryAfter !== undefined && { 'retry-after': String(facts.retryAfter) }),
  ...(facts.allow && { allow: facts.allow.join(', ') }),
  ...(facts.contentRange !== undefined && { 'content-range': facts.contentRange }),
})
