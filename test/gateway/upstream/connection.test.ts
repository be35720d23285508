import type { PieceSource } from '../../../src/base/http/body/pieces.ts'
import { createServer, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { UpstreamReader } from '../../../src/gateway/upstream/reader.ts'
import type { UpstreamTimeouts } from '../../../src/gateway/upstream/request.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import {
  answering,
  bodyOf,
  faulty,
  GET,
  listen,
  OK,
  openConnection,
  says,
  textOf,
  upstream,
  WHOLE,
  type Behaviour,
} from '../../support/upstream-connections.ts'

describe('when a connection is used again', () => {
  it.each([
    ['a length', WHOLE],
    ['chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
    ['Keep-Alive: timeout=5', `${OK}Keep-Alive: timeout=5, max=9\r\nContent-Length: 2\r\n\r\nok`],
    ['HTTP/1.0 and keep-alive', 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok'],
  ])('RFC 9112 §9.3 after an answer with %s', async (_what, bytes) => {
    const sockets = new Set<Socket>()
    const url = await upstream((socket) => {
      sockets.add(socket)
      socket.write(bytes)
    })
    const { call, told } = openConnection(url)
    for (let nth = 1; nth <= 3; nth += 1) {
      const { answer, over } = call()
      expect(await textOf(answer)).toBe('ok')
      expect(told).toHaveLength(nth)
      expect(over()).toBe(1)
    }
    expect(told).toEqual(['freed', 'freed', 'freed'])
    expect(sockets.size).toBe(1)
  })

  it.each([
    ['a 1xx before it', `HTTP/1.1 103 E\r\n\r\n${WHOLE}`],
    ['Connection: close', `${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`],
    ['Keep-Alive: timeout=1', `${OK}Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok`],
    ['Keep-Alive: timeout=0', `${OK}Keep-Alive: max=9,timeout=0\r\nContent-Length: 2\r\n\r\nok`],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ])('T2.3 not after an answer with %s', async (_what, bytes) => {
    const { call, told, closed } = openConnection(await upstream(says(bytes)))
    expect(await textOf(call().answer)).toBe('ok')
    await closed
    expect(told).toEqual(['closed'])
  })

  it.each([
    ['bytes behind it', `${WHOLE}x`],
    ['another answer behind it', WHOLE + WHOLE],
    ['an empty line behind it', `${WHOLE}\r\n`],
  ])('T2.8 not after an answer with %s, and its owner is told', async (_what, bytes) => {
    const { call, told, closed } = openConnection(await upstream(says(bytes)))
    expect(await textOf(call().answer)).toBe('ok')
    await closed
    expect(told).toEqual(['strayed', 'closed'])
  })

  it('T2.8 a body behind an answer to HEAD harms nobody, and is told to nobody', async () => {
    const { call, told, closed } = openConnection(await upstream(says(WHOLE)))
    expect(await textOf(call({ method: 'HEAD' }).answer)).toBe('')
    await closed
    expect(told).toEqual(['closed'])
  })

  it('T5.1 not where it is kept by nobody, and it says so', async () => {
    const { call, told, closed } = openConnection(await upstream(says(WHOLE)), { keep: 0 })
    await call().answer
    await closed
    expect(told).toEqual(['closed'])
  })

  it.each<[string, (socket: Socket) => unknown, string[]]>([
    ['bytes', (socket) => socket.write(WHOLE), ['strayed']],
    ['408', (socket) => socket.write('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'), []],
    ['its end', (socket) => socket.end(), []],
    ['a reset', (socket) => socket.resetAndDestroy(), []],
  ])('T2.3 an upstream that sends %s unasked ends it', async (_what, act, more) => {
    let served: Socket | undefined
    const { call, told, closed } = openConnection(
      await upstream((socket) => {
        served = socket
        socket.write(WHOLE)
      }),
    )
    await call().answer
    expect(told).toEqual(['freed'])
    act(served!)
    await closed
    expect(told).toEqual(['freed', ...more, 'closed'])
  })

  it('C8.4 it is closed when it was not used for as long as it is kept', async () => {
    const clock = movableClock()
    const { call, told } = openConnection(await upstream(says(WHOLE)), { keep: 100, clock })
    for (let nth = 0; nth < 2; nth += 1) {
      await call().answer
      clock.advance(99)
    }
    expect(told).toEqual(['freed', 'freed'])
    clock.advance(1)
    expect(told).toEqual(['freed', 'freed', 'closed'])
  })
})

describe('an upstream that answers a later call with bytes that are no answer', () => {
  it('T2.8 they were left over from the answer before: the call failed, and the owner is told', async () => {
    const { call, told, closed } = openConnection(
      await upstream((socket, nth) => void socket.write(nth === 1 ? WHOLE : 'left over\r\n\r\n')),
    )
    expect(await textOf(call().answer)).toBe('ok')
    await expect(call().answer).rejects.toEqual(faulty('upstream_unreachable'))
    await closed
    expect(told).toEqual(['freed', 'strayed', 'closed'])
  })

  it('C8.4 bytes like that in place of the first answer are a broken answer', async () => {
    const { call, told, closed } = openConnection(await upstream(says('no answer\r\n\r\n')))
    await expect(call().answer).rejects.toEqual(faulty('upstream_broken'))
    await closed
    expect(told).toEqual(['closed'])
  })
})

describe('the age of a connection', () => {
  it('C8.4 ends it behind an answer, however busy it is', async () => {
    const clock = movableClock()
    const last = Promise.withResolvers<Socket>()
    const server = await upstream((socket, nth) => {
      if (nth < 8) socket.write(WHOLE)
      else last.resolve(socket)
    })
    const { call, told, closed } = openConnection(server, { age: 100, clock })
    for (let nth = 1; nth < 8; nth += 1) {
      expect(await textOf(call().answer)).toBe('ok')
      clock.advance(10)
    }
    const { answer } = call()
    const served = await last.promise
    clock.advance(1000)
    expect(told).toEqual(Array(7).fill('freed'))
    served.write(WHOLE)
    expect(await textOf(answer)).toBe('ok')
    await closed
    expect(told).toEqual([...Array<string>(7).fill('freed'), 'closed'])
  })

  it('C8.4 ends it while nothing is asked of it, and never in the middle of an answer', async () => {
    const clock = movableClock()
    const idle = openConnection(await upstream(says(WHOLE)), { age: 50, clock })
    await idle.call().answer
    clock.advance(37)
    expect(idle.told).toEqual(['freed'])
    clock.advance(13)
    expect(idle.told).toEqual(['freed', 'closed'])
    let served: Socket | undefined
    const head = `${OK}Content-Length: 4\r\n\r\n`
    const slow = await upstream((socket) => {
      served = socket
      socket.write(`${head}ab`)
    })
    const { call, told, hasReceived } = openConnection(slow, { age: 10, clock })
    const { answer } = call()
    await hasReceived(head.length + 2)
    clock.advance(900)
    expect(told).toEqual([])
    served?.write('cd')
    expect(await textOf(answer)).toBe('abcd')
    expect(told).toEqual(['closed'])
  })
})

const FRAMINGS = [
  ['a length', `${OK}Content-Length: 200000\r\n\r\n`, (text: string) => text],
  [
    'chunks',
    `${OK}Transfer-Encoding: chunked\r\n\r\n`,
    (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`,
  ],
  ['the end of the connection', `${OK}\r\n`, (text: string) => text],
] as const
const ENDS = [
  ['a reset', (socket: Socket) => socket.resetAndDestroy()],
  ['its end', (socket: Socket) => socket.end()],
] as const

describe('an answer that breaks off', () => {
  const heads = ['', 'H', 'HTTP/1.1 2', `${OK}Content-Le`, `${OK}Content-Length: 0\r\n\r`]
  it.each(ENDS)('C8.4 by %s before its body: no answer', async (_how, end) => {
    for (const head of [...heads, `HTTP/1.1 103 E\r\n\r\n`]) {
      const { call, told } = openConnection(await upstream((socket) => socket.write(head, () => end(socket))))
      const { answer, over } = call()
      await expect(answer).rejects.toEqual(faulty('upstream_unreachable'))
      expect([told, over()]).toEqual([['closed'], 1])
    }
  })

  it('C8.4 the failure says that the connection was closed too early', async () => {
    const { call } = openConnection(
      await upstream((socket) => void socket.end(`${OK}Content-Length: 9\r\n\r\n`)),
    )
    await expect(call().answer).rejects.toMatchObject({
      facts: { detail: 'the upstream closed the connection before its answer was whole' },
    })
  })

  const cases = FRAMINGS.flatMap((framing) => ENDS.map((end) => [...framing, ...end] as const))
  it.each(cases)('T5.2 %s (%j) cut by %4$s is a failure', async (framing, head, piece, how, end) => {
    const isWhole = framing === 'the end of the connection' && how === 'its end'
    for (const text of ['short', 'long'.repeat(30_000)]) {
      let served: Socket | undefined
      const sent = head + piece(text)
      const url = await upstream((socket) => (served = socket).write(sent))
      const { call, told, closed, hasReceived } = openConnection(url)
      const { answer, over } = call({ eager: text.length < 10 })
      const whole = answer.then(bodyOf)
      whole.catch(() => undefined)
      await hasReceived(sent.length)
      end(served!)
      if (isWhole) expect(String(await whole)).toBe(text)
      else await expect(whole).rejects.toThrow()
      await closed
      expect([told, over()]).toEqual([['closed'], 1])
    }
  })
})

describe('an upstream that is late', () => {
  const late = faulty('upstream_timeout')
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`

  /** A call over a connection that has received the beginning of its answer. `trickle` sends more of it. */
  async function beginning(begin: string, timeouts: Partial<UpstreamTimeouts>, eager = true) {
    const clock = movableClock()
    const asked = Promise.withResolvers<Socket>()
    const { call, told, hasReceived } = openConnection(await upstream(asked.resolve), { timeouts, clock })
    const { answer } = call({ eager })
    const served = await asked.promise
    let sent = 0
    const trickle = (text: string): Promise<void> => {
      served.write(text)
      sent += text.length
      return hasReceived(sent)
    }
    await trickle(begin)
    return { answer, told, clock, trickle }
  }

  it('C8.4 with its TLS handshake: the time to connect, not that for the first byte', async () => {
    const clock = movableClock()
    const accepted: Socket[] = []
    const port = await listen(createServer((socket) => accepted.push(socket)))
    const { call, told } = openConnection(`https://127.0.0.1:${port}`, { timeouts: { connect: 50 }, clock })
    const { answer } = call()
    await eventually(() => expect(accepted).toHaveLength(1))
    clock.advance(49)
    expect(told).toEqual([])
    clock.advance(1)
    expect(told).toEqual(['closed'])
    await expect(answer).rejects.toEqual(late)
  })

  it.each([
    ['silence', '', ''],
    ['a head without end', `HTTP/1.1 103 E\r\n\r\n${OK}`, 'x'],
    ['1xx without end', 'HTTP/1.1 103 E\r\n\r\n', 'HTTP/1.1 103 E\r\n\r\n'],
  ])('C8.4 with its head, by %s', async (_what, begin, more) => {
    const { answer, told, clock, trickle } = await beginning(begin, { firstByte: 100, idle: 50 })
    for (let nth = 0; nth < 9; nth += 1) {
      clock.advance(11)
      await trickle(more)
    }
    expect(told).toEqual([])
    clock.advance(1)
    expect(told).toEqual(['closed'])
    await expect(answer).rejects.toEqual(late)
  })

  it.each([
    ['short', true],
    ['streamed', false],
  ])('C8.4 with the rest of a %s body, but not with one that trickles', async (_what, eager) => {
    const { answer, told, clock, trickle } = await beginning(
      `${CHUNKED}1\r\na\r\n`,
      { firstByte: 20, idle: 50 },
      eager,
    )
    for (let nth = 0; nth < 10; nth += 1) {
      clock.advance(49)
      await trickle('1\r\nb\r\n')
    }
    clock.advance(49)
    expect(told).toEqual([])
    clock.advance(1)
    expect(told).toEqual(['closed'])
    await expect(answer.then(bodyOf)).rejects.toEqual(late)
  })

  it.each([
    ['a chunk extension', `${CHUNKED}1\r\na\r\n1;`, 'x'],
    ['the size of a chunk', `${CHUNKED}1\r\na\r\n`, '0'],
    ['trailers', `${CHUNKED}1\r\na\r\n0\r\n`, 'A: b\r\n'],
    ['a trailer without end', `${CHUNKED}1\r\na\r\n0\r\nA: `, 'b'],
  ])('C8.4 with the rest of a body, whatever trickles as %s', async (_what, begin, more) => {
    for (const eager of [true, false]) {
      const { answer, told, clock, trickle } = await beginning(begin, { idle: 100 }, eager)
      for (let nth = 0; nth < 9; nth += 1) {
        clock.advance(11)
        await trickle(more)
      }
      expect(told).toEqual([])
      clock.advance(1)
      expect(told).toEqual(['closed'])
      await expect(answer.then(bodyOf)).rejects.toEqual(late)
    }
  })

  it('C8.4 may be given weeks, without a timer that fires all the time', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    const weeks = 30 * 24 * 3600 * 1000
    const { call } = openConnection(await upstream(says(WHOLE)), {
      timeouts: { connect: weeks, firstByte: weeks, idle: weeks },
      keep: weeks,
    })
    expect(await textOf(call().answer)).toBe('ok')
    expect(timers.mock.calls.every(([, ms]) => (ms ?? 0) < 2 ** 31)).toBe(true)
    expect(timers.mock.calls.length).toBeLessThan(20)
  })
})

describe('a call that is given up', () => {
  const gone = new Error('gone')

  it.each<[string, Behaviour, (about: { reader: UpstreamReader; answer: Promise<unknown> }) => unknown]>([
    ['while it connects', () => undefined, () => undefined],
    ['before an answer', () => undefined, () => turn()],
    ['in the middle of a head', says('HTTP/1.1 200'), () => turn()],
    ['in the middle of a short body', says(`${OK}Content-Length: 9\r\n\r\nab`), () => turn()],
    ['in the middle of a long one', says(`${OK}Content-Length: 999999\r\n\r\nab`), ({ answer }) => answer],
  ])('T5.1 %s: its socket is closed, and it counts no more', async (_when, behave, until) => {
    const closed = Promise.withResolvers<undefined>()
    const server = createServer(answering(behave)).on('connection', (socket: Socket) =>
      socket.on('close', () => closed.resolve(undefined)),
    )
    const { call, told } = openConnection(`http://127.0.0.1:${await listen(server)}`)
    const about = call()
    await until(about)
    about.reader.cancel(gone)
    expect([told, about.over()]).toEqual([['closed'], 1])
    await expect(about.answer.then(bodyOf))
      .rejects.toMatchObject({ cause: gone })
      .catch(() => undefined)
    if (_when !== 'while it connects') await closed.promise
    about.reader.cancel(gone)
    expect([told, about.over()]).toEqual([['closed'], 1])
  })

  it('T5.1 as soon as its head is known, with the whole answer in one piece: the connection serves no other call', async () => {
    const whole = `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`
    const { connection, told, closed } = openConnection(await upstream(says(whole)))
    const answers: unknown[] = []
    let over = 0
    const reader = new UpstreamReader(
      { eager: false },
      (error, response) => {
        answers.push(error ?? response?.statusCode)
        reader.cancel(gone)
      },
      () => (over += 1),
    )
    connection.send(GET, reader)
    await closed
    await turn()
    expect([told, answers, over]).toEqual([['closed'], [200], 1])
  })

  it('T5.1 in the middle of its upload: the body is read no further', async () => {
    const body = new PassThrough()
    const started = Promise.withResolvers<undefined>()
    const { connection, closed } = openConnection(await upstream(() => started.resolve(undefined)))
    const reader = new UpstreamReader(
      { eager: true },
      () => undefined,
      () => undefined,
    )
    connection.send({ ...GET, method: 'POST', body }, reader)
    body.write('a')
    await started.promise
    await eventually(() => expect(body.listenerCount('data')).toBe(1))
    reader.cancel(gone)
    await closed
    expect([body.listenerCount('data'), body.isPaused(), body.destroyed]).toEqual([0, true, false])
  })

  it('T5.1 a body that nobody reads to its end ends the connection, and no process', async () => {
    const { call, closed, told } = openConnection(
      await upstream(says(`${OK}Content-Length: 999999\r\n\r\nab`)),
    )
    const { answer, over } = call()
    ;((await answer).body as PieceSource).cancel()
    await closed
    expect([told, over()]).toEqual([['closed'], 1])
  })
})
