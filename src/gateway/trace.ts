import { newRequestId, newSpanId } from '../kernel/ids.ts'

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const ZERO_TRACE = '0'.repeat(32)
const ZERO_SPAN = '0'.repeat(16)

/** W3C Trace Context: continues a well-formed incoming trace with a span of ours, or starts one (C8.2). */
export function nextTraceparent(incoming: string | readonly string[] | undefined): string {
  if (incoming === undefined) return newTrace()
  const [, trace, parent, flags] = (typeof incoming === 'string' && TRACEPARENT.exec(incoming)) || []
  if (trace === undefined || trace === ZERO_TRACE || parent === ZERO_SPAN) return newTrace()
  return `00-${trace}-${newSpanId()}-${flags ?? '00'}`
}

const newTrace = (): string => `00-${newRequestId()}-${newSpanId()}-00`
