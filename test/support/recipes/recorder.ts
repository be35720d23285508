import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** A request as a service received it. */
export interface ReceivedRequest {
  /** `GET /path HTTP/1.1` */
  readonly line: string
  /** Names as they were sent. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

export interface Recorder {
  readonly requests: readonly ReceivedRequest[]
  stop(): Promise<void>
}

/** Passes every byte between `port` and `target`, both on 127.0.0.1, and reads along what is asked. */
export async function record(
  port: number,
  target: number,
  onRequest: (request: ReceivedRequest) => void = () => undefined,
): Promise<Recorder> {
  const requests: ReceivedRequest[] = []
  const open = new Set<Socket>()
  const reader = readRequests((request) => {
    requests.push(request)
    onRequest(request)
  })
  const server = createServer((client) => {
    const service = connect(target, '127.0.0.1')
    for (const socket of [client, service])
      open.add(socket.on('error', () => undefined).on('close', () => drop(open, client, service)))
    const copy = copyFor(reader)
    client.on('data', (chunk: Buffer) => copy.push(chunk))
    client.pipe(service).pipe(client)
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    requests,
    stop: async () => {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
}

function drop(open: Set<Socket>, ...sockets: readonly Socket[]): void {
  for (const socket of sockets) {
    socket.destroy()
    open.delete(socket)
  }
}

/** A connection to the reader: what is pushed it reads, what it answers is lost. */
function copyFor(reader: Server): Duplex {
  const copy = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  copy.on('error', () => undefined)
  reader.emit('connection', copy)
  return copy
}

/** Node's own parser for requests, on a server that listens nowhere. */
function readRequests(onRequest: (request: ReceivedRequest) => void): Server {
  const tell = (request: IncomingMessage, body: string): void =>
    onRequest({
      line: `${request.method} ${request.url} HTTP/${request.httpVersion}`,
      headers: pairs(request.rawHeaders),
      body,
    })
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      tell(request, Buffer.concat(chunks).toString())
      response.end()
    })
  })
  return server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    socket.resume()
    tell(request, '')
  })
}

const pairs = (raw: readonly string[]): readonly (readonly [string, string])[] =>
  raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []))

/** As the pages show it. */
export const requestText = ({ line, headers, body }: ReceivedRequest): string =>
  [line, ...headers.map(([name, value]) => `${name}: ${value}`), ...(body === '' ? [] : ['', body])].join(
    '\n',
  )
