import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { sized } from '../support/long.ts'
import { openRaw } from '../support/raw-http.ts'
import { atEnd, shared } from '../support/shared.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { at, streaming } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** T5: uploads and downloads of any size take no memory of any size. */

const MIB = 1024 ** 2
/** Of what passes whole. */
const SIZE = sized(16, 64) * MIB
/** Of what is not taken whole: more than all that is on the way may hold. */
const LARGE = 64 * MIB
/** One piece, sent over and over: what is held beyond it is held by somebody on the way. */
const PIECE = Buffer.alloc(MIB / 4, 'postern')
/** What may be held on the way: buffers of four sockets in the kernel (some MB each), and little of ours. */
const HELD = 32 * MIB
/** What this process may hold of what passes. */
const HELD_HERE = SIZE / 2

const serve = shared(async () => {
  const state: { listener: RequestListener } = { listener: () => undefined }
  const server = createServer((incoming, response) => state.listener(incoming, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const gateway = await postern({ ...streaming(`http://127.0.0.1:${port}`), keeps: 'nothing' })
  const token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  return { state, gateway, authorization: `Bearer ${token}` }
})

interface Asked {
  readonly gateway: StartedPostern
  readonly authorization: string
}

/** The service that the tests share, before an upstream that does this. */
async function before(
  listener: RequestListener,
  open: () => ReturnType<typeof serve> = serve,
): Promise<Asked> {
  const { state, gateway, authorization } = await open()
  state.listener = listener
  return { gateway, authorization }
}

/** A connection that has carried much has larger buffers of the system. */
const ANEW = () => serve.own()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** What this process, gateway included, holds outside its heap, garbage apart, in bytes. */
const held = (): number => {
  // What the first finds is freed by a thread of its own; the second waits for that.
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

interface Supply {
  readonly stream: Readable
  /** How far it came, in bytes. */
  readonly given: () => number
  /** The most that was held at one of four moments on the way, beyond what was held before the first. */
  readonly mostHeld: () => number
}

/** Bytes in `PIECE`s, as many as are asked for. */
function supply(size: number): Supply {
  const before = held()
  let given = 0
  let most = before
  const stream = new Readable({
    read() {
      if (given % (size / 4) === 0) most = Math.max(most, held())
      if (given < size) this.push(PIECE)
      else this.push(null)
      given += PIECE.length
    },
  })
  return { stream, given: () => given, mostHeld: () => most - before }
}

const uploading = (
  { port }: StartedPostern,
  authorization: string,
  headers: Record<string, string> = {},
): ReturnType<typeof request> =>
  request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: at('upload'),
    headers: { Authorization: authorization, 'Content-Type': 'application/octet-stream', ...headers },
  })

const count = async (stream: AsyncIterable<Buffer>): Promise<number> => {
  let size = 0
  for await (const chunk of stream) size += chunk.length
  return size
}

/** Resolves when a number has not changed for a while: what flows no more. */
async function settled(read: () => number): Promise<number> {
  let last = -1
  let same = 0
  await expect
    .poll(
      () => {
        same = read() === last ? same + 1 : 0
        last = read()
        return same
      },
      { interval: 50, timeout: 10_000 },
    )
    .toBeGreaterThan(5)
  return last
}

const FRAMINGS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['a declared length', { 'Content-Length': String(SIZE) }],
  ['chunks', {}],
]

describe('T5 bodies of any size', () => {
  it.each(FRAMINGS)(
    `C8.1 uploads ${SIZE / MIB} MiB in %s, whole, in constant memory`,
    async (_framing, headers) => {
      const { gateway, authorization } = await before((incoming, response) => {
        void count(incoming).then((size) => {
          response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ size }))
        })
      })
      const { stream, mostHeld } = supply(SIZE)
      const upload = uploading(gateway, authorization, headers)
      const answered = new Promise<IncomingMessage>((resolve) => upload.once('response', resolve))
      stream.pipe(upload)
      const answer = await answered
      expect(mostHeld()).toBeLessThan(HELD_HERE)
      expect(JSON.parse(Buffer.concat(await answer.toArray()).toString())).toEqual({
        Errors: [],
        Data: { size: SIZE },
      })
    },
  )

  it.each(FRAMINGS)(
    `C8.1 downloads ${SIZE / MIB} MiB in %s, whole, in constant memory`,
    async (_framing, headers) => {
      const { stream, mostHeld } = supply(SIZE)
      const { gateway, authorization } = await before((_incoming, response) => {
        response.writeHead(200, { 'Content-Type': 'application/octet-stream', ...headers })
        stream.pipe(response)
      })
      const response = await fetch(gateway.baseUrl + at('download'), {
        headers: { Authorization: authorization },
      })
      expect(response.headers.get('content-length')).toBe(headers['Content-Length'] ?? null)
      expect(await count(response.body as unknown as AsyncIterable<Buffer>)).toBe(SIZE)
      expect(mostHeld()).toBeLessThan(HELD_HERE)
    },
  )

  it('T5.3 takes no more from a client than the upstream reads', async () => {
    const connections: Socket[] = []
    const { gateway, authorization } = await before((incoming) => {
      connections.push(incoming.socket)
      incoming.on('error', () => undefined).pause()
    }, ANEW)
    const { stream, given } = supply(LARGE)
    const upload = uploading(gateway, authorization)
    upload.on('error', () => undefined)
    stream.pipe(upload)
    await expect.poll(() => connections.length).toBe(1)
    expect(await settled(given)).toBeLessThan(HELD)
    connections[0]?.destroy()
    upload.destroy()
  })

  it('T5.1 notices within 5 s that a client has reset its upload, though the upstream reads nothing', async () => {
    let asked = 0
    const { gateway, authorization } = await before(
      (incoming) => {
        asked += 1
        incoming.on('error', () => undefined).pause()
      },
      () => serve.own(),
    )
    const { stream, given } = supply(LARGE)
    const upload = uploading(gateway, authorization)
    upload.on('error', () => undefined)
    stream.pipe(upload)
    await expect.poll(() => asked).toBe(1)
    await settled(given)
    stream.unpipe(upload)
    upload.socket?.resetAndDestroy()
    const gone = async (): Promise<boolean> => {
      const told = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      return /^postern_decisions_total\{reason="client_gone".* 1$/m.test(told)
    }
    await expect.poll(gone).toBe(true)
  })

  it('T5.3 takes no more from an upstream than the client reads', async () => {
    const { stream, given } = supply(LARGE)
    const { gateway, authorization } = await before((_incoming, response) => {
      response.writeHead(200, { 'Content-Type': 'application/octet-stream' })
      stream.pipe(response)
    }, ANEW)
    const connection = await openRaw(gateway.port)
    connection.socket.pause()
    connection.send(`GET ${at('download')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
    await expect.poll(given).toBeGreaterThan(0)
    expect(await settled(given)).toBeLessThan(HELD)
    connection.destroy()
  })

  it('T5 lets the upstream go when a client leaves in mid-upload, and in mid-download', async () => {
    const sockets: Socket[] = []
    const { gateway, authorization } = await before((incoming, response) => {
      sockets.push(incoming.socket)
      incoming.on('error', () => undefined).resume()
      if (incoming.method === 'GET') {
        response.writeHead(200, { 'Content-Type': 'application/octet-stream' })
        supply(LARGE).stream.pipe(response)
      }
    })
    const upload = uploading(gateway, authorization)
    upload.on('error', () => undefined)
    upload.write(PIECE)
    await expect.poll(() => sockets.length).toBe(1)
    upload.destroy()
    await expect.poll(() => sockets[0]?.closed).toBe(true)
    const leave = new AbortController()
    const response = await fetch(gateway.baseUrl + at('download'), {
      headers: { Authorization: authorization },
      signal: leave.signal,
    })
    expect(response.status).toBe(200)
    leave.abort()
    await expect.poll(() => sockets[1]?.closed).toBe(true)
  })

  it('T5.2 cuts a download that the upstream breaks off', async () => {
    const { gateway, authorization } = await before((_incoming, response) => {
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': String(SIZE) })
      response.write(PIECE, () => response.destroy())
    })
    const connection = await openRaw(gateway.port)
    connection.send(`GET ${at('download')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
    await connection.closed()
    expect((await connection.response()).whole).toBe(false)
    connection.destroy()
  })

  it('C7.1 passes ranges of a download', async () => {
    const asked: (string | undefined)[] = []
    const { gateway, authorization } = await before((incoming, response) => {
      asked.push(incoming.headers.range)
      const headers = { 'Content-Type': 'application/octet-stream', 'Content-Range': 'bytes 0-3/10' }
      response.writeHead(206, headers).end('post')
    })
    const response = await fetch(gateway.baseUrl + at('download'), {
      headers: { Authorization: authorization, Range: 'bytes=0-3' },
    })
    expect([response.status, response.headers.get('content-range'), await response.text(), asked]).toEqual([
      206,
      'bytes 0-3/10',
      'post',
      ['bytes=0-3'],
    ])
  })
})
