import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { attackUpstream, bytesOf, serverSocket, type AttackedUpstream } from '../support/attacked.ts'
import { eventually } from '../support/eventually.ts'
import { openRaw, readSlowly, sendRaw, type RawConnection } from '../support/raw-http.ts'
import type { StartOptions } from '../support/start-postern.ts'
import { answerJson, type UpstreamBehaviour } from '../support/start-upstream.ts'

/** T5.1, T5.3: whatever clients do, others are served, upstreams are let go, and none of it lasts. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const UPLOAD = '/api/1.0/b/ACME/fund-data/raw/x'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
/** Milliseconds. */
const PATIENCE = 1000
const MANY = 200
const MIB = 1024 ** 2

let attacked: AttackedUpstream

/** Called at the top of a `describe`, whose tests share a service. */
function before(options: StartOptions = {}): void {
  let own: AttackedUpstream
  beforeAll(async () => {
    own = await attackUpstream(options)
  })
  afterAll(() => own.close())
  beforeEach(() => {
    attacked = own
    attacked.upstream.behave(answerJson({ ok: 1 }))
    attacked.forget()
  })
  /** Whatever it was, the next call is served. */
  afterEach(async () => {
    attacked.upstream.behave(answerJson({ ok: 1 }))
    expect(await cleanCall()).toBe(200)
  })
}

/** One without patience in these respects alone: in others a busy machine makes good clients slow. */
const impatient = (hasty: Partial<Configuration['server']['timeouts']>): StartOptions => ({
  change: (loaded) => {
    const { server } = loaded
    return { ...loaded, server: { ...server, timeouts: { ...server.timeouts, ...hasty } } }
  },
})

const get = (target = LIST): Buffer => bytesOf({ target, lines: attacked.authorization })
const cleanCall = async (): Promise<number> => (await sendRaw(attacked.port, get())).status

const openMany = (count: number): Promise<RawConnection[]> =>
  Promise.all(Array.from({ length: count }, () => openRaw(attacked.port)))

/** What clean calls are answered with, until all of the others are closed. */
async function servedBeside(others: readonly RawConnection[]): Promise<Set<number>> {
  const statuses = new Set<number>()
  while (others.some((connection) => !connection.isClosed)) {
    statuses.add(await cleanCall())
    await wait(20)
  }
  return statuses
}

/** Sends on until the connection is closed. */
function dribble(connection: RawConnection, text: string, ms = PATIENCE / 4): void {
  const timer = setInterval(() => {
    if (connection.isClosed) clearInterval(timer)
    else connection.send(text)
  }, ms)
}

describe('T5.3 clients that are slow', () => {
  before(impatient({ headers: PATIENCE, request: PATIENCE }))

  it.each([
    ['heads', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n', 'X-A: b\r\n'],
    ['request lines', 'GET /', 'x'],
  ])('T5.3 slow %s: refused in time, and everybody else is served', async (_what, begin, more) => {
    const others = await openMany(MANY)
    for (const connection of others) {
      connection.send(begin)
      dribble(connection, more)
    }
    const statuses = await servedBeside(others)
    expect(statuses).toEqual(new Set([200]))
    for (const { unread } of others) expect(unread).toMatch(/^HTTP\/1\.1 4\d\d .*"API_BAD_REQUEST"/s)
  })

  it('T5.3 slow bodies: refused in time, unseen by the upstream, and everybody else is served', async () => {
    const others = await openMany(MANY)
    const lines = `${attacked.authorization}Content-Type: application/json\r\nContent-Length: 1000\r\n`
    for (const connection of others) {
      connection.send(bytesOf({ method: 'POST', target: DETAIL, lines, body: '{"Name":"' }))
      dribble(connection, 'x')
    }
    const statuses = await servedBeside(others)
    expect(statuses).toEqual(new Set([200]))
    for (const { unread } of others) expect(unread).toMatch(/^HTTP\/1\.1 400 /)
    expect(attacked.reached().filter((call) => call.startsWith('POST'))).toEqual([])
  })

  it('T5.3 slow uploads that stream hold no more of the upstream than their own connection, and not for long', async () => {
    const others = await openMany(50)
    for (const connection of others) {
      const lines = `${attacked.authorization}Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n`
      connection.send(bytesOf({ method: 'POST', target: UPLOAD, lines, body: 'x' }))
      dribble(connection, 'x')
    }
    const statuses = await servedBeside(others)
    expect(statuses).toEqual(new Set([200]))
    expect(attacked.reached().filter((call) => call.startsWith('POST'))).toEqual([])
  })
})

/** Opens a connection that asks and does not read. */
async function askWithoutReading(bytes: Buffer): Promise<{ socket: Socket; closed: Promise<unknown> }> {
  const socket = connect({ port: attacked.port, host: '127.0.0.1' })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write(bytes)
  return { socket, closed }
}

/** More than the kernel takes on the way. */
const BIG = 24 * MIB

const endless =
  (closed: () => void): UpstreamBehaviour =>
  ({ socket }) => {
    socket.once('close', closed)
    socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"\r\n',
    )
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const more = (): void => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  }

/** Resolves once the upstream has lost as many connections. */
function losses(count: number): { readonly lost: () => void; readonly all: Promise<undefined> } {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let left = count
  return {
    all: promise,
    lost: () => {
      left -= 1
      if (left === 0) resolve(undefined)
    },
  }
}

describe('T5.3 clients that do not read', () => {
  before(impatient({ write: PATIENCE }))

  it('T5.3 a streamed answer: cut off in time, and the upstream let go', async () => {
    const { lost, all } = losses(20)
    attacked.upstream.behave(endless(lost))
    const others = await Promise.all(Array.from({ length: 20 }, () => askWithoutReading(get())))
    await all
    for (const { socket } of others) socket.destroy()
  })

  it('T5.3 an answer that is held whole: cut off in time', async () => {
    const body = JSON.stringify({ a: 'x'.repeat(BIG / 2) })
    attacked.upstream.behave((connection) =>
      connection.respond({ headers: { 'Content-Type': 'application/json' }, body }),
    )
    const bytes = bytesOf({ target: LIST, lines: `${attacked.authorization}Accept: application/xml\r\n` })
    const served = serverSocket(attacked.port)
    const { socket, closed } = await askWithoutReading(bytes)
    const cut = await served
    if (!cut.closed) await once(cut, 'close')
    socket.resume()
    await closed
    expect(socket.bytesRead).toBeGreaterThan(1000)
    expect(socket.bytesRead).toBeLessThan(BIG / 2)
  })

  it('T5.3 one that reads slowly, but does, gets all of it', async () => {
    const body = JSON.stringify('x'.repeat(BIG / 2))
    attacked.upstream.behave((connection) =>
      connection.respond({ headers: { 'Content-Type': 'application/json' }, body }),
    )
    const { socket, closed } = await askWithoutReading(
      bytesOf({ target: LIST, lines: `${attacked.authorization}Connection: close\r\n` }),
    )
    readSlowly(socket)
    await closed
    expect(socket.bytesRead).toBeGreaterThan(BIG / 2)
  })
})

describe('T5.1 clients that leave', () => {
  before()

  const CLIENTS = 20

  it('T5.1 before the answer: the upstream call is cancelled, 20 of 20', async () => {
    const { lost, all } = losses(CLIENTS)
    attacked.upstream.behave(({ socket }) => void socket.once('close', lost))
    const clients = await openMany(CLIENTS)
    for (const client of clients) client.send(get())
    await attacked.upstream.received(CLIENTS)
    for (const client of clients) client.destroy()
    await all
    expect(attacked.received()).toHaveLength(CLIENTS)
  })

  it('T5.1 in mid-answer: the same', async () => {
    const { lost, all } = losses(CLIENTS)
    attacked.upstream.behave(endless(lost))
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => askWithoutReading(get())))
    await attacked.upstream.received(CLIENTS)
    for (const { socket } of clients) socket.destroy()
    await all
  })

  it('T5.1 in mid-upload: the upstream sees a request that is cut, never a whole one', async () => {
    const before = new Map(attacked.upstream.connections.map((each) => [each, each.bytes.length]))
    const lines = `${attacked.authorization}Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n`
    const clients = await openMany(CLIENTS)
    for (const client of clients)
      client.send(bytesOf({ method: 'POST', target: UPLOAD, lines, body: Buffer.alloc(300_000, 'x') }))
    const uploads = () =>
      attacked.upstream.connections.filter((each) => each.bytes.length - (before.get(each) ?? 0) > 200_000)
    await eventually(() => expect(uploads().length).toBeGreaterThanOrEqual(CLIENTS))
    const closed = uploads().map(({ socket }) => new Promise((resolve) => socket.once('close', resolve)))
    for (const client of clients) client.destroy()
    await Promise.all(closed)
    expect(attacked.reached()).toEqual([])
  })

  it('T5.1 by closing their own side: they are taken to have left, and the upstream is let go', async () => {
    const { lost, all } = losses(1)
    attacked.upstream.behave(({ socket }) => void socket.once('close', lost))
    const client = await openRaw(attacked.port)
    client.send(get())
    await attacked.upstream.received(1)
    client.end()
    await Promise.all([all, client.closed()])
    expect(client.unread).toBe('')
    client.destroy()
  })

  it('T5.1 within a head or a body that was never finished', async () => {
    const clients = await openMany(50)
    for (const [index, client] of clients.entries()) {
      client.send(get().subarray(0, 10 + index * 5))
      if (index % 2) client.end()
      else client.destroy()
    }
    await Promise.all(clients.map((client) => client.closed()))
  })
})

describe('T2.3 clients that pipeline', () => {
  before()

  it('T2.3 get their answers in order, one at a time', async () => {
    let most = 0
    let open = 0
    attacked.upstream.behave((connection) => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        open -= 1
        connection.respond({
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(connection.request.target),
        })
      }, 5)
    })
    const client = await openRaw(attacked.port)
    client.send(Buffer.concat(Array.from({ length: 60 }, (_, index) => get(`${LIST}?n=${index}`))))
    for (let index = 0; index < 60; index++) expect((await client.response()).body).toContain(`?n=${index}"`)
    client.destroy()
    expect(most).toBe(1)
  })

  it('T5.1 and leave: of what waited, nothing is carried out', async () => {
    const { lost, all } = losses(1)
    attacked.upstream.behave(({ socket }) => void socket.once('close', lost))
    const client = await openRaw(attacked.port)
    client.send(Buffer.concat(Array.from({ length: 100 }, () => get())))
    await attacked.upstream.received(1)
    client.destroy()
    await all
    await wait(50)
    expect(attacked.received()).toHaveLength(1)
  })
})
