import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { FaultCode } from '../../src/base/kernel/faults.ts'
import { urlOfNobody } from '../support/free-port.ts'
import { fundsOf, type HttpConfig, replaceFunds } from '../support/changed-funds.ts'
import { eventually } from '../support/eventually.ts'
import { sized } from '../support/long.ts'
import { openRaw, type RawConnection, type RawResponse } from '../support/raw-http.ts'
import { bearer, expectFault, requestBytes, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern, type StartOptions } from '../support/start-postern.ts'
import {
  answerJson,
  openUpstream,
  startUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** T5.1, T5.2, T5.4: whatever an upstream does, the client gets one defined answer or a cut, and the gateway lives on. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'
const FIRST_BYTE = 400
const IDLE = 400

/** Only where an upstream is slow: on a busy machine one that is not may take as long. */
const impatient = (funds: HttpConfig): HttpConfig => ({
  ...funds,
  timeouts: { connect: 1000, firstByte: FIRST_BYTE, idle: IDLE },
})

const withoutTarget = (funds: HttpConfig): HttpConfig => {
  const { target, ...rest } = funds
  expect(target).toBeDefined()
  return rest
}

const authorise = async (gateway: StartedPostern) =>
  bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)

let upstream: Upstream
let gateway: StartedPostern
let authorization: Awaited<ReturnType<typeof authorise>>

/** In front of the upstream. */
async function openGateway(options: StartOptions): Promise<void> {
  const environment = { UPSTREAM_URL: upstream.url }
  gateway = await startPostern({
    ...{ config: 'upstream.yaml', keeps: 'nothing', environment, ...options },
  })
  authorization = await authorise(gateway)
}

beforeAll(async () => {
  upstream = await openUpstream()
  await openGateway({})
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
})

/** Whatever it was, the next call is served. */
afterEach(async () => {
  upstream.behave(answerJson({ alive: true }))
  expect((await ask()).body).toBe('{"Errors":[],"Data":{"alive":true}}')
})

const ask = (sent: Partial<Sent> = {}): Promise<RawResponse> =>
  send(gateway, { target: LIST, ...sent, headers: { ...authorization, ...sent.headers } })

/** The status, or `cut` where the connection ended before the answer did. */
const fateOf = (answer: Promise<RawResponse>): Promise<number | 'cut'> =>
  answer.then(
    ({ status, whole }) => (whole ? status : 'cut'),
    () => 'cut' as const,
  )

const told = (behaviour: UpstreamBehaviour, sent: Partial<Sent> = {}): Promise<RawResponse> => {
  upstream.requests.splice(0)
  upstream.behave(behaviour)
  return ask(sent)
}

const raw =
  (bytes: string): UpstreamBehaviour =>
  (connection) =>
    connection.raw(bytes)

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const XML = { headers: { Accept: 'application/xml' } }
const SMALL = '{"a":1'
const LARGE = `{"a":"${'x'.repeat(300_000)}`

const FRAMINGS = [
  ['a length', (size: number) => `Content-Length: ${size}\r\n\r\n`, (piece: string) => piece],
  [
    'chunks',
    () => 'Transfer-Encoding: chunked\r\n\r\n',
    (piece: string) => `${piece.length.toString(16)}\r\n${piece}\r\n`,
  ],
  ['the end of the connection', () => 'Connection: close\r\n\r\n', (piece: string) => piece],
] as const

describe('T5.1 an upstream that breaks its connection', () => {
  it('T5.1 refuses: 503, with no address in it', async () => {
    const own = await postern({
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: await urlOfNobody() },
      keeps: 'nothing',
    })
    const response = await send(own, { target: LIST, headers: await authorise(own) })
    expectFault(response, 'upstream_unreachable')
    expect(response.headers['retry-after']).toMatch(/^\d+$/)
  })

  it.each([
    ['before its head', ''],
    ['in the middle of its head', 'HTTP/1.1 200 OK\r\nContent-Ty'],
    ['in the middle of its status line', 'HTTP/1.'],
  ])(
    'T5.1 %s, by reset and by end: 503 after one further attempt; of a change 500, after none',
    async (_when, bytes) => {
      for (const end of ['reset', 'end'] as const) {
        const breaks: UpstreamBehaviour = ({ socket }) =>
          void socket.write(bytes, () => (end === 'reset' ? socket.resetAndDestroy() : socket.destroy()))
        expectFault(await told(breaks), 'upstream_unreachable')
        expect(upstream.requests).toHaveLength(2)
        expectFault(
          await told(breaks, { method: 'POST', target: DETAIL, body: '{}', headers: JSON_BODY }),
          'outcome_unknown',
        )
        expect(upstream.requests).toHaveLength(1)
      }
    },
  )

  it.each(FRAMINGS)(
    'T5.2 by reset in mid-body of %s: 503 for what was held, a cut for what was under way',
    async (_framing, framing, piece) => {
      const breaksAfter =
        (text: string): UpstreamBehaviour =>
        ({ socket }) =>
          void socket.write(HEAD + framing(text.length * 2) + piece(text), () =>
            setTimeout(() => socket.resetAndDestroy(), 30),
          )
      expectFault(await told(breaksAfter(SMALL)), 'upstream_unreachable')
      expect(await fateOf(told(breaksAfter(LARGE)))).toBe('cut')
      expectFault(await told(breaksAfter(LARGE), XML), 'upstream_unreachable', { format: 'xml' })
    },
  )

  it('T5.2 by an end short of the length: the same', async () => {
    const short =
      (text: string): UpstreamBehaviour =>
      ({ socket }) =>
        void socket.end(`${HEAD}Content-Length: ${text.length * 2}\r\n\r\n${text}`)
    expectFault(await told(short(SMALL)), 'upstream_unreachable')
    expect(await fateOf(told(short(LARGE)))).toBe('cut')
  })
})

const JSON_BODY = { 'Content-Type': 'application/json' }

describe('T5.4 an upstream that is slow', () => {
  beforeAll(async () => {
    await gateway.close()
    await openGateway({ change: replaceFunds(impatient) })
  })
  afterAll(async () => {
    await gateway.close()
    await openGateway({})
  })

  it('T5.4 never answers: 503 within the time for the first byte, asked once', async () => {
    expectFault(await told(() => undefined), 'upstream_timeout')
    expect(upstream.requests).toHaveLength(1)
  })

  it('T5.4 trickles its head: 503, however steadily', async () => {
    const trickles: UpstreamBehaviour = ({ socket }) => every(20, () => socket.write('X'), socket)
    expectFault(
      await told((connection) => {
        connection.raw(HEAD)
        connection.raw('X-Long: ')
        trickles(connection)
      }),
      'upstream_timeout',
    )
  })

  it('T5.1 sends 103 for ever: 503 when the time for the first byte is over', async () => {
    const hints: UpstreamBehaviour = ({ socket }) =>
      every(30, () => socket.write('HTTP/1.1 103 E\r\nLink: </x>\r\n\r\n'), socket)
    expectFault(await told(hints), 'upstream_timeout')
  })

  it('T5.4 stops in mid-body: 503 for what was held, a cut for what was under way', async () => {
    expectFault(await told(raw(`${HEAD}Content-Length: 900\r\n\r\n${SMALL}`)), 'upstream_timeout')
    expect(await fateOf(told(raw(`${HEAD}Content-Length: 900000\r\n\r\n${LARGE}`)))).toBe('cut')
  })

  it('T5.4 trickles its body: the client sees it come, and may leave', async () => {
    const closed = Promise.withResolvers<undefined>()
    upstream.behave(({ socket }) => {
      socket.once('close', () => closed.resolve(undefined))
      socket.write(`${HEAD}Content-Length: 5000\r\n\r\n"`)
      every(50, () => socket.write('x'), socket)
    })
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ target: LIST, headers: authorization }))
    await eventually(() => expect(client.unread).toContain('xxxxx'))
    expect(client.unread).toContain('HTTP/1.1 200 OK')
    client.destroy()
    await closed.promise
  })

  it('T5.4 one hung backend leaves the others alone', async () => {
    const [hung, good] = await Promise.all([startUpstream(() => undefined), startUpstream()])
    const own = await postern({
      config: 'upstream.yaml',
      keeps: 'nothing',
      environment: { UPSTREAM_URL: hung.url },
      change: (loaded) => {
        const { backends, areas } = loaded
        const funds = {
          ...fundsOf({ backends }),
          timeouts: { connect: 60_000, firstByte: 60_000, idle: 60_000 },
        }
        return {
          ...loaded,
          backends: { ...backends, funds, members: { ...funds, target: good.url } },
          areas: { ...areas, 'member-data': { ...areas['fund-data']!, backend: 'members' } },
        }
      },
    })
    const headers = await authorise(own)
    const stuck = Array.from({ length: 50 }, () => send(own, { target: LIST, headers }))
    await hung.received(50)
    for (let call = 0; call < 50; call++)
      expect((await send(own, { target: MEMBERS, headers })).status).toBe(200)
    hung.behave((connection) => connection.reset())
    for (const { socket } of hung.connections) socket.destroy()
    for (const response of await Promise.all(stuck)) expect(response.status).toBe(503)
  })

  it('T5.4 one hung target among good ones costs no call but those that meet it, and those are asked elsewhere', async () => {
    const [hung, ...good] = await Promise.all([
      startUpstream(() => undefined),
      startUpstream(),
      startUpstream(),
    ])
    const own = await postern({
      config: 'upstream.yaml',
      keeps: 'nothing',
      change: replaceFunds((funds) => ({
        ...withoutTarget(impatient(funds)),
        targets: [hung, ...good].map(({ url }) => url),
        ejection: { failures: 3, for: 60_000 },
      })),
    })
    const headers = await authorise(own)
    for (let round = 0; round < 30; round++) {
      const calls = Array.from({ length: 10 }, () => send(own, { target: LIST, headers }))
      for (const { status } of await Promise.all(calls)) expect(status).toBe(200)
    }
    // No more than those that were under way when it was given up.
    expect(hung.requests.length).toBeLessThanOrEqual(8)
    expect(own.log().find(({ event }) => event === 'upstream_target_ejected')).toMatchObject({
      level: 'warn',
      backend: 'funds',
      target: hung.url,
    })
  })
})

/** Until the socket is closed. */
function every(
  ms: number,
  work: () => void,
  socket: { once(event: 'close', listener: () => void): unknown },
): void {
  const timer = setInterval(work, ms)
  socket.once('close', () => clearInterval(timer))
}

describe('T5.1 an upstream that is no good HTTP', () => {
  it.each<[string, string, number, FaultCode | undefined]>([
    [
      '102 and 103 before its answer',
      `HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nLink: </x>\r\n\r\n${HEAD}Content-Length: 2\r\n\r\n{}`,
      200,
      undefined,
    ],
    [
      '101, which nobody asked for',
      'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      500,
      'upstream_broken',
    ],
    ['status 888', 'HTTP/1.1 888 X\r\nContent-Length: 0\r\n\r\n', 500, 'upstream_broken'],
    ['status 000', 'HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n', 500, 'upstream_broken'],
    [
      'two Content-Lengths',
      `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `,
      500,
      'upstream_broken',
    ],
    [
      'Content-Length and chunks',
      `${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      500,
      'upstream_broken',
    ],
    ['a bad Content-Length', `${HEAD}Content-Length: 2x\r\n\r\n{}`, 500, 'upstream_broken'],
    ['a bad chunk', `${HEAD}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n`, 500, 'upstream_broken'],
    [
      '64 KB of headers',
      `${HEAD}${`X-Filler: ${'x'.repeat(1000)}\r\n`.repeat(64)}Content-Length: 2\r\n\r\n{}`,
      500,
      'upstream_broken',
    ],
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n', 500, 'upstream_broken'],
    [
      'a control character in a header',
      `${HEAD}ETag: "a\x01b"\r\nContent-Length: 2\r\n\r\n{}`,
      500,
      'upstream_broken',
    ],
  ])('T5.1 sends %s', async (_what, bytes, status, code) => {
    const response = await told(raw(bytes))
    expect(response.status, response.body).toBe(status)
    if (code !== undefined) expectFault(response, code)
  })

  it('T2.3 what it sends behind its answer is nobody’s', async () => {
    const stray = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'
    expect((await told(raw(`${HEAD}Content-Length: 2\r\n\r\n{}${stray}`))).body).toContain('"Data":{}')
    for (let call = 0; call < 5; call++)
      expect((await told(answerJson({ own: call }))).body).toContain(`{"own":${call}}`)
  })
})

describe('T5.1 an upstream that sends too much', () => {
  const endless =
    (closed: () => void): UpstreamBehaviour =>
    ({ socket }) => {
      socket.once('close', closed)
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\n"xx\r\n`)
      const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
      const more = (): void => {
        while (!socket.destroyed && socket.write(chunk));
      }
      socket.on('drain', more)
      more()
    }

  it('T5.1 an endless body that must be converted: 500, and its connection is given up', async () => {
    const closed = Promise.withResolvers<undefined>()
    expectFault(
      await told(
        endless(() => closed.resolve(undefined)),
        XML,
      ),
      'answer_too_large',
      { format: 'xml' },
    )
    await closed.promise
  })

  it('T5.1 an endless body that passes: as fast as the client reads, until it leaves', async () => {
    const closed = Promise.withResolvers<undefined>()
    upstream.behave(endless(() => closed.resolve(undefined)))
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ target: LIST, headers: authorization }))
    let read = 0
    for await (const chunk of client.socket as AsyncIterable<string>) {
      read += chunk.length
      if (read > 5 * 1024 ** 2) break
    }
    client.destroy()
    await closed.promise
  })

  it('T5.1 a gzip bomb where it converts: 500, unread', async () => {
    const bomb = gzipSync(Buffer.alloc(sized(20, 50) * 1024 ** 2, ' '))
    const sends: UpstreamBehaviour = (connection) =>
      connection.respond({
        headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
        body: bomb,
      })
    const before = process.memoryUsage().arrayBuffers
    for (const headers of [XML.headers, { 'Accept-Encoding': 'gzip' }])
      expect((await told(sends, { headers })).status).toBe(500)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * 1024 ** 2)
  })

  it('T5.1 a storm of 503 with 256 KB each: one call for each GET', async () => {
    const body = Buffer.alloc(256 * 1024, 'x')
    upstream.requests.splice(0)
    upstream.behave((connection) =>
      connection.respond({ status: 503, headers: { 'Retry-After': '3' }, body }),
    )
    for (let round = 0; round < 5; round++) {
      for (const response of await Promise.all(Array.from({ length: 20 }, () => ask())))
        expectFault(response, 'upstream_unavailable')
    }
    expect(upstream.requests).toHaveLength(100)
  })
})

describe('T5.1 an upstream that closes kept connections as they are used', () => {
  const CLIENTS = 10
  const EACH = sized(30, 100)

  const callsOf = async (connection: RawConnection): Promise<number[]> => {
    const statuses: number[] = []
    for (let call = 0; call < EACH; call++) {
      connection.send(requestBytes({ target: LIST, headers: authorization }))
      statuses.push((await connection.response()).status)
    }
    connection.destroy()
    return statuses
  }

  it.each(['reset', 'end'] as const)(`T5.1 by %s: none of ${CLIENTS * EACH} GETs fails`, async (how) => {
    const calls = new WeakMap<object, number>()
    upstream.behave((connection) => {
      const { socket } = connection
      const count = (calls.get(socket) ?? 0) + 1
      calls.set(socket, count)
      if (count < 3) connection.respond({ headers: JSON_BODY, body: '{}' })
      else if (how === 'reset') connection.reset()
      else socket.end()
    })
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => openRaw(gateway.port)))
    const statuses = (await Promise.all(clients.map(callsOf))).flat()
    expect(statuses).toHaveLength(CLIENTS * EACH)
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})
