import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackModule,
  attackUpstream,
  bytesOf,
  type Attacked,
  type AttackedMemory,
  type AttackedModule,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { openRaw } from '../support/raw-http.ts'
import type { UpstreamBehaviour } from '../support/start-upstream.ts'
import { withStream } from '../support/streaming.ts'

/** T2.4: a body that is a second request stays a body, whatever the method and the framing, through every backend. */

let memory: AttackedMemory
let http: AttackedUpstream
let stream: AttackedUpstream
let module: AttackedModule

/** Tells each caller what was asked, so that an answer that went to the wrong one shows. */
const tellTarget: UpstreamBehaviour = (connection) => {
  const { method, target } = connection.request
  const body = JSON.stringify({ target })
  const head = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  connection.raw(`HTTP/1.1 200 OK\r\n${head}\r\n${method === 'HEAD' ? '' : body}`)
}

beforeAll(async () => {
  memory = await attackMemory()
  http = await attackUpstream()
  http.upstream.behave(tellTarget)
  stream = await attackUpstream({ change: (loaded) => withStream(loaded) })
  stream.upstream.behave(tellTarget)
  module = await attackModule()
})
afterAll(async () => {
  await memory.close()
  await http.close()
  await stream.close()
  await module.close()
})
beforeEach(() => {
  memory.forget()
  http.forget()
  stream.forget()
  module.forget()
})

/** The method that a backend is told: a module learns of no HEAD. */
const told = (attacked: Attacked, method: string): string =>
  attacked === module && method === 'HEAD' ? 'GET' : method

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const ANY = '/api/1.0/b/ACME/fund-data/any/x'
const RAW = '/api/1.0/b/ACME/fund-data/raw/x'
const SMUGGLED = 'GET /api/1.0/b/GLOBEX/fund-data/fund-list HTTP/1.1\r\nHost: x\r\nX-Smuggled: 1\r\n\r\n'
const LAST = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

const chunked = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`
const length = `Content-Length: ${SMUGGLED.length}\r\n`
const coding = 'Transfer-Encoding: chunked\r\n'

type Framing = 'length' | 'chunked' | 'both' | 'none'

const FRAMINGS: Readonly<Record<Framing, { readonly lines: string; readonly body: string }>> = {
  length: { lines: length, body: SMUGGLED },
  chunked: { lines: coding, body: chunked },
  both: { lines: length + coding, body: chunked },
  none: { lines: '', body: SMUGGLED },
}

/** Everything that is answered on one connection, a last request of our own included if it is still open then. */
async function statuses({ port }: Attacked, request: Buffer, head: boolean): Promise<number[]> {
  const connection = await openRaw(port)
  connection.send(request)
  const first = await connection.response({ head })
  connection.send(LAST)
  await connection.closed()
  const rest = [...connection.unread.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  connection.destroy()
  return [first.status, ...rest]
}

const send = (attacked: Attacked, method: string, target: string, framing: Framing, type: string) => {
  const { lines, body } = FRAMINGS[framing]
  const contentType = framing === 'none' ? '' : `Content-Type: ${type}\r\n`
  const bytes = bytesOf({ method, target, lines: attacked.authorization + contentType + lines, body })
  return statuses(attacked, bytes, method === 'HEAD')
}

const FORM = 'application/x-www-form-urlencoded'
const OPAQUE = 'application/octet-stream'
const matrix = METHODS.flatMap((method) =>
  (['length', 'chunked', 'both', 'none'] as const).map((framing) => [method, framing] as const),
)

describe('T2.4 a body that is a second request', () => {
  it.each(matrix)(
    'C8.2 stays the body of %s framed by %s where bodies are parsed',
    async (method, framing) => {
      for (const attacked of [memory, http, stream, module]) {
        const got = await send(attacked, method, ANY, framing, FORM)
        const [first, ...others] = got
        if (framing === 'both') expect([got, attacked.reached()]).toEqual([[400], []])
        else if (framing === 'none') expect(others).toEqual([401, 404])
        else expect(others.filter((status) => status !== 404)).toEqual([])
        if (first === 200 || attacked !== memory) expect([200, 400]).toContain(first)
        expect(attacked.reached().filter((line) => line !== `${told(attacked, method)} ${ANY}`)).toEqual([])
        expect(attacked.reached().length).toBeLessThanOrEqual(1)
      }
    },
  )

  it.each(matrix.filter(([, framing]) => framing !== 'none'))(
    'C8.2 stays the body of %s framed by %s where bodies stream through',
    async (method, framing) => {
      for (const attacked of [http, stream, module]) {
        const got = await send(attacked, method, RAW, framing, OPAQUE)
        const takesBodies = !['GET', 'HEAD'].includes(method) && framing !== 'both'
        expect(got[0]).toBe(takesBodies ? 200 : framing === 'both' ? 400 : 415)
        expect(got.slice(1).filter((status) => status !== 404)).toEqual([])
        const received = attacked
          .received()
          .map((request) => [request.method, request.target, String(request.body)])
        expect(received).toEqual(takesBodies ? [[method, RAW, SMUGGLED]] : [])
      }
    },
  )

  it('C8.2 leaves every answer with its own call on the upstream’s kept connections', async () => {
    for (const attacked of [http, stream, module]) {
      for (const [method, framing] of matrix) {
        await send(attacked, method, ANY, framing, FORM)
        await send(attacked, method, RAW, framing, OPAQUE)
        const target = `/api/1.0/b/ACME/fund-data/echo/${method}-${framing}`
        const response = await fetch(attacked.gateway.baseUrl + target, {
          headers: { Authorization: attacked.authorization.trim().slice('Authorization: '.length) },
        })
        expect(await response.json()).toEqual({ Errors: [], Data: { target } })
      }
      expect(attacked.received().filter(({ headers }) => headers['x-smuggled'] !== undefined)).toEqual([])
      expect(attacked.reached().filter((line) => line.includes('GLOBEX'))).toEqual([])
    }
  })

  it('C8.2 is framed by Postern alone: one Content-Length or chunks, never both', async () => {
    for (const attacked of [http, stream]) {
      for (const [method, framing] of matrix) {
        await send(attacked, method, ANY, framing, FORM)
        await send(attacked, method, RAW, framing, OPAQUE)
      }
      for (const { headers } of attacked.received()) {
        const declared = [...(headers['content-length'] ?? []), ...(headers['transfer-encoding'] ?? [])]
        expect(declared.length).toBeLessThanOrEqual(1)
      }
    }
  })
})

describe('T2.3 chunks on their way to an upstream', () => {
  it.each([
    ['extensions', '5;a=b;c="d"\r\nhello\r\n0\r\n\r\n'],
    ['a trailer', '5\r\nhello\r\n0\r\nX-Postern-Business: GLOBEX\r\n\r\n'],
    ['leading zeros', '0000005\r\nhello\r\n000\r\n\r\n'],
    ['many pieces', '1\r\nh\r\n1\r\ne\r\n3\r\nllo\r\n0\r\n\r\n'],
  ])('C8.3 are made anew: %s of the client’s don’t arrive', async (_what, body) => {
    const lines = `${http.authorization}Content-Type: ${OPAQUE}\r\n${coding}`
    // Connections are kept: what they carried before is other tests'.
    const arrived = (): number[] => http.upstream.connections.map(({ bytes }) => bytes.length)
    const before = arrived()
    const got = await statuses(http, bytesOf({ method: 'POST', target: RAW, lines, body }), false)
    expect(got).toEqual([200, 404])
    const [received] = http.received()
    expect(String(received?.body)).toBe('hello')
    expect(received?.headers['x-postern-business']).toEqual(['ACME'])
    expect(arrived()).not.toEqual(before)
    for (const [at, { bytes }] of http.upstream.connections.entries())
      expect(String(bytes.subarray(before[at] ?? 0))).not.toContain('GLOBEX')
  })

  it.each([
    '5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n',
    'zz\r\nhi',
    '5\r\nhelloXX0\r\n\r\n',
    '-1\r\nx',
    '5\nhello\n0\n\n',
  ])(
    'C3.6 are refused where they are broken, and never reach the upstream as a whole request: %j',
    async (body) => {
      const lines = `${http.authorization}Content-Type: ${OPAQUE}\r\n${coding}`
      const got = await statuses(http, bytesOf({ method: 'POST', target: RAW, lines, body }), false)
      expect(got).toEqual([400])
      expect(http.received()).toEqual([])
    },
  )
})
