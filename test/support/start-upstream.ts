import { createServer, type AddressInfo, type Socket } from 'node:net'
import { anewForEachTest, atEnd } from './shared.ts'
import { rememberUpstream } from './upstream-addresses.ts'

/** One request as an upstream received it. */
export interface ReceivedRequest {
  /** Request line and headers, exactly as they came, without the empty line. */
  readonly head: string
  readonly method: string
  readonly target: string
  /** By lower-case name; every line of its own. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly body: Buffer
}

export interface UpstreamConnection {
  readonly request: ReceivedRequest
  readonly socket: Socket
  /** A well-formed response. Content-Length is added unless `framing` is given. */
  respond(answer?: UpstreamAnswer): void
  /** Exactly these bytes. */
  raw(bytes: string | Buffer): void
  /** RST. */
  reset(): void
}

export interface UpstreamAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export type UpstreamBehaviour = (connection: UpstreamConnection) => void

export interface Upstream {
  readonly port: number
  readonly url: string
  /** Every request, whole, in order. What is not here was not received. */
  readonly requests: ReceivedRequest[]
  /** All bytes of each connection, in order of opening. */
  readonly connections: { bytes: Buffer; readonly socket: Socket }[]
  /** What it does with requests from now on. */
  behave(behaviour: UpstreamBehaviour): void
  /** The n-th request (from 1), once it is there. */
  received(count: number): Promise<ReceivedRequest>
  close(): Promise<void>
}

export const answerJson =
  (value: unknown, answer: UpstreamAnswer = {}): UpstreamBehaviour =>
  (connection) =>
    connection.respond({
      ...answer,
      headers: { 'Content-Type': 'application/json', ...answer.headers },
      body: JSON.stringify(value),
    })

/** An upstream on a socket: it records the bytes that it gets and does as it is told. Ends with the test. */
export async function startUpstream(behaviour?: UpstreamBehaviour): Promise<Upstream> {
  const upstream = await openUpstream(behaviour)
  atEnd(() => upstream.close())
  return upstream
}

/** The same for a whole file: whoever opens it closes it. */
export async function openUpstream(
  behaviour: UpstreamBehaviour = answerJson({ ok: true }),
): Promise<Upstream> {
  const state = { behaviour }
  const requests: ReceivedRequest[] = []
  const connections: Upstream['connections'] = []
  const waiters: (() => void)[] = []
  const server = createServer((socket) => {
    const connection: Upstream['connections'][number] = { bytes: Buffer.alloc(0), socket }
    connections.push(connection)
    let unread: Buffer = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      connection.bytes = Buffer.concat([connection.bytes, chunk])
      unread = Buffer.concat([unread, chunk])
      for (let parsed = parseRequest(unread); parsed; parsed = parseRequest(unread)) {
        unread = unread.subarray(parsed.length)
        requests.push(parsed.request)
        for (const wake of waiters.splice(0)) wake()
        state.behaviour(speaker(parsed.request, socket))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  anewForEachTest(() => {
    state.behaviour = behaviour
    requests.length = 0
    for (const connection of connections) connection.bytes = Buffer.alloc(0)
  })
  const { port } = server.address() as AddressInfo
  const forget = rememberUpstream(port)
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      forget()
      for (const { socket } of connections) socket.destroy()
      server.close(() => resolve())
    })
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    connections,
    behave: (next) => {
      state.behaviour = next
    },
    received: async (count) => {
      while (requests.length < count) await new Promise<void>((resolve) => waiters.push(resolve))
      return requests[count - 1]!
    },
    close,
  }
}

function speaker(request: ReceivedRequest, socket: Socket): UpstreamConnection {
  return {
    request,
    socket,
    raw: (bytes) => void socket.write(bytes),
    reset: () => void socket.resetAndDestroy(),
    respond: ({ status = 200, headers = {}, body = '' } = {}) => {
      const bytes = Buffer.from(body)
      const lines = Object.entries({ 'Content-Length': String(bytes.length), ...headers })
      const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      socket.write(Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${head}\r\n`, 'latin1'), bytes]))
    },
  }
}

function parseRequest(bytes: Buffer): { request: ReceivedRequest; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = bytes.toString('latin1', 0, end)
  const [line = '', ...lines] = head.split('\r\n')
  const [method = '', target = ''] = line.split(' ')
  const headers = Object.create(null) as Record<string, string[]>
  for (const each of lines) {
    const colon = each.indexOf(':')
    ;(headers[each.slice(0, colon).toLowerCase()] ??= []).push(each.slice(colon + 1).trim())
  }
  const rest = bytes.subarray(end + 4)
  const body = headers['transfer-encoding'] ? parseChunks(rest) : parseLength(rest, headers['content-length'])
  if (body === undefined) return undefined
  return { request: { head, method, target, headers, body: body.bytes }, length: end + 4 + body.length }
}

function parseLength(
  rest: Buffer,
  [declared = '0']: string[] = [],
): { bytes: Buffer; length: number } | undefined {
  const length = Number(declared)
  return rest.length < length ? undefined : { bytes: rest.subarray(0, length), length }
}

function parseChunks(rest: Buffer): { bytes: Buffer; length: number } | undefined {
  const chunks: Buffer[] = []
  for (let at = 0; ;) {
    const line = rest.indexOf('\r\n', at)
    if (line === -1) return undefined
    const size = Number.parseInt(rest.toString('latin1', at, line), 16)
    const end = line + 2 + size + 2
    if (rest.length < end) return undefined
    if (size === 0) return { bytes: Buffer.concat(chunks), length: end }
    chunks.push(rest.subarray(line + 2, end - 2))
    at = end
  }
}
