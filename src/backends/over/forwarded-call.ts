import type { Call, CallBody } from '../../contracts/backend.ts'
import type {
  ForwardedBody,
  ForwardedCall,
  Json,
  OutgoingRequest,
  RequestChanges,
} from '../../contracts/module.ts'
import { type JsonValue, parseJson, parseJsonInSlices } from '../../http/json.ts'
import type { HttpBackend } from '../forward/http.ts'
import { factsOf, streamOf } from '../module/call.ts'
import { plainValue } from '../module/value.ts'
import { type ChangeRules, checkChanges, NO_CHANGES } from './changes.ts'
import { type PreparedRequest, prepareRequest } from './request.ts'

export interface ViewRules extends ChangeRules {
  readonly sender: HttpBackend
  readonly signal: AbortSignal
  /** Called when the module takes the client's stream. */
  readonly bodyTaken: () => void
}

/**
 * A call as a module sees it that runs around a forwarder.
 * @param call as the client sent it
 * @param base what is sent upstream for it if nothing is changed
 */
export async function forwardedCallOf(call: Call, base: Call, rules: ViewRules): Promise<ForwardedCall> {
  const body = await bodyOf(call.body, rules)
  let upstream: OutgoingRequest | undefined
  return {
    ...factsOf(call, rules.signal),
    get body() {
      return body
    },
    get upstream() {
      return (upstream ??= outgoing(base, undefined, rules))
    },
  }
}

/** Bytes of JSON that are parsed at once, in about a millisecond. */
const AT_ONCE = 64 * 1024

async function bodyOf(body: CallBody, { sender, bodyTaken }: ViewRules): Promise<ForwardedBody> {
  if (body.kind === 'stream') return streamOf(body, bodyTaken)
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind === 'none') return body
  const { bytes, contentType } = body
  if (sender.format !== 'json') return { kind: 'bytes', bytes, contentType }
  const large = bytes.length > AT_ONCE ? await parseJsonInSlices(bytes) : undefined
  return lazyValue(() => large ?? parseJson(bytes))
}

/** Many modules never look at it, and the bytes that were checked go on as they are. */
function lazyValue(parse: () => JsonValue): ForwardedBody {
  let parsed: { readonly value: Json } | undefined
  return {
    kind: 'value',
    get value() {
      return (parsed ??= { value: plainValue(parse()) as Json }).value
    },
  }
}

function outgoing(base: Call, prepared: PreparedRequest | undefined, rules: ViewRules): OutgoingRequest {
  const { sender } = rules
  const request = prepared ?? prepareRequest(base, sender, NO_CHANGES)
  const { method, path, query, call } = request
  const { body } = call
  const [target] = sender.targets.all
  return {
    method,
    path,
    query,
    target: `${target?.address.basePath ?? ''}${path}${query}`,
    host: sender.host ?? (sender.targets.all.length === 1 ? target?.address.host : undefined),
    body: body.kind === 'bytes' ? body.bytes : undefined,
    contentType: body.kind === 'bytes' || body.kind === 'stream' ? body.contentType : undefined,
    with: async (changes: RequestChanges) =>
      outgoing(base, prepareRequest(base, sender, await checkChanges(changes, rules)), rules),
  }
}
