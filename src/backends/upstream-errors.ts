import { Fault } from '../kernel/faults.ts'
import type { FaultCode } from '../kernel/faults.ts'
import type { AttemptOutcome } from './circuit.ts'

/** What undici, node:http, sockets and TLS call their failures, by C8.4. Anything not listed: the upstream could not be reached. */
const BY_CODE: Readonly<Record<string, FaultCode>> = {
  UND_ERR_CONNECT_TIMEOUT: 'upstream_timeout',
  UND_ERR_HEADERS_TIMEOUT: 'upstream_timeout',
  UND_ERR_BODY_TIMEOUT: 'upstream_timeout',
  ETIMEDOUT: 'upstream_timeout',
  ECONNECT_TIMEOUT: 'upstream_timeout',
  UND_ERR_HEADERS_OVERFLOW: 'upstream_broken',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'upstream_broken',
  // Undici's own, of a status below 100.
  ERR_ASSERTION: 'upstream_broken',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'client_gone',
  UND_ERR_INVALID_ARG: 'internal',
  UND_ERR_NOT_SUPPORTED: 'internal',
  ERR_INVALID_CHAR: 'internal',
}

/** Ended early: the parser's words for a connection that closed in the middle of a message. It gives most errors no code. */
const CUT = /EOF state|closed/i

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

function faultCodeOf(error: unknown): FaultCode {
  const code = codeOf(error)
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined
  if (known !== undefined) return known
  const parsers = error instanceof Error && (error.name === 'HTTPParserError' || code.startsWith('HPE_'))
  const unreadable = parsers && !CUT.test(error.message)
  return unreadable ? 'upstream_broken' : 'upstream_unreachable'
}

/** The fault of a failed upstream call. The error goes to the log; the client reads the row's text (C2.6). */
export const upstreamFault = (error: unknown): Fault =>
  error instanceof Fault ? error : new Fault(faultCodeOf(error), { cause: error, detail: codeOf(error) })

/** Whether the connection failed, so that a safe call may be tried again (C8.5): not a timeout, not an answer. */
export const isConnectionFault = (error: unknown): boolean =>
  upstreamFault(error).code === 'upstream_unreachable'

/** Whether it was too slow, so that another target may be asked (C8.5). */
export const isTimeout = (error: unknown): boolean => upstreamFault(error).code === 'upstream_timeout'

const TARGETS_FAULT: ReadonlySet<FaultCode> = new Set([
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_broken',
])

/** What a failed attempt tells of its target: nothing, where the client left or the defect is ours. */
export const attemptOutcome = (error: unknown): AttemptOutcome =>
  TARGETS_FAULT.has(upstreamFault(error).code) ? 'bad' : 'unknown'
