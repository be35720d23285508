import { StreamInPieces } from '../../../src/base/http/body/pieces.ts'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HttpBackend } from '../../../src/gateway/backends/forward/http.ts'
import type {
  BackendAnswer,
  Forwarding,
  UpstreamCallback,
  UpstreamResponse,
} from '../../../src/base/contracts/calls/backend.ts'
import type { Answer, Door, Exchange } from '../../../src/base/contracts/calls/exchange.ts'
import { type Fault, toFault } from '../../../src/base/kernel/faults.ts'
import { type CallOverrides, makeCall } from '../../support/calls.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { renderSimply, startListener } from '../../support/listener.ts'
import { openRaw, sendRaw } from '../../support/raw-http.ts'
import { answerJson, startUpstream, type UpstreamBehaviour } from '../../support/start-upstream.ts'

const STREAMED: CallOverrides = {
  action: {
    area: 'a',
    action: 'b',
    level: 'business',
    versioned: false,
    safe: true,
    produces: ['text/plain'],
  },
  accept: 'text/plain',
}

/** A door that has a backend answer over the exchange's own carrier, before the public listener. */
async function begin(behaviour: UpstreamBehaviour, retries = 1, call: CallOverrides = {}) {
  const upstream = await startUpstream(behaviour)
  const backend = openHttpBackend(upstream.url, { retries })
  onTestFinished(() => backend.close())
  const outcomes: (number | Fault)[] = []
  const hook: { before?: (exchange: Exchange) => Promise<unknown> } = {}
  const door: Door = async (exchange) => {
    await hook.before?.(exchange)
    try {
      const { method } = exchange.head
      const answer = await backend.answer(
        makeCall({
          method,
          carrier: exchange.carrier,
          onCancel: (leave) => exchange.onGone(leave),
          ...call,
        }),
      )
      outcomes.push(answer.status)
      return asAnswer(answer)
    } catch (thrown) {
      outcomes.push(toFault(thrown))
      return renderSimply(toFault(thrown), undefined)
    }
  }
  const { port, events } = await startListener(door)
  return { upstream, backend, outcomes, hook, port, events }
}

const asAnswer = ({ status, body }: BackendAnswer): Answer => ({
  status,
  headers: {},
  body: body.kind === 'bytes' ? body.bytes : body.kind === 'stream' ? body.pieces : undefined,
})

const request = (port: number, method = 'GET'): string =>
  `${method} /api/1.0/b/ACME/x HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`

const inFlight = ({ targets }: HttpBackend): number =>
  targets.all.reduce((sum, target) => sum + target.inFlight, 0)

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn()
}

/** The outcome of the only call, with nothing left behind it. */
async function outcomeOf({ outcomes, backend }: Awaited<ReturnType<typeof begin>>): Promise<number | Fault> {
  await until(() => outcomes.length > 0 && inFlight(backend) === 0)
  expect(outcomes).toHaveLength(1)
  return outcomes[0]!
}

const refuses: UpstreamBehaviour = (connection) => connection.reset()
const silent: UpstreamBehaviour = () => undefined

describe('what a backend forwards over reply-from', () => {
  it('C8.4 an answer comes back as the upstream gave it, with nothing of its headers on the reply', async () => {
    const made = await begin(answerJson(7, { headers: { 'X-Secret': 'of the upstream' } }))
    const { status, body, headers } = await sendRaw(made.port, request(made.port))
    expect([status, body, headers['x-secret']]).toEqual([200, '7', undefined])
    expect(await outcomeOf(made)).toBe(200)
  })

  it('T2.3 of the client’s request nothing goes upstream but what the backend wrote', async () => {
    const made = await begin(answerJson(7))
    const head = request(made.port).replace('\r\n\r\n', '\r\nConnection: close, accept\r\nX-Own: 1\r\n\r\n')
    expect((await sendRaw(made.port, head)).status).toBe(200)
    const { headers } = made.upstream.requests[0]!
    expect([headers['accept'], headers['x-own'], headers['connection']]).toEqual([
      ['application/json'],
      undefined,
      ['keep-alive'],
    ])
  })

  it('C8.5 a refused call is sent as often as the backend says, and reported once', async () => {
    for (const retries of [0, 2]) {
      const made = await begin(refuses, retries)
      expect((await sendRaw(made.port, request(made.port))).status).toBe(503)
      expect(await outcomeOf(made)).toMatchObject({ code: 'upstream_unreachable' })
      expect(made.upstream.requests).toHaveLength(1 + retries)
    }
  })

  it('T5.1 an upstream’s 503 is sent once', async () => {
    const made = await begin((connection) => connection.respond({ status: 503 }), 3)
    expect((await sendRaw(made.port, request(made.port))).status).toBe(503)
    expect(await outcomeOf(made)).toMatchObject({ code: 'upstream_unavailable' })
    expect(made.upstream.requests).toHaveLength(1)
  })

  it('C8.4 HEAD is forwarded as HEAD, and answered without a body', async () => {
    const made = await begin((connection) =>
      connection.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n'),
    )
    const { status, body } = await sendRaw(made.port, request(made.port, 'HEAD'), { head: true })
    expect([status, body]).toEqual([200, ''])
    expect(made.upstream.requests[0]!.method).toBe('HEAD')
    expect(await outcomeOf(made)).toBe(200)
  })

  it('T5.2 a client that leaves before the answer ends the call, here and at the upstream', async () => {
    const made = await begin(silent)
    const connection = await openRaw(made.port)
    connection.send(request(made.port))
    await made.upstream.received(1)
    connection.destroy()
    expect(await outcomeOf(made)).toMatchObject({ code: 'client_gone' })
    await until(() => made.upstream.connections.every(({ socket }) => socket.destroyed))
  })

  it('T5.2 a client that left before its call was forwarded is not forwarded', async () => {
    const made = await begin(answerJson(1))
    made.hook.before = (exchange) => new Promise<void>((resolve) => exchange.onGone(resolve))
    const connection = await openRaw(made.port)
    connection.send(request(made.port))
    await nextTurn()
    connection.destroy()
    expect(await outcomeOf(made)).toMatchObject({ code: 'client_gone' })
  })

  it('T5.2 a client that leaves between two attempts ends the call', async () => {
    const made = await begin(silent, 3)
    const connection = await openRaw(made.port)
    made.upstream.behave((upstream) => {
      upstream.reset()
      connection.destroy()
      made.upstream.behave(silent)
    })
    connection.send(request(made.port))
    expect(await outcomeOf(made)).toMatchObject({ code: 'client_gone' })
  })

  it('T5.2 a client that leaves in the middle of the answer ends the call at the upstream', async () => {
    const made = await begin(
      (connection) => connection.raw('HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n' + 'x'.repeat(1000)),
      1,
      STREAMED,
    )
    const connection = await openRaw(made.port)
    connection.send(request(made.port))
    await until(() => made.outcomes.length > 0)
    connection.destroy()
    expect(await outcomeOf(made)).toBe(200)
    await until(() => made.upstream.connections.every(({ socket }) => socket.destroyed))
  })
})

/** A forwarding whose attempts end as the test says. */
async function carried(send: (callback: UpstreamCallback, exchange: Exchange) => void, delay = 0) {
  const reported: unknown[] = []
  const { port } = await startListener(
    (exchange) =>
      new Promise((resolve) => {
        const end = (what: unknown): void => {
          reported.push(what)
          resolve({ status: 200, headers: {}, body: undefined })
        }
        const forwarding: Forwarding = {
          send: (callback) => send(callback, exchange),
          retryDelay: (error, attempt) => (error && attempt < delay ? 1 : null),
          answered: ({ statusCode }) => end(statusCode),
          failed: end,
        }
        exchange.carrier.carry(forwarding)
      }),
  )
  return { port, reported }
}

const respond = (statusCode: number, body: UpstreamResponse['body'] = Buffer.alloc(0)): UpstreamResponse => ({
  statusCode,
  headers: {},
  body,
})

describe('a carrier reports exactly once', () => {
  it.each([0, 99, 600, 1000, NaN])('C8.4 a status that cannot be sent (%s) is a failure', async (status) => {
    const body = new Readable({ read: () => undefined })
    const { port, reported } = await carried((callback) =>
      callback(null, respond(status, new StreamInPieces(body))),
    )
    await sendRaw(port, request(port))
    expect(reported).toMatchObject([{ code: 'upstream_broken' }])
    expect(body.destroyed).toBe(true)
  })

  it('C8.4 the sender’s own error comes back as it is', async () => {
    const error = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const { port, reported } = await carried((callback) => callback(error))
    await sendRaw(port, request(port))
    expect(reported).toEqual([error])
  })

  it('C8.4 a sender that throws, also in a later attempt, is a failure', async () => {
    let attempts = 0
    const defect = new Error('a defect')
    const { port, reported } = await carried(() => {
      attempts += 1
      throw defect
    }, 2)
    await sendRaw(port, request(port))
    expect([attempts, reported]).toEqual([3, [defect]])
  })

  it.each(['bytes', 'a stream'])(
    'T5.2 an answer (%s) to a client that has just gone is thrown away',
    async (kind) => {
      const stream = new Readable({ read: () => undefined })
      const body = kind === 'bytes' ? Buffer.from('x') : new StreamInPieces(stream)
      const { port, reported } = await carried((callback, exchange) => {
        leave.destroy()
        void until(() => exchange.gone === true).then(() => callback(null, respond(200, body)))
      })
      const leave = await openRaw(port)
      // Node calls a request aborted whose own bytes had not all come.
      leave.send(request(port, 'POST').replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nab'))
      await until(() => reported.length > 0)
      expect(reported).toMatchObject([{ code: 'client_gone', facts: { upstream: 200 } }])
      expect(stream.destroyed).toBe(kind === 'a stream')
    },
  )

  it.each([
    '/api/a{b}|c',
    '/api/%E4%BD%A0/%2B,:@',
    '/api?x=%zz',
    '/*',
    'http://AUTHORITY',
    'HTTP://AUTHORITY?x=/',
  ])('C3.4 Fastify’s router stops no target that may be forwarded: %s', async (target) => {
    const { port, reported } = await carried((callback) => callback(null, respond(200)))
    const own = target.replace('AUTHORITY', `127.0.0.1:${port}`)
    await sendRaw(port, `PROPFIND ${own} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Version: 1\r\n\r\n`)
    await sendRaw(port, `GET ${own} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Version: 1\r\n\r\n`)
    expect(reported).toEqual([200, 200])
  })
})
