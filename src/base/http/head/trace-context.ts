/** The trace that a call belongs to (W3C Trace Context, https://www.w3.org/TR/trace-context/). */
import { newRequestId, newSpanId } from '../../kernel/ids.ts'

/** A header as the request has it. Two lines of `traceparent` have become one text with a comma, which is none. */
type Incoming = string | readonly string[] | undefined

/** Version, trace, parent, flags, and what a later version may have added. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZERO_TRACE = '0'.repeat(32)
const ZERO_SPAN = '0'.repeat(16)
const NO_VERSION = 'ff'
/** The only flag of version 00: the caller may have recorded the trace. */
const SAMPLED = 1

interface Trace {
  readonly id: string
  readonly flags: string
}

/** A later version is read as far as version 00 goes. Undefined where a trace begins here. */
function readTraceparent(incoming: Incoming): Trace | undefined {
  if (typeof incoming !== 'string') return undefined
  const [, version, id, parent, flags = '', more] = TRACEPARENT.exec(incoming) ?? []
  if (id === undefined || id === ZERO_TRACE || parent === ZERO_SPAN) return undefined
  if (version === NO_VERSION || (version === '00' && more !== undefined)) return undefined
  return { id, flags: (Number.parseInt(flags, 16) & SAMPLED) === 0 ? '00' : '01' }
}

/** Continues a well-formed incoming trace with a span of ours, or starts one (C8.2). */
export function nextTraceparent(incoming: Incoming): string {
  const { id, flags } = readTraceparent(incoming) ?? { id: newRequestId(), flags: '00' }
  return `00-${id}-${newSpanId()}-${flags}`
}

/** The trace id of a header that `nextTraceparent` has made. */
export const traceIdOf = (traceparent: string): string => traceparent.slice(3, 35)

/** The id of the trace that a request came with; undefined if it came with none. */
export const incomingTraceId = (incoming: Incoming): string | undefined => readTraceparent(incoming)?.id

/** §3.3.1.1. */
const MOST_MEMBERS = 32
const KEY = /^(?:[a-z0-9][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/
const PRINTABLE = /^[\t\x20-\x7e]*$/

function isMember(member: string): boolean {
  const equals = member.indexOf('=')
  return equals > 0 && KEY.test(member.slice(0, equals)) && VALUE.test(member.slice(equals + 1))
}

/**
 * The part of `tracestate` that is sent on: undefined where its trace ends here, or where one of its members is malformed (§4.3).
 * @param traceparent that came with it
 */
export function nextTracestate(incoming: string, traceparent: Incoming): string | undefined {
  if (readTraceparent(traceparent) === undefined || !PRINTABLE.test(incoming)) return undefined
  const members = incoming
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
  if (members.length === 0 || members.length > MOST_MEMBERS || !members.every(isMember)) return undefined
  return members.join(',')
}
