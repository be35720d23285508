import type { Readable } from 'node:stream'
import type { Call, CallBody } from '../../base/contracts/calls/backend.ts'
import type { Json, ModuleBody, ModuleCall } from '../../base/contracts/calls/module.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { withoutTypes } from '../../gateway/backends/templates/places.ts'
import { AccountedStream } from './stream.ts'
import { plainValue } from './value.ts'

/** The call as a module sees it: copies where what is behind them is shared, since its code may change what it gets. */
export const callOf = (call: Call, signal: AbortSignal): ModuleCall => ({
  ...factsOf(call, signal),
  body: bodyOf(call.body),
})

export function factsOf(call: Call, signal: AbortSignal): Omit<ModuleCall, 'body'> {
  const { principal } = call
  if (principal === undefined) throw new Fault('internal', { detail: 'a module was called for nobody' })
  return {
    id: call.id,
    action: `${call.action.area}/${withoutTypes(call.action.action)}`,
    version: call.version,
    method: call.method === 'HEAD' ? 'GET' : call.method,
    business: call.business,
    fund: call.fund,
    params: { ...call.params },
    query: new URLSearchParams(call.target.query),
    caller: {
      subject: principal.isMachine ? undefined : principal.subject,
      client: principal.client,
      issuer: principal.issuer,
      scopes: new Set(principal.scopes),
    },
    headers: { ...call.headers },
    accept: call.accept,
    clientAddress: call.clientAddress,
    traceparent: call.traceparent,
    signal,
  }
}

function bodyOf(body: CallBody): ModuleBody {
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind === 'stream') return streamOf(body, () => undefined)
  if (body.kind === 'none') return body
  throw new Fault('internal', { detail: 'a module was given a body that was not parsed' })
}

/**
 * An opaque body as a module reads it. Closing it stops the reading, and leaves the client's connection open: it takes
 * the answer to this call, and brings the next one.
 * @param taken called whenever the module takes it
 */
export function streamOf(
  { stream, contentType, length }: Extract<CallBody, { kind: 'stream' }>,
  taken: () => void,
): Extract<ModuleBody, { kind: 'stream' }> {
  let accounted: Readable | undefined
  return {
    kind: 'stream',
    get stream() {
      taken()
      return (accounted ??= new AccountedStream(stream, (source) => source.pause()))
    },
    contentType,
    length,
  }
}
