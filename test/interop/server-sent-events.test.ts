import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRaw } from '../support/raw-http.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { at, streaming, type StreamChanges } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** Event streams of a node:http server to fetch, through the gateway. */

interface Source {
  readonly gateway: StartedPostern
  /** The upstream's side of each stream, in order. */
  readonly streams: { readonly request: IncomingMessage; readonly response: ServerResponse }[]
  readonly token: string
  readonly listen: (signal?: AbortSignal) => Promise<Response>
}

async function source(changes?: StreamChanges): Promise<Source> {
  const streams: Source['streams'] = []
  const server = createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    response.flushHeaders()
    streams.push({ request, response })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const gateway = await postern(streaming(`http://127.0.0.1:${port}`, changes))
  const token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  const listen: Source['listen'] = (signal) =>
    fetch(gateway.baseUrl + at('events'), {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
      ...(signal && { signal }),
    })
  return { gateway, streams, token, listen }
}

/** Pieces as they come, as text. */
const piecesOf = (response: Response): AsyncIterator<string> =>
  response.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()

describe('C8.1 event streams', () => {
  it('C8.1 gives the head before there is any event, and each event before there is a next one', async () => {
    const { listen, streams } = await source()
    const response = await listen()
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const pieces = piecesOf(response)
    for (const event of ['data: 1\n\n', 'event: fund\ndata: {"Code":"SUPER1"}\n\n', ': ping\n\n']) {
      streams[0]!.response.write(event)
      expect((await pieces.next()).value).toBe(event)
    }
    streams[0]!.response.end()
    expect((await pieces.next()).done).toBe(true)
  })

  it('C8.2 asks the upstream for the type that was negotiated, uncompressed', async () => {
    const { listen, streams } = await source()
    const response = await listen()
    expect(streams[0]?.request.headers.accept).toBe('text/event-stream')
    await response.body?.cancel()
  })

  it('C8.1 passes Last-Event-ID', async () => {
    const { gateway, token, streams } = await source()
    const response = await fetch(gateway.baseUrl + at('events'), {
      headers: { Authorization: `Bearer ${token}`, 'Last-Event-ID': '42' },
    })
    expect(streams[0]?.request.headers['last-event-id']).toBe('42')
    await response.body?.cancel()
  })

  it('C8.1 lets the upstream go when the client has left', async () => {
    const { listen, streams } = await source()
    const leave = new AbortController()
    const response = await listen(leave.signal)
    const pieces = piecesOf(response)
    streams[0]!.response.write('data: 1\n\n')
    await pieces.next()
    const gone = new Promise((resolve) => streams[0]!.response.once('close', resolve))
    leave.abort()
    await gone
    expect(streams[0]!.response.writableFinished).toBe(false)
  })

  it('C8.4 cuts the client where the upstream breaks off, by a reset or by silence', async () => {
    const { gateway, token, streams } = await source({ timeouts: { idle: 200 } })
    for (const breakOff of [(response: ServerResponse) => response.destroy(), () => undefined]) {
      const connection = await openRaw(gateway.port)
      connection.send(
        `GET ${at('events')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nAccept: text/event-stream\r\n\r\n`,
      )
      const count = streams.length
      await expect.poll(() => streams.length).toBe(count + 1)
      const { response } = streams.at(-1)!
      response.write('data: 1\n\n')
      await expect.poll(() => connection.unread).toContain('data: 1')
      breakOff(response)
      await connection.closed()
      expect((await connection.response()).whole).toBe(false)
    }
  })

  it('C8.1 answers failures in an envelope: 406 where an event stream is not accepted', async () => {
    const { gateway, token, streams } = await source()
    const response = await fetch(gateway.baseUrl + at('events'), {
      headers: { Authorization: `Bearer ${token}`, Accept: 'application/pdf' },
    })
    expect(response.status).toBe(406)
    expect(await response.json()).toMatchObject({ Errors: [{ Code: 'API_NOT_ACCEPTABLE' }], Data: {} })
    expect(streams).toEqual([])
  })
})
