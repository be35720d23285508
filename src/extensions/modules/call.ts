import type { Readable } from 'node:stream'
import type { Call, CallBody } from '../../base/contracts/calls/backend.ts'
import type {
  ForwardedCall,
  Json,
  ModuleBody,
  ModuleCall,
  OutgoingRequest,
} from '../../base/contracts/calls/module.ts'
import { JSON_LIMITS, parseJson, parseJsonInSlices } from '../../base/http/body/json.ts'
import { StreamInPieces } from '../../base/http/body/pieces.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { withoutTypes } from '../../gateway/backends/templates/places.ts'
import type { Forwards } from './forwards.ts'
import { accountedStream } from './stream.ts'
import { plainValue } from './value.ts'

/** The call as a module sees it. Shared values are copied, because its code may change what it gets. */
export function callOf(
  call: Call,
  body: ModuleBody,
  { signal }: { readonly signal: AbortSignal },
  forwards: Forwards | undefined,
): ModuleCall | ForwardedCall {
  const facts = { ...factsOf(call, signal), body }
  if (forwards === undefined) return facts
  let upstream: OutgoingRequest | undefined
  return {
    ...facts,
    forward: (changes) => forwards.forward(changes),
    get upstream() {
      return (upstream ??= forwards.unchanged())
    },
  }
}

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

/** How much JSON is parsed at once, in bytes: it takes about a millisecond. */
const AT_ONCE = 64 * 1024
const CONVERTED = { ...JSON_LIMITS, converts: true }

/** The body as a module reads it. A promise only where it is large, and is parsed in slices. */
export function bodyOf(body: CallBody, forwards: Forwards | undefined): ModuleBody | Promise<ModuleBody> {
  if (body.kind === 'stream') return streamOf(body, () => forwards?.takeBody())
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind === 'none') return body
  const { bytes, contentType } = body
  if (forwards === undefined)
    throw new Fault('internal', { detail: 'a module was given a body that was not parsed' })
  if (!forwards.sendsJson) return { kind: 'bytes', bytes, contentType }
  if (bytes.length <= AT_ONCE) return lazyValue(() => parseJson(bytes, CONVERTED) as Json)
  return parseJsonInSlices(bytes, CONVERTED).then((value) => ({ kind: 'value', value: value as Json }))
}

/** A value that is parsed when it is read. Many modules never read it, and the checked bytes are passed as they are. */
function lazyValue(parse: () => Json): ModuleBody {
  let parsed: { readonly value: Json } | undefined
  return {
    kind: 'value',
    get value() {
      return (parsed ??= { value: parse() }).value
    },
  }
}

/** Closing it leaves the client's connection open: it takes the answer to this call, and brings the next one. */
class ClientBody extends StreamInPieces {
  override cancel(): void {
    this.stream.pause()
  }
}

/**
 * An opaque body as a module reads it.
 * @param take called when the module takes it first; may refuse by throwing
 */
function streamOf(
  { stream, contentType, length }: Extract<CallBody, { kind: 'stream' }>,
  take: () => void,
): Extract<ModuleBody, { kind: 'stream' }> {
  let accounted: Readable | undefined
  return {
    kind: 'stream',
    get stream() {
      if (accounted === undefined) take()
      return (accounted ??= accountedStream(new ClientBody(stream)))
    },
    contentType,
    length,
  }
}
