import { readableOf } from '../../src/base/http/body/pieces.ts'
import { NO_HEADERS } from '../../src/base/http/head/header-text.ts'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import type { MovableClock } from './movable-clock.ts'
import { atEnd } from './shared.ts'
import {
  isTls,
  parseUpstreamAddress,
  socketOpener,
  type UpstreamTls,
} from '../../src/gateway/upstream/socket.ts'
import {
  UpstreamConnection,
  type ConnectionOwner,
  type ConnectionRules,
} from '../../src/gateway/upstream/connection.ts'
import type { UpstreamRequest } from '../../src/gateway/upstream/request.ts'
import { upstreamFault } from '../../src/gateway/backends/forward/response/response.ts'
import { UpstreamPool, type PoolRules, type TrustChanged } from '../../src/gateway/upstream/pool.ts'
import { UpstreamReader } from '../../src/gateway/upstream/reader.ts'
import type { UpstreamCallback, UpstreamResponse } from '../../src/base/contracts/calls/backend.ts'

/** For what speaks to upstreams below the `http` backend: raw upstreams, one connection, one pool. Ends with the test. */

/** What an upstream does with a request, which is the n-th (from 1) of its connection. */
export type Behaviour = (socket: Socket, nth: number) => void

/** Takes whatever comes in one piece for a request. */
export const answering =
  (behave: Behaviour) =>
  (socket: Socket): void => {
    let nth = 0
    socket.on('data', () => behave(socket, ++nth))
  }

export const says =
  (bytes: string): Behaviour =>
  (socket) =>
    socket.write(bytes, 'latin1')

/** On an address, port 0 unless told otherwise, or at a path. Answers the port. */
export async function listen(server: Server, where = '127.0.0.1', port = 0): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(where.startsWith('/') ? where : { port, host: where }, resolve)
  })
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  )
  return (server.address() as AddressInfo).port
}

/** Its URL. */
export const rawUpstream = async (accept: (socket: Socket) => void): Promise<string> =>
  `http://127.0.0.1:${await listen(createServer(accept))}`

export const upstream = (behave: Behaviour): Promise<string> => rawUpstream(answering(behave))

export const OK = 'HTTP/1.1 200 OK\r\n'
export const WHOLE = `${OK}Content-Length: 2\r\n\r\nok`

export const GET: UpstreamRequest = {
  method: 'GET',
  path: '/',
  headers: NO_HEADERS,
  host: undefined,
  body: undefined,
  length: undefined,
  eager: true,
  fresh: false,
  timeouts: undefined,
}
const TIMEOUTS = { connect: 5000, firstByte: 5000, idle: 5000 }

export interface StartedCall {
  /** Rejects with the fault that the gateway would make of the failure. */
  readonly answer: Promise<UpstreamResponse>
  readonly reader: UpstreamReader
  /** How often the callback was called. */
  readonly answers: () => number
}

function start(
  send: (request: UpstreamRequest, callback: UpstreamCallback) => UpstreamReader,
  request: Partial<UpstreamRequest>,
): StartedCall {
  let answers = 0
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamResponse>()
  promise.catch(() => undefined)
  const reader = send({ ...GET, ...request }, (error, response) => {
    answers += 1
    if (response) resolve(response)
    else reject(upstreamFault(error))
  })
  return { answer: promise, reader, answers: () => answers }
}

type Changes<R extends PoolRules | ConnectionRules> = Partial<Omit<R, 'timeouts'>> & {
  readonly timeouts?: Partial<R['timeouts']>
}

/** Whatever is timed is timed by the clock, if there is one. */
interface Timed {
  readonly clock?: MovableClock
}

/** A connection, what its owner was told, and how to call over it. */
export function openConnection(
  url: string,
  { tls = {}, clock, ...changes }: Changes<ConnectionRules> & Timed & { readonly tls?: UpstreamTls } = {},
) {
  const told: string[] = []
  const timeouts = { ...TIMEOUTS, ...changes.timeouts }
  const address = parseUpstreamAddress(url)!
  const open = socketOpener(address, tls, clock)
  let socket: Socket | undefined
  const rules: ConnectionRules = {
    open: (receive) => {
      const opened = open(receive)
      socket = opened.socket
      return opened
    },
    host: address.host,
    keep: 4000,
    age: 60_000,
    acceptsCloseDelimited: !isTls(address),
    ...changes,
    timeouts,
  }
  const { promise: closed, resolve } = Promise.withResolvers<undefined>()
  const owner: ConnectionOwner = {
    freed: () => void told.push('freed'),
    closed: () => {
      told.push('closed')
      resolve(undefined)
    },
    strayBytes: () => void told.push('strayed'),
  }
  const connection = new UpstreamConnection(rules, owner, clock, clock?.after)
  atEnd(() => connection.close())
  const call = (request: Partial<UpstreamRequest> = {}) => {
    let over = 0
    const started = start((sent, callback) => {
      const reader = new UpstreamReader(sent, callback, () => (over += 1), clock?.after)
      connection.send(sent, reader)
      return reader
    }, request)
    return { ...started, over: () => over }
  }
  /** Bytes that it has read. */
  const received = (): number => socket?.bytesRead ?? 0
  const hasReceived = (bytes: number): Promise<void> => eventually(() => expect(received()).toBe(bytes))
  return { connection, told, closed, call, received, hasReceived }
}

export function openPool(
  url: string,
  {
    trustChanged,
    clock,
    ...changes
  }: Changes<PoolRules> & Timed & { readonly trustChanged?: TrustChanged } = {},
) {
  const timeouts = { ...TIMEOUTS, ...changes.timeouts }
  const rules = {
    maxConnections: 4,
    connectionAge: 60_000,
    closeDelimited: 'cut' as const,
    tls: {},
    ...changes,
    timeouts,
  }
  const pool = new UpstreamPool(parseUpstreamAddress(url)!, rules, trustChanged, clock, clock?.after)
  atEnd(() => pool.close())
  const call = (request: Partial<UpstreamRequest> = {}) =>
    start((sent, callback) => pool.send(sent, callback), request)
  return { pool, call }
}

export async function bodyOf({ body }: UpstreamResponse): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body
  const pieces: Buffer[] = []
  for await (const piece of readableOf(body)) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

export const textOf = async (answer: Promise<UpstreamResponse>): Promise<string> =>
  (await bodyOf(await answer)).toString('latin1')

/** For `rejects.toEqual`: the fault of this code. */
export const faulty = (code: string): unknown => expect.objectContaining({ code })
