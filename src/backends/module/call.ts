import type { Call, CallBody } from '../../contracts/backend.ts'
import type { Json, ModuleBody, ModuleCall } from '../../contracts/module.ts'
import { Fault } from '../../kernel/faults.ts'
import { plainValue } from './value.ts'

/** The call as a module sees it: copies where what is behind them is shared, since its code may change what it gets. */
export const callOf = (call: Call, signal: AbortSignal): ModuleCall => ({
  ...factsOf(call, signal),
  body: bodyOf(call.body),
})

/** All of it but for the body. */
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
      subject: principal.subject,
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

/** The names of parameters alone: `{memberId:uuid}` is `{memberId}`. */
const withoutTypes = (action: string): string => action.replace(/\{([^:{}]+):(?:[^{}]|\{[^}]*\})*\}/g, '{$1}')

function bodyOf(body: CallBody): ModuleBody {
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind !== 'bytes') return body
  throw new Fault('internal', { detail: 'a module was given a body that was not parsed' })
}
