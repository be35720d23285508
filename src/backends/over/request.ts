import type { Call, CallBody } from '../../contracts/backend.ts'
import { broken } from '../module/stream.ts'
import { isBodiless, isSafe } from '../../http/head.ts'
import { carryDirectly } from '../forward/attempts.ts'
import type { HttpBackend } from '../forward/http.ts'
import type { Redirects } from '../forward/redirects.ts'
import { toFault } from '../../kernel/faults.ts'
import type { Changes } from './changes.ts'

/** A request that is ready to be sent. */
export interface PreparedRequest {
  /** The client's call, with what a module has changed of it. */
  readonly call: Call
  readonly method: string
  /** Without the base path of the target. */
  readonly path: string
  /** Empty, or with its `?`. */
  readonly query: string
  readonly retries: number
  readonly redirects: Redirects | undefined
}

/**
 * What is sent for a call: what the forwarder would send, but for the changes. What the backend's section adds (query,
 * headers, credentials) is added to them as well, and wins.
 * @throws Fault upstream_broken for changes that do not fit together
 */
export function prepareRequest(call: Call, sender: HttpBackend, changes: Changes): PreparedRequest {
  const method = changes.method ?? sender.methodOf(call)
  const body = bodyFor(method, call.body, changes)
  const named = changes.headers.get('accept')
  const changed: Call = {
    ...call,
    method,
    body,
    headers: headersFor(call, changes),
    // The module's own goes with the other headers.
    authorization: changes.headers.has('authorization') ? undefined : call.authorization,
    accept: named ?? call.accept,
    carrier: carryDirectly,
  }
  return {
    call: changed,
    method,
    path: changes.path ?? sender.pathWithoutQuery(call),
    query:
      changes.query === undefined
        ? sender.queryOf(call, call.target.query)
        : queryFor(call, sender, changes.query),
    // Both the client's method and the one that is sent must allow it: the forwarder sees the latter.
    retries: isSafe(call.method) ? sender.retries : 0,
    redirects: isSafe(call.method) ? sender.redirects : undefined,
  }
}

/** A query of the module's own that cannot be sent is the module's fault, and not the client's. */
function queryFor(call: Call, sender: HttpBackend, query: string): string {
  try {
    return sender.queryOf(call, query)
  } catch (thrown) {
    throw broken(`gave a query that cannot be sent: ${toFault(thrown).message}`)
  }
}

function bodyFor(method: string, given: CallBody, { body }: Changes): CallBody {
  if (isBodiless(method) && body !== undefined && body.kind !== 'none')
    throw broken(`gave a body to a ${method}`)
  return isBodiless(method) ? { kind: 'none' } : (body ?? given)
}

/** In an object without a prototype: `__proto__` is a name like others. */
function headersFor({ headers }: Call, changes: Changes): Call['headers'] {
  const merged = Object.assign(Object.create(null) as Record<string, string>, headers)
  for (const [name, value] of changes.headers)
    if (name === 'accept') continue
    else if (value === undefined) Reflect.deleteProperty(merged, name)
    else merged[name] = value
  return merged
}
