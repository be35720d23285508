import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { atEnd } from './shared.ts'
import { WebSocket, WebSocketServer, type ClientOptions } from 'ws'
import { refuseUpstreamAddress, rememberUpstream } from './upstream-addresses.ts'

/** A `ws` server that echoes, and tells what it was asked. */
export interface WebsocketUpstream {
  readonly url: string
  /** Handshakes that it got, in order. */
  readonly handshakes: readonly IncomingMessage[]
  readonly sockets: readonly WebSocket[]
  /** Plain requests. */
  readonly requests: readonly IncomingMessage[]
}

/** Where it listens, and as whom; on a free port of 127.0.0.1, without TLS, unless told. */
export interface Whereabouts {
  /** Of a unix socket. */
  readonly path?: string
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
}

/** Ends with the test. */
export async function startWebsocketUpstream({ path, tls }: Whereabouts = {}): Promise<WebsocketUpstream> {
  const requests: IncomingMessage[] = []
  const handshakes: IncomingMessage[] = []
  const sockets: WebSocket[] = []
  const answer: RequestListener = (request, response) => {
    requests.push(request)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"plain":true}')
  }
  const server = tls ? createTlsServer(tls, answer) : createServer(answer)
  const websockets = new WebSocketServer({
    server,
    maxPayload: 64 * 1024 ** 2,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: (protocols) => [...protocols][0] ?? false,
  })
  websockets.on('connection', (socket, request) => {
    handshakes.push(request)
    sockets.push(socket)
    watchClose(socket)
    socket.on('error', () => undefined)
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  const listening = Promise.withResolvers<undefined>()
  server.listen(path === undefined ? { port: 0, host: '127.0.0.1' } : { path }, () =>
    listening.resolve(undefined),
  )
  await listening.promise
  const { port } = server.address() as AddressInfo
  const forget = path === undefined ? rememberUpstream(port) : () => undefined
  atEnd(() => {
    forget()
    for (const socket of sockets) socket.terminate()
    websockets.close()
    server.close()
    server.closeAllConnections()
  })
  const url = path === undefined ? `${tls ? 'https' : 'http'}://127.0.0.1:${port}` : `unix:${path}`
  return { url, handshakes, sockets, requests }
}

/** What came of asking for a websocket. */
export type Asked =
  | { readonly kind: 'open'; readonly socket: WebSocket }
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly headers: IncomingMessage['headers']
      readonly body: string
    }

/** Asks for a websocket with the `ws` client. Ends with the test. */
export async function askWebsocket(
  url: string,
  options: ClientOptions & { readonly protocols?: string[] } = {},
): Promise<Asked> {
  const { protocols, ...rest } = options
  const socket = new WebSocket(url, protocols, rest)
  watchClose(socket)
  atEnd(() => socket.terminate())
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve({ kind: 'open', socket }))
    socket.once('upgrade', (response) => {
      try {
        look(response, '')
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    socket.once('error', reject)
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      response
        .toArray()
        .then((chunks: Buffer[]) => {
          const { statusCode = 0, headers } = response
          const body = Buffer.concat(chunks).toString()
          look(response, body)
          resolve({ kind: 'refused', status: statusCode, headers, body })
        })
        .catch(reject)
    })
  })
}

/** Whether an answer tells where an upstream is. */
const look = ({ headersDistinct }: IncomingMessage, body: string): void =>
  refuseUpstreamAddress({
    rawHeaders: Object.entries(headersDistinct).flatMap(([name, values = []]) =>
      values.map((value) => [name, value] as const),
    ),
    body,
  })

/** The next message. */
export const messageOn = (
  socket: WebSocket,
): Promise<{ readonly data: Buffer; readonly isBinary: boolean }> =>
  new Promise((resolve, reject) => {
    socket.once('message', (data: Buffer, isBinary) => resolve({ data, isBinary }))
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)))
  })

export interface Close {
  readonly code: number
  readonly reason: string
}

/** Kept from the beginning: a websocket may be closed before a test asks how. */
const closes = new WeakMap<WebSocket, Promise<Close>>()

function watchClose(socket: WebSocket): void {
  const { promise, resolve } = Promise.withResolvers<Close>()
  socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  closes.set(socket, promise)
}

/** How a websocket of this file was closed, or will be. */
export function closeOf(socket: WebSocket): Promise<Close> {
  const close = closes.get(socket)
  if (close === undefined) throw new TypeError('closeOf: the websocket is not of this file')
  return close
}
