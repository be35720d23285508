import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { WholeBodies } from '../../src/gateway/server/exchange.ts'
import { attackUpstream, bytesOf, serverSocket, type AttackedUpstream } from '../support/attacked.ts'
import { sized } from '../support/long.ts'
import { openRaw, readSlowly, sendRaw, type RawResponse } from '../support/raw-http.ts'
import { expectFault } from '../support/requests.ts'
import { answerJson, type UpstreamBehaviour } from '../support/start-upstream.ts'

/** C8.4, T5.3: answers that are held whole: what they may take, until when, and what a client that does not read costs. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const KIB = 1024
const MIB = KIB * KIB
const MOST_HELD = 64 * MIB

let attacked: AttackedUpstream

beforeAll(async () => {
  attacked = await attackUpstream({
    change: (loaded) => {
      const { server } = loaded
      return { ...loaded, server: { ...server, timeouts: { ...server.timeouts, write: 1000 } } }
    },
  })
})
afterAll(() => attacked.close())

const take = vi.spyOn(WholeBodies.prototype, 'take')
const giveBack = vi.spyOn(WholeBodies.prototype, 'giveBack')
const room = (): number => (take.mock.contexts[0] as WholeBodies).taken

/** Whatever it was, nothing of it is held any more, and the next call is served. */
afterEach(async () => {
  await expect.poll(room).toBe(0)
  attacked.upstream.behave(answerJson({ ok: 1 }))
  expect((await sendRaw(attacked.port, get())).status).toBe(200)
})

const get = (lines = ''): Buffer => bytesOf({ target: LIST, lines: attacked.authorization + lines })

/** JSON of as many bytes. */
const json = (size: number): string => JSON.stringify({ a: 'x'.repeat(size - 8) })
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

const says =
  (text: string, framing = `Content-Length: ${text.length}\r\n\r\n`): UpstreamBehaviour =>
  (connection) =>
    connection.raw(HEAD + framing + text)

const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

const ask = (): Promise<RawResponse> => sendRaw(attacked.port, get())

describe('C8.4 an answer of up to 256 KiB', () => {
  it.each([64 * KIB + 1, 100 * KIB, 256 * KIB])(
    'C8.4 of %i bytes: whole if it is JSON, 500 if not',
    async (size) => {
      const good = json(size)
      const bad = `${good.slice(0, -1)}x`
      const chunks = 'Transfer-Encoding: chunked\r\n\r\n'
      for (const behaviour of [says(good), says(chunked(good), chunks)]) {
        attacked.upstream.behave(behaviour)
        const { status, body, whole } = await ask()
        expect([status, whole, body]).toEqual([200, true, `{"Errors":[],"Data":${good}}`])
      }
      for (const behaviour of [says(bad), says(chunked(bad), chunks)]) {
        attacked.upstream.behave(behaviour)
        expectFault(await ask(), 'upstream_broken')
      }
    },
  )

  it('C8.4 takes no room by its declared length alone, but with its first byte', async () => {
    giveBack.mockClear()
    take.mockClear()
    const reached = Promise.withResolvers<Socket>()
    attacked.upstream.behave(({ socket }) => {
      socket.write(`${HEAD}Content-Length: ${200 * KIB}\r\n\r\n`, () => reached.resolve(socket))
    })
    const client = await openRaw(attacked.port)
    client.send(get())
    const upstream = await reached.promise
    for (let turns = 0; turns < 20; turns++) await turn()
    expect(take).not.toHaveBeenCalled()
    upstream.write('"')
    await expect.poll(() => take.mock.calls).toEqual([[200 * KIB]])
    expect(room()).toBe(200 * KIB)
    client.destroy()
    await expect.poll(room).toBe(0)
  })

  it('T5.4 that stops after its first piece: what has come is sent after a second', async () => {
    for (const framing of [
      `Content-Length: ${200 * KIB}\r\n\r\n`,
      'Transfer-Encoding: chunked\r\n\r\n3e8\r\n',
    ]) {
      attacked.upstream.behave(says(`"${'x'.repeat(999)}`, framing))
      const client = await openRaw(attacked.port)
      client.send(get())
      await expect.poll(() => client.unread).toContain('{"Errors":[],"Data":{"Value":"xxx')
      client.destroy()
    }
  })

  it('C8.4 streams where no room is left: it is cut if it breaks, and passes if not', async () => {
    await ask()
    const others = take.mock.contexts[0] as WholeBodies
    const taken = MOST_HELD - 100
    expect(others.take(taken)).toBe(true)
    const good = json(100 * KIB)
    attacked.upstream.behave(says(good))
    const { body, whole } = await ask()
    expect([whole, body]).toEqual([true, `{"Errors":[],"Data":${good}}`])
    attacked.upstream.behave(says(`${good.slice(0, -1)}x`))
    expect(
      await ask().then(
        ({ whole: isWhole }) => isWhole,
        () => false,
      ),
    ).toBe(false)
    attacked.upstream.behave(says('{"a":1'))
    expectFault(await ask(), 'upstream_broken')
    others.giveBack(taken)
  })
})

/** What may go wrong with an answer of 200 KiB, on either side. All of them end. */
const FAILURES: readonly UpstreamBehaviour[] = [
  says(`${json(200 * KIB).slice(0, -1)}x`),
  ({ socket }) =>
    socket.end(`${HEAD}Content-Length: ${200 * KIB}\r\n\r\n${json(200 * KIB).slice(0, 150 * KIB)}`),
  ({ socket }) => {
    socket.write(`${HEAD}Content-Length: ${200 * KIB}\r\n\r\n${'x'.repeat(90 * KIB)}`, () =>
      setTimeout(() => socket.resetAndDestroy(), 5),
    )
  },
  ({ socket }) => socket.end(`${HEAD}Transfer-Encoding: chunked\r\n\r\n19000\r\n${'"'.repeat(100 * KIB)}`),
  says(json(200 * KIB), `Content-Length: ${200 * KIB}\r\nContent-Encoding: gzip\r\n\r\n`),
  ({ socket }) => socket.write(`HTTP/1.1 404 No\r\nContent-Length: 60000\r\n\r\n${'x'.repeat(60_000)}`),
  says(json(200 * KIB)),
]

/** At once, so often: each failure meets both formats, and clients that leave early and that do not. */
const AT_ONCE = 20
const ROUNDS = sized(11, 50)
const CALLS = AT_ONCE * ROUNDS

describe('C8.4 the account of what is held', () => {
  it(`C8.4 is 0 after ${CALLS} calls that failed, whoever broke off`, async () => {
    let nth = 0
    attacked.upstream.behave((connection) => FAILURES[nth++ % FAILURES.length]!(connection))
    const fail = async (index: number): Promise<void> => {
      const client = await openRaw(attacked.port)
      client.send(get(index % 5 === 4 ? 'Accept: application/xml\r\n' : ''))
      // Some leave early.
      if (index % 3 === 0) setTimeout(() => client.socket.resetAndDestroy(), index % 20)
      await client.response().catch(() => undefined)
      client.destroy()
    }
    for (let round = 0; round < ROUNDS; round++)
      await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => fail(round * AT_ONCE + index)))
    await expect.poll(room).toBe(0)
    const taken = take.mock.results.flatMap(({ value }, at) => (value === true ? take.mock.calls[at]! : []))
    const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)
    expect(taken.length).toBeGreaterThan(sized(45, 300))
    expect(sum(taken)).toBe(sum(giveBack.mock.calls.flat()))
  })
})

/** More than the kernel takes on the way, in answers of 250 KiB. */
const MANY = 100

function pipeline(count: number): Socket {
  attacked.upstream.behave(says(json(250 * KIB)))
  const socket = connect({ port: attacked.port, host: '127.0.0.1' })
  socket.on('error', () => undefined).pause()
  for (let left = count; left > 0; left--) socket.write(get(left === 1 ? 'Connection: close\r\n' : ''))
  return socket
}

describe('T5.3 a client of answers of 250 KiB', () => {
  it('T5.3 that does not read is cut off in time', async () => {
    const served = serverSocket(attacked.port)
    const socket = pipeline(MANY)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    attacked.forget()
    // The service goes on as long as the kernel takes answers, and then gives up.
    const cut = await served
    if (!cut.closed) await once(cut, 'close')
    socket.resume()
    await closed
    expect(socket.bytesRead).toBeLessThan(MANY * 250 * KIB)
  })

  it('T5.3 that reads slowly gets all of them', async () => {
    const socket = pipeline(MANY)
    readSlowly(socket)
    await new Promise((resolve) => socket.once('close', resolve))
    expect(socket.bytesRead).toBeGreaterThan(MANY * 250 * KIB)
  })
})
