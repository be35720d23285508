import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import {
  attackMemory,
  attackModule,
  attackUpstream,
  bytesOf,
  type Attacked,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { eventually } from '../support/eventually.ts'
import { openRaw, type RawConnection } from '../support/raw-http.ts'
import type { UpstreamConnection } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { basic } from '../support/tokens.ts'

/** A client that leaves before its answer: what its call has done upstream is done, and somebody must be told. */

const ANY = '/api/1.0/b/ACME/fund-data/any/one'
const BODY = '{"change":1}'

const post = ({ authorization }: Attacked, target = ANY, body = BODY): Buffer =>
  bytesOf({
    method: 'POST',
    target,
    lines: `${authorization}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`,
    body,
  })

/** Half of a body that is streamed to whoever is behind. */
const upload = ({ authorization }: Attacked): Buffer =>
  bytesOf({
    method: 'POST',
    target: '/api/1.0/b/ACME/fund-data/raw/one',
    lines: `${authorization}Content-Type: application/octet-stream\r\nContent-Length: 8\r\n`,
    body: 'half',
  })

type Line = Record<string, unknown>

/** The lines of calls since `from`. */
const callsSince = ({ gateway }: Attacked, from: number): Line[] =>
  gateway
    .log()
    .slice(from)
    .filter(({ event }) => event === 'call')

/** How many calls are being answered, or are with their backends, as the service tells. */
async function callsInFlight({ gateway }: Attacked, which = 'calls'): Promise<number> {
  const told = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  const lines = told.matchAll(/^postern_(\w+)_in_flight(?:\{.*\})? (\d+)$/gm)
  return [...lines].reduce((sum, [, name, count]) => (name === which ? sum + Number(count) : sum), 0)
}

const untilInFlight = (attacked: Attacked, count: number, which?: string): Promise<void> =>
  eventually(async () => expect(await callsInFlight(attacked, which)).toBe(count))

/** Sends, leaves once `when` has resolved, and answers the one line that tells of it. */
async function leave(
  attacked: Attacked,
  bytes: Buffer,
  when: (client: RawConnection) => Promise<unknown>,
): Promise<Line> {
  const from = attacked.gateway.log().length
  const others = await callsInFlight(attacked)
  const client = await openRaw(attacked.port)
  client.send(bytes)
  await when(client)
  client.socket.resetAndDestroy()
  await eventually(() => expect(callsSince(attacked, from)).toHaveLength(1))
  // No second one comes when it is over.
  await eventually(async () => expect(await callsInFlight(attacked)).toBeLessThanOrEqual(others))
  const [line, ...more] = callsSince(attacked, from)
  expect(more).toEqual([])
  return line!
}

/**
 * Holds what must be recorded before the next answer until the service has seen that its client left. Resolves when it has
 * come so far.
 */
function holdRecordUntilGone({ gateway: { world } }: Attacked): Promise<unknown> {
  const recording = Promise.withResolvers<undefined>()
  const gone = Promise.withResolvers<undefined>()
  const begun = (message: unknown): void => {
    const { request, socket } = message as { request: IncomingMessage; socket: Socket }
    // Others ask for the metrics meanwhile, on connections that are kept.
    if (request.url !== '/connect/token') return
    unsubscribe('http.server.request.start', begun)
    socket.once('close', () => gone.resolve(undefined))
  }
  subscribe('http.server.request.start', begun)
  const record = world.audit.require.bind(world.audit)
  const held = vi.spyOn(world.audit, 'require').mockImplementationOnce(async (...given) => {
    recording.resolve(undefined)
    await gone.promise
    return record(...given)
  })
  onTestFinished(() => {
    held.mockRestore()
  })
  return recording.promise
}

/** The room for calls to the upstream, and an area in which nothing is refused. */
const narrow = (loaded: Configuration): Configuration => {
  const config = withStream(loaded)
  const backends = Object.fromEntries(
    Object.entries(config.backends).map(([name, backend]) => [name, { ...backend, maxConnections: 1 }]),
  ) as Configuration['backends']
  return { ...config, backends }
}

describe('C8.5 a client that leaves while an upstream works', () => {
  let attacked: AttackedUpstream
  let held: UpstreamConnection[]
  beforeAll(async () => {
    attacked = await attackUpstream({ change: narrow, keeps: 'trail' })
  })
  afterAll(() => attacked.close())
  beforeEach(() => {
    attacked.forget()
    held = []
    attacked.upstream.behave((connection) => void held.push(connection))
  })

  const isHeld = (): Promise<unknown> => eventually(() => expect(held).toHaveLength(1))

  it('its call is told, and that it may have been carried out', async () => {
    const line = await leave(attacked, post(attacked), isHeld)
    expect(line).toMatchObject({
      level: 'info',
      requestId: held[0]?.request.headers['x-request-id']?.[0],
      method: 'POST',
      path: ANY,
      client: 'acme-books',
      reason: 'client_gone',
      clientGone: true,
      upstream: 'cancelled',
      upstreamMs: expect.any(Number),
    })
  })

  it('its call is told with the status that had been answered by then', async () => {
    const line = await leave(attacked, post(attacked), async () => {
      await isHeld()
      held[0]?.raw('HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{')
      // The service is in this process, and reads what has arrived before it answers what is asked later.
      await callsInFlight(attacked)
    })
    expect(line).toMatchObject({ clientGone: true, upstream: 'answered', upstreamStatus: 201 })
  })

  it('its call is told as not sent where it still waited for a connection', async () => {
    const first = await openRaw(attacked.port)
    first.send(post(attacked))
    await isHeld()
    const line = await leave(attacked, post(attacked), () => untilInFlight(attacked, 2, 'backend_calls'))
    expect(line).toMatchObject({ clientGone: true, upstream: 'not_sent' })
    expect(attacked.reached()).toEqual([`POST ${ANY}`])
    held[0]?.respond({ headers: { 'Content-Type': 'application/json' }, body: '{}' })
    expect((await first.response()).status).toBe(200)
    first.destroy()
  })

  it('its handshake is told', async () => {
    const lines =
      `${attacked.authorization}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const line = await leave(attacked, bytesOf({ target: at('live/lobby'), lines }), isHeld)
    expect(line).toMatchObject({
      level: 'info',
      reason: 'client_gone',
      clientGone: true,
      upstream: 'cancelled',
    })
  })

  it('its upload is told that had begun to go on', async () => {
    const line = await leave(attacked, upload(attacked), async () => {
      await eventually(() =>
        expect(attacked.upstream.connections.some(({ bytes }) => bytes.includes('half'))).toBe(true),
      )
    })
    expect(line).toMatchObject({
      level: 'info',
      reason: 'client_gone',
      clientGone: true,
      upstream: 'cancelled',
    })
  })

  it('nothing is told of one that leaves before its request is whole: nothing was done', async () => {
    const from = attacked.gateway.log().length
    const client = await openRaw(attacked.port)
    const bytes = post(attacked)
    client.send(bytes.subarray(0, bytes.length - 3))
    await untilInFlight(attacked, 1)
    client.socket.resetAndDestroy()
    await untilInFlight(attacked, 0)
    expect(attacked.reached()).toEqual([])
    expect(callsSince(attacked, from)).toEqual([])
  })

  it('its token request is told, and that nobody got the token', async () => {
    const body = new URLSearchParams({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'fund.read target:b/ACME',
    }).toString()
    const lines =
      `Authorization: ${basic('acme-books')}\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
      `Content-Length: ${body.length}\r\n`
    const bytes = bytesOf({ method: 'POST', target: '/connect/token', lines, body })
    const recording = holdRecordUntilGone(attacked)
    const line = await leave(attacked, bytes, () => recording)
    expect(line).toMatchObject({ level: 'info', door: 'identity', status: 200, clientGone: true })
    expect(
      attacked.gateway
        .log()
        .find(({ requestId, event }) => event === 'token' && requestId === line['requestId']),
    ).toMatchObject({ result: 'issued' })
  })
})

it('C8.5 a client that leaves while an upstream of a report-only area works: its call is told', async () => {
  const attacked = await attackUpstream({
    keeps: 'nothing',
    change: (loaded) => ({
      ...loaded,
      areas: { ...loaded.areas, 'fund-data': { backend: 'funds', mode: 'report-only' } },
    }),
  })
  try {
    const held: UpstreamConnection[] = []
    attacked.upstream.behave((connection) => void held.push(connection))
    const line = await leave(attacked, post(attacked), () => eventually(() => expect(held).toHaveLength(1)))
    expect(line).toMatchObject({ level: 'info', clientGone: true, upstream: 'cancelled' })
  } finally {
    await attacked.close()
  }
})

it('C8.5 a client that leaves before the memory backend’s answer: its call is told, and that it was carried out', async () => {
  const attacked = await attackMemory()
  try {
    const body = '{"Code":"GONE1","Name":"Gone"}'
    const bytes = post(attacked, '/api/1.0/b/ACME/fund-data/fund-create', body)
    const line = await leave(attacked, bytes, () =>
      eventually(() => expect(attacked.calls()).toHaveLength(1)),
    )
    expect(line).toMatchObject({ level: 'info', method: 'POST' })
    expect(line['upstreamMs']).toBeDefined()
  } finally {
    await attacked.close()
  }
})

it('C8.5 a client that leaves while a module works: its call is told', async () => {
  const attacked = await attackModule()
  try {
    const line = await leave(attacked, upload(attacked), () => untilInFlight(attacked, 1, 'backend_calls'))
    expect(line).toMatchObject({ method: 'POST', clientGone: true, upstreamMs: expect.any(Number) })
  } finally {
    await attacked.close()
  }
})
