import { connect, type Socket } from 'node:net'
import { refuseUpstreamAddress, refuseUpstreamAddressIn } from './upstream-addresses.ts'

/** One response as it came off the wire. */
export interface RawResponse {
  readonly status: number
  readonly reason: string
  readonly version: string
  /** By lower-case name; repeated lines joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly rawHeaders: readonly (readonly [string, string])[]
  readonly body: string
  /** False if the connection ended before the body did. */
  readonly whole: boolean
}

/** A connection that sends exactly the bytes it is given: HTTP clients normalise attacks away. */
export interface RawConnection {
  send(bytes: string | Buffer): void
  /** Half-closes: no more bytes will come. */
  end(): void
  /** The next response. Informational ones (100) are responses of their own. Rejects if the connection ends first. */
  response(how?: { readonly head?: boolean }): Promise<RawResponse>
  /** Resolves when the server has closed; `reset` tells whether it was by RST. */
  closed(): Promise<{ readonly reset: boolean }>
  readonly isClosed: boolean
  /** What has arrived and was not taken by `response`. */
  readonly unread: string
  readonly socket: Socket
  destroy(): void
}

/**
 * Opens a connection to 127.0.0.1. Half-open: the server's end does not end our side.
 * @param from address of loopback that it comes from
 */
export async function openRaw(port: number, from = '127.0.0.1'): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve).once('error', reject)
  })
  return new RawClient(socket)
}

/** Sends bytes on a connection of their own and takes one response and how the connection ended up. */
export async function sendRaw(
  port: number,
  bytes: string | Buffer,
  how: { readonly head?: boolean } = {},
): Promise<RawResponse> {
  const connection = await openRaw(port)
  try {
    connection.send(bytes)
    return await connection.response(how)
  } finally {
    connection.destroy()
  }
}

/** Goes on reading, with a rest of 100 ms for each MiB. */
export function readSlowly(socket: Socket): void {
  const piece = 1024 ** 2
  let rested = 0
  socket.on('data', () => {
    if (socket.bytesRead - rested < piece) return
    rested = socket.bytesRead
    socket.pause()
    setTimeout(() => socket.resume(), 100)
  })
  socket.resume()
}

/** Everything that a server sends on these bytes until it closes. */
export async function exchangeRaw(port: number, bytes: string | Buffer): Promise<string> {
  const connection = await openRaw(port)
  connection.send(bytes)
  await connection.closed()
  const all = connection.unread
  connection.destroy()
  refuseUpstreamAddressIn(all)
  return all
}

class RawClient implements RawConnection {
  readonly socket: Socket
  #received = ''
  #ended = false
  #reset = false
  #waiters: (() => void)[] = []

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#received += text
      this.#wake()
    })
    socket.on('end', () => this.#finish(false))
    socket.on('error', (error: NodeJS.ErrnoException) => this.#finish(error.code === 'ECONNRESET'))
    socket.on('close', () => this.#finish(false))
  }

  get unread(): string {
    return this.#received
  }

  get isClosed(): boolean {
    return this.#ended
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  end(): void {
    this.socket.end()
  }

  destroy(): void {
    this.socket.destroy()
  }

  async closed(): Promise<{ reset: boolean }> {
    while (!this.#ended) await this.#more()
    return { reset: this.#reset }
  }

  async response({ head = false }: { head?: boolean } = {}): Promise<RawResponse> {
    for (;;) {
      const parsed = parseResponse(this.#received, this.#ended, head)
      if (parsed !== undefined) {
        this.#received = this.#received.slice(parsed.length)
        refuseUpstreamAddress(parsed.response)
        return parsed.response
      }
      if (this.#ended) throw new Error(`the connection ended without a response: ${this.#received}`)
      await this.#more()
    }
  }

  #finish(reset: boolean): void {
    this.#ended = true
    this.#reset ||= reset
    this.#wake()
  }

  #wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const wake of waiters) wake()
  }

  #more(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }
}

interface Parsed {
  readonly response: RawResponse
  readonly length: number
}

function parseResponse(text: string, ended: boolean, head: boolean): Parsed | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n')
  const [, version, status, reason] = /^HTTP\/(\d\.\d) (\d{3}) ?(.*)$/.exec(statusLine) ?? []
  if (status === undefined) throw new Error(`no status line: ${statusLine}`)
  const rawHeaders = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
  })
  const headers: Record<string, string> = {}
  for (const [name, value] of rawHeaders) {
    const key = name.toLowerCase()
    headers[key] = headers[key] === undefined ? value : `${headers[key]}, ${value}`
  }
  const bodiless = head || status.startsWith('1') || status === '204' || status === '304'
  const body = bodiless
    ? { text: '', length: 0, whole: true }
    : readBody(text.slice(headEnd + 4), headers, ended)
  if (body === undefined) return undefined
  return {
    response: {
      status: Number(status),
      reason: reason ?? '',
      version: version ?? '',
      headers,
      rawHeaders,
      body: Buffer.from(body.text, 'latin1').toString('utf8'),
      whole: body.whole,
    },
    length: headEnd + 4 + body.length,
  }
}

interface RawBody {
  readonly text: string
  readonly length: number
  readonly whole: boolean
}

function readBody(rest: string, headers: Record<string, string>, ended: boolean): RawBody | undefined {
  if (headers['transfer-encoding'] === 'chunked') return readChunks(rest, ended)
  const declared = headers['content-length']
  if (declared === undefined) return ended ? { text: rest, length: rest.length, whole: true } : undefined
  const length = Number(declared)
  if (rest.length >= length) return { text: rest.slice(0, length), length, whole: true }
  return ended ? { text: rest, length: rest.length, whole: false } : undefined
}

function readChunks(rest: string, ended: boolean): RawBody | undefined {
  let text = ''
  let at = 0
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(rest.slice(at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (Number.isNaN(size) || rest.length < end) {
      return ended ? { text, length: rest.length, whole: false } : undefined
    }
    if (size === 0) return { text, length: end, whole: true }
    text += rest.slice(lineEnd + 2, end - 2)
    at = end
  }
}
