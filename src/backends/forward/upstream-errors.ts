import { Fault, type FaultCode } from '../../kernel/faults.ts'
import type { AttemptOutcome } from './ejection.ts'

/** What node:http, sockets and TLS call their failures, by C8.4. Anything not listed: the upstream could not be reached. */
const BY_CODE: Readonly<Record<string, FaultCode>> = {
  ETIMEDOUT: 'upstream_timeout',
  ECONNECT_TIMEOUT: 'upstream_timeout',
  ERR_INVALID_CHAR: 'internal',
}

/** Of node's parser, which reads the answers to websockets' handshakes: the connection closed in the middle of one. */
const CUT: ReadonlySet<string> = new Set(['HPE_INVALID_EOF_STATE', 'HPE_CLOSED_CONNECTION'])

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

function faultCodeOf(error: unknown): FaultCode {
  const code = codeOf(error)
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined
  if (known !== undefined) return known
  return code.startsWith('HPE_') && !CUT.has(code) ? 'upstream_broken' : 'upstream_unreachable'
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
