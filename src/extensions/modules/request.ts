import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type { Call, CallBody, UpstreamResponse } from '../../base/contracts/calls/backend.ts'
import { foldName, HOP_BY_HOP } from '../../base/http/head/end-to-end-headers.ts'
import { isBodiless, isSafe } from '../../base/http/head/head.ts'
import { isHeaderValue, isToken } from '../../base/http/head/header-text.ts'
import { stringifyJson } from '../../base/http/body/json.ts'
import { bufferOf } from '../../base/http/body/read-body.ts'
import {
  DEFAULT_TARGET_LIMIT,
  NO_AUTHORITIES,
  parseRequestTarget,
} from '../../base/http/head/request-target.ts'
import { toFault } from '../../base/kernel/faults.ts'
import {
  carryDirectly,
  type ForwardingBackend,
  type ResponseSource,
} from '../../gateway/backends/forward/forwarding.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import { lengthOf, mediaTypeOf, membersOf, MOST_HEAD, MOST_LINES } from './answer.ts'
import { broken, ModuleStream, type StreamRules } from './stream.ts'
import { jsonBodyOf } from './value.ts'

/**
 * A module's changes of the request that a forwarder would send (C8.9), checked: user code has no types when it runs.
 * Undefined members stay as the forwarder has them.
 */
interface Changes {
  readonly method?: string | undefined
  /** Canonical (C3.4). */
  readonly path?: string | undefined
  /** Empty, or with its `?`. */
  readonly query?: string | undefined
  /** By lower-case name; undefined: the client's is left out. */
  readonly headers?: ReadonlyMap<string, string | undefined> | undefined
  readonly body?: CallBody | undefined
}

export interface ChangeRules {
  /** Most bytes of a value as JSON. */
  readonly limit: number
  readonly streams: StreamRules
}

/** Rejects with Fault `upstream_broken` for what cannot be sent, and says in its detail what it is. */
export async function checkChanges(given: unknown, rules: ChangeRules): Promise<Changes> {
  if (given === undefined || given === null) return {}
  const { method, path, query, headers, body } = membersOf(given, 'changes of a request')
  return {
    method: method === undefined ? undefined : checkMethod(method),
    path: path === undefined ? undefined : checkPath(path),
    query: query === undefined ? undefined : checkQuery(query),
    headers: headers === undefined ? undefined : checkRequestHeaders(membersOf(headers, 'headers')),
    body: body === undefined ? undefined : await checkBody(membersOf(body, 'a body'), rules),
  }
}

/** A CONNECT has no path, and the answer to a TRACE shows the upstream's own request to its reader. */
const NEVER_SENT: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

function checkMethod(given: unknown): string {
  if (typeof given === 'string' && /^[A-Z]{1,20}$/.test(given) && !NEVER_SENT.has(given)) return given
  throw broken(`gave a method that cannot be sent: ${shown(given)}`)
}

function checkPath(given: unknown): string {
  if (typeof given !== 'string' || !given.startsWith('/'))
    throw broken(`gave a path that does not begin with a slash: ${shown(given)}`)
  if (given.includes('?')) throw broken(`gave a path with a question mark, which belongs to \`query\``)
  return parsed(given, 'path').path
}

function checkQuery(given: unknown): string {
  const text = typeof given === 'string' ? given.replace(/^\?/, '') : searchOf(given).toString()
  return text === '' ? '' : parsed(`/?${text}`, 'query').query
}

function parsed(target: string, what: string) {
  try {
    return parseRequestTarget(target, NO_AUTHORITIES)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    const why =
      code === 'target_too_long' ? `It has more than ${DEFAULT_TARGET_LIMIT} characters.` : facts.say
    throw broken(`gave a ${what} that cannot be sent: ${why ?? code}`)
  }
}

function searchOf(given: unknown): URLSearchParams {
  if (given instanceof URLSearchParams) return given
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(membersOf(given, 'a query')))
    for (const each of value === undefined ? [] : [value].flat()) {
      if (typeof each !== 'string') throw broken(`gave a query whose ${shown(name)} is no text`)
      search.append(name, each)
    }
  return search
}

const shown = (given: unknown): string =>
  typeof given === 'string' ? JSON.stringify(given.slice(0, 80)) : typeof given

type BodyCheck = (body: Readonly<Record<string, unknown>>, rules: ChangeRules) => CallBody | Promise<CallBody>

const BODIES: Readonly<Record<string, BodyCheck>> = {
  none: () => ({ kind: 'none' }),
  value: async ({ value, contentType = 'application/json' }, { limit }) => {
    const written = await jsonBodyOf(value, limit)
    const bytes = written.kind === 'value' ? Buffer.from(stringifyJson(written.value)) : written.bytes
    return { kind: 'bytes', bytes, contentType: typeOf(contentType) }
  },
  text: ({ text, contentType }) => {
    if (typeof text !== 'string') throw broken('gave a body of text that is no text')
    return { kind: 'bytes', bytes: Buffer.from(text), contentType: typeOf(contentType) }
  },
  bytes: ({ bytes, contentType }) => {
    if (!(bytes instanceof Uint8Array)) throw broken('gave a body of bytes that are no Uint8Array')
    return { kind: 'bytes', bytes: bufferOf(bytes), contentType: typeOf(contentType) }
  },
  stream: ({ stream, contentType, length }, { streams }) => {
    if (!(stream instanceof Readable)) throw broken('gave a body that is no Readable of node:stream')
    const facts = { contentType: typeOf(contentType), length: lengthOf(length) }
    return { kind: 'stream', stream: new ModuleStream(stream, streams), ...facts }
  },
}

function checkBody(
  body: Readonly<Record<string, unknown>>,
  rules: ChangeRules,
): CallBody | Promise<CallBody> {
  const { kind } = body
  const check = typeof kind === 'string' && Object.hasOwn(BODIES, kind) ? BODIES[kind] : undefined
  if (check === undefined) throw broken(`gave a body of the kind ${shown(kind)}`)
  return check(body, rules)
}

/** Closes the stream in changes whose request failed: nobody else does if it was never sent. Never throws. */
export function closeStreamOf(given: unknown): void {
  try {
    const { stream } = membersOf(membersOf(given, 'changes')['body'], 'a body')
    // One that fails when it is closed would end the process if nobody listened.
    if (stream instanceof Readable) stream.on('error', () => undefined).destroy()
  } catch {
    // there is none; or its own `destroy` threw, and the request has failed already
  }
}

function typeOf(given: unknown): string {
  const type = mediaTypeOf(given)
  if (type === undefined) throw broken('gave a body without a contentType')
  return type
}

/** A request that can be sent. Its response comes unread. */
export interface PreparedRequest extends ForwardingBackend<Received> {
  /** The client's call, with what a module has changed of it. */
  readonly call: Call
  /** Without the base path of the target. */
  readonly path: string
  /** Empty, or with its `?`. */
  readonly query: string
}

interface Received {
  readonly response: UpstreamResponse
  readonly source: ResponseSource
}

/**
 * The request for a call: the forwarder's own, with the changes. The backend's section adds its query, headers and
 * credentials to them as well, and these win.
 * @throws Fault upstream_broken for changes that do not fit together
 */
export function prepareRequest(call: Call, sender: HttpBackend, changes: Changes = {}): PreparedRequest {
  const method = changes.method ?? sender.methodOf(call)
  const path = changes.path ?? sender.pathWithoutQuery(call)
  const query =
    changes.query === undefined
      ? sender.queryOf(call, call.target.query)
      : queryFor(call, sender, changes.query)
  const changed: Call = {
    ...call,
    method,
    body: bodyFor(method, call.body, changes),
    headers: headersFor(call, changes),
    // The module's own goes with the other headers.
    authorization: changes.headers?.has('authorization') === true ? undefined : call.authorization,
    accept: changes.headers?.get('accept') ?? call.accept,
    carrier: carryDirectly,
  }
  const { host, conceals, targets, timeouts } = sender
  return {
    call: changed,
    path,
    query,
    host,
    conceals,
    targets,
    timeouts,
    // Both the client's method and the one that is sent must allow it: the forwarder sees the latter.
    retries: isSafe(call.method) ? sender.retries : 0,
    redirects: isSafe(call.method) ? sender.redirects : undefined,
    methodOf: () => method,
    pathOf: () => path + query,
    answerOf: (_call, response, source) => ({ response, source }),
  }
}

/** A query of the module's own that cannot be sent is the module's fault, and not the client's. */
function queryFor(call: Call, sender: HttpBackend, query: string): string {
  try {
    return sender.queryOfOwn(call, query)
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
  for (const [name, value] of changes.headers ?? [])
    if (name === 'accept') continue
    else if (value === undefined) Reflect.deleteProperty(merged, name)
    else merged[name] = value
  return merged
}

/** Folded. Framing follows from what is sent; the others are Postern's statements, which upstreams trust (C8.2). */
const NOT_A_MODULES: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'content-type',
  'expect',
  // what is not decoded cannot be read
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'forwarded',
])
const NOT_A_MODULES_FAMILIES = /^(?:x-postern-|x-forwarded-)/

/** By lower-case name; undefined: taken out. @throws Fault upstream_broken, naming the header */
function checkRequestHeaders(
  given: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, string | undefined> {
  const checked = new Map<string, string | undefined>()
  let size = 0
  for (const [name, value] of Object.entries(given)) {
    const shown = JSON.stringify(name.slice(0, 100))
    if (!isToken(name)) throw broken(`gave a header whose name HTTP cannot say: ${shown}`)
    if (isNotAModules(foldName(name))) throw broken(`gave the header ${shown}, which it may not change`)
    if (value !== undefined && (typeof value !== 'string' || !isHeaderValue(value)))
      throw broken(`gave the header ${shown} a value that HTTP cannot say`)
    size += name.length + (value?.length ?? 0) + 4
    if (size > MOST_HEAD || checked.size >= MOST_LINES)
      throw broken(`gave headers of more than ${MOST_HEAD} characters or ${MOST_LINES} lines`)
    checked.set(name.toLowerCase(), value)
  }
  return checked
}

const isNotAModules = (folded: string): boolean =>
  NOT_A_MODULES.has(folded) || NOT_A_MODULES_FAMILIES.test(folded)
