import { createHash } from 'node:crypto'
import { Fault } from '../../src/base/kernel/faults.ts'
import { type OpenapiDocument, type OpenapiOperation, type OpenapiResponse, resolved } from './openapi.ts'
import type { RawResponse } from './raw-http.ts'
import { bearer, send, type Sent } from './requests.ts'
import type { StartedPostern } from './start-postern.ts'
import type { Upstream, UpstreamAnswer, UpstreamBehaviour } from './start-upstream.ts'
import { MEMBER } from './tokens.ts'

/** Where operations are called. */
export interface Provoked {
  readonly gateway: StartedPostern
  /** Of `ALL_AT_ACME`. */
  readonly token: string
  /** Of a client that has used its rate up; absent where no client has one. */
  readonly spent?: string
  /** The data service; absent where the data is in memory. */
  readonly upstream?: Upstream
}

/** A way to call an operation. `good` is the call that it answers 200, `usual` what a data service says to it. */
export type Provocation = (world: Provoked, good: Sent, usual: UpstreamAnswer) => Promise<RawResponse>

const VALUES: Readonly<Record<string, string>> = {
  businessCode: 'ACME',
  fundCode: 'SUPER1',
  memberId: MEMBER,
}

const inJson = (value: unknown): string | undefined =>
  value === undefined ? undefined : JSON.stringify(value)

/** A call that an operation answers 200, by its own example. */
export function goodCall(
  document: OpenapiDocument,
  token: string,
  [path, method, operation]: readonly [path: string, method: string, operation: OpenapiOperation],
): Sent {
  const content = operation.requestBody?.content ?? {}
  const [type] = Object.keys(content)
  const [example] = Object.values(content['application/json']?.examples ?? {})
  const value = example && (resolved(document, example) as { readonly value: unknown }).value
  const body = type === undefined || type === 'application/json' ? inJson(value) : 'any bytes'
  const target = path.replaceAll(/\{([^}]*)\}/g, (_whole, name: string) => VALUES[name] ?? 'x')
  const typed = type !== undefined && body !== undefined && { 'Content-Type': type }
  return {
    ...{ method: method.toUpperCase(), target },
    headers: { ...bearer(token), ...typed },
    ...(body !== undefined && { body }),
  }
}

/** What an upstream says to a good call: the operation's own example, or any bytes of its own type. */
export function goodAnswer(document: OpenapiDocument, { responses }: OpenapiOperation): UpstreamAnswer {
  const { content = {} } = resolved(document, responses['200']) as OpenapiResponse
  const [first = ''] = Object.keys(content)
  if (first !== 'application/json') return { headers: { 'Content-Type': first, ETag: '"1"' }, body: 'any' }
  const [example] = Object.values(content[first]?.examples ?? {})
  const told = example && (resolved(document, example) as { readonly value: unknown }).value
  const value = told ?? { Errors: [], Data: {} }
  return { headers: { 'Content-Type': first, ETag: '"1"' }, body: JSON.stringify(value) }
}

const changed =
  (change: (good: Sent) => Partial<Sent>): Provocation =>
  ({ gateway }, good) =>
    send(gateway, { ...good, ...change(good) })

const withHeaders = (headers: Sent['headers']): Provocation =>
  changed((good) => ({ headers: { ...good.headers, ...headers } }))

/** While the service's admission throws what `thrown` makes. */
const whileRefused =
  (step: 'admit' | 'occupy', thrown: () => Error): Provocation =>
  async ({ gateway }, good) => {
    const { admission } = gateway.world
    Object.assign(admission, {
      [step]: () => {
        throw thrown()
      },
    })
    try {
      return await send(gateway, good)
    } finally {
      Reflect.deleteProperty(admission, step) // what it is by its class
    }
  }

const whileClosed: Provocation = async ({ gateway }, good) => {
  gateway.switches.set([{ scope: { kind: 'service' } }])
  try {
    return await send(gateway, good)
  } finally {
    gateway.switches.set([])
  }
}

const asXml = { Accept: 'application/xml' }
const NOWHERE = ({ target }: Sent): Partial<Sent> => ({ target: target.replace('ACME', 'NOWHERE') })

/** What a client, an operator or a defect does, whatever the backend. */
const EVERYWHERE: Readonly<Record<string, Provocation>> = {
  'a good call': changed(() => ({})),
  'a good call in XML': withHeaders(asXml),
  'no Host': withHeaders({ Host: undefined }),
  'no token': withHeaders({ Authorization: undefined }),
  'no token, in XML': withHeaders({ Authorization: undefined, ...asXml }),
  'a bad token': withHeaders(bearer('nothing')),
  'a place that there is not': changed(NOWHERE),
  'the same in XML': changed((good) => ({ ...NOWHERE(good), headers: { ...good.headers, ...asXml } })),
  'a method that there is not': changed(() => ({ method: 'DELETE' })),
  TRACE: changed(() => ({ method: 'TRACE' })),
  'a type that there is not': withHeaders({ Accept: 'image/png' }),
  'a version that there is not': withHeaders({ Accept: 'application/vnd.postern.action.v9+json' }),
  'a body over the limit': withBody('a'.repeat(1_048_577)),
  'a target over the limit': changed(({ target }) => ({ target: `${target}?${'a'.repeat(8200)}` })),
  'headers over the limit': withHeaders({ 'X-Large': 'a'.repeat(20_000) }),
  'a body of a type that is not read': withHeaders({ 'Content-Type': 'text/plain' }),
  'a body that is not well-formed': withBody('{"Code":'),
  'a body that does not fit': withBody('{"Code":[]}'),
  'an XML body': withBody('<Fund><Code>A</Code></Fund>', 'application/xml'),
  'too many calls': whileRefused('admit', () => new Fault('too_many_calls')),
  'a rate that is used up': ({ gateway, token, spent = token }, good) =>
    send(gateway, { ...good, headers: { ...good.headers, ...bearer(spent) } }),
  'a defect': whileRefused('occupy', () => new Error('a defect')),
  maintenance: whileClosed,
}

function withBody(body: string, type = 'application/json'): Provocation {
  return changed((good) => ({ headers: { ...good.headers, 'Content-Type': type }, body }))
}

const whileAnswering =
  (behaviour: UpstreamBehaviour, headers: Sent['headers'] = {}): Provocation =>
  ({ gateway, upstream }, good) => {
    upstream?.behave(behaviour)
    return send(gateway, { ...good, headers: { ...good.headers, ...headers } })
  }

const succeeding =
  (status: number): Provocation =>
  (world, good, usual) =>
    whileAnswering((connection) => connection.respond({ ...usual, status }))(world, good, usual)

const OWN_ERROR = '{"Errors":[{"Code":"FUND_CLOSED","Message":"The fund is closed."}],"Data":{}}'

/** An answer of the upstream, with its own errors and every header that a status may have. */
const answers = (status: number, body = OWN_ERROR): UpstreamBehaviour =>
  function answer(connection) {
    const headers = {
      'Content-Type': body.startsWith('{') ? 'application/json' : 'text/plain',
      ...{ ETag: '"1"', 'Last-Modified': 'Sat, 10 Jan 2026 10:00:00 GMT' },
      ...{ 'Retry-After': '7', Allow: 'GET, PUT', 'WWW-Authenticate': 'Basic realm="inside"' },
      ...(status === 416 && { 'Content-Range': 'bytes */9' }),
    }
    connection.respond({ status, headers, body })
  }

const inPart: Provocation = (world, good, usual) => {
  const headers = { ...usual.headers, 'Content-Range': 'bytes 4-8/9' }
  const part = { status: 206, headers, body: '45678' }
  return whileAnswering((connection) => connection.respond(part), { Range: 'bytes=4-' })(world, good, usual)
}

const switching: UpstreamBehaviour = (connection) => {
  const key = connection.request.headers['sec-websocket-key']?.[0] ?? ''
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
  connection.raw(`${head}Sec-WebSocket-Accept: ${accept}\r\n\r\n`)
}

const HANDSHAKE = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

const STATUSES = [302, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 412, 413, 414]
const MORE = [415, 416, 418, 422, 423, 429, 431, 451, 499, 500, 501, 502, 503, 504, 599]

/** What a data service does. */
const BEHIND: Readonly<Record<string, Provocation>> = {
  ...Object.fromEntries(
    [...STATUSES, ...MORE].flatMap((status) => [
      [`${status} of the data service`, whileAnswering(answers(status))],
      [`${status} without errors of its own`, whileAnswering(answers(status, 'not at 10.0.0.7'))],
    ]),
  ),
  created: succeeding(201),
  accepted: succeeding(202),
  'data that has not changed': whileAnswering(answers(304, ''), { 'If-None-Match': '"1"' }),
  'a part': inPart,
  'a part that there is not': whileAnswering(answers(416), { Range: 'bytes=99-' }),
  'an answer that is cut': whileAnswering((connection) => connection.reset()),
  'an answer that is no HTTP': whileAnswering((connection) => connection.raw('nothing\r\n\r\n')),
  'a websocket': whileAnswering(switching, HANDSHAKE),
}

/** Every way to call an operation here, by what it is. */
export const waysAt = ({ upstream }: Provoked): readonly (readonly [name: string, way: Provocation])[] => [
  ...Object.entries(EVERYWHERE),
  ...(upstream === undefined ? [] : Object.entries(BEHIND)),
]
