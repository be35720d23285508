import { type PieceSource, readableOf } from '../../../src/base/http/body/pieces.ts'
import { createHash, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { UpstreamReader, WHOLE_BODY_LIMIT } from '../../../src/gateway/upstream/reader.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { bodyOf, OK, openConnection, textOf, upstream, WHOLE } from '../../support/upstream-connections.ts'

/** Bytes of a body that are held for a reader that does not read: the stream's buffer, and one read of a socket. */
const MAX_HELD = WHOLE_BODY_LIMIT + 64 * 1024

describe('the end of a call', () => {
  it('C8.4 is told once, and the answer too, however often it ends', () => {
    const answers: unknown[] = []
    let over = 0
    const reader = new UpstreamReader(
      { eager: true },
      (error, response) => answers.push(error ?? response?.statusCode),
      () => (over += 1),
    )
    reader.begin({ abort: () => undefined, pause: () => undefined, resume: () => undefined })
    reader.head({ status: 204, headers: {}, framing: 0, persistent: true })
    reader.end()
    reader.fail(new Error('late'))
    reader.cancel(new Error('later'))
    expect([answers, over, reader.isOver, reader.progress]).toEqual([[204], 1, true, 204])
  })
})

describe('C8.4 a body that comes in many small chunks', () => {
  /** A response without a declared length. */
  function read(bytes: Buffer, hold?: (bytes: number) => boolean): Buffer | PieceSource | undefined {
    let body: Buffer | PieceSource | undefined
    const reader = new UpstreamReader(
      { eager: true, ...(hold && { hold }) },
      (_error, response) => (body = response?.body),
      () => undefined,
    )
    reader.begin({ abort: () => undefined, pause: () => undefined, resume: () => undefined })
    reader.head({ status: 200, headers: {}, framing: 'chunked', persistent: true })
    for (let at = 0; at < bytes.length; at += 1) reader.body(bytes, at, at + 1)
    reader.end()
    return body
  }

  it('is one Buffer of its bytes, up to 256 KiB', () => {
    const bytes = randomBytes(WHOLE_BODY_LIMIT)
    expect(read(bytes)).toEqual(bytes)
  })

  it('holds as much room as its Buffer has', () => {
    let held = 0
    const body = read(randomBytes(WHOLE_BODY_LIMIT - 1000), (bytes) => (held += bytes) > 0) as Buffer
    expect([body.length, held]).toEqual([WHOLE_BODY_LIMIT - 1000, body.buffer.byteLength])
  })
})

describe('C8.4 a body that does not come within a second', () => {
  it('is passed on in pieces of 64 KiB at most (T5.3), and gives its room back', () => {
    const length = 200 * 1024
    const bytes = randomBytes(length)
    let held = 0
    let second = (): void => undefined
    let body: Buffer | PieceSource | undefined
    const reader = new UpstreamReader(
      { eager: true, hold: (more) => (held += more) >= 0 },
      (_error, response) => (body = response?.body),
      () => undefined,
      (_ms, callback) => {
        second = callback
        return () => undefined
      },
    )
    reader.begin({ abort: () => undefined, pause: () => undefined, resume: () => undefined })
    reader.head({ status: 200, headers: {}, framing: length, persistent: true })
    reader.body(bytes, 0, length - 1)
    reader.unfinished()
    expect([body, held]).toEqual([undefined, length])
    second()
    expect(held).toBe(0)
    reader.body(bytes, length - 1, length)
    reader.end()
    const pieces: Buffer[] = []
    const sink = { piece: (piece: Buffer) => void pieces.push(piece), end: vi.fn(), fail: vi.fn() }
    ;(body as PieceSource).read(sink)
    expect(Math.max(...pieces.map((piece) => piece.length))).toBe(64 * 1024)
    expect([Buffer.concat(pieces), sink.end.mock.calls.length]).toEqual([bytes, 1])
  })
})

describe('bodies byte for byte', () => {
  const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
  const content = randomBytes(3_000_000)

  /** In pieces of any size, each of which is a read of its own as often as the kernel lets it. */
  async function send(socket: Socket, bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !socket.destroyed;) {
      const size = 1 + Math.floor(Math.random() ** 4 * 300_000)
      if (!socket.write(bytes.subarray(at, at + size)))
        await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
      else await turn()
      at += size
    }
  }
  const chunked = (bytes: Buffer): Buffer => {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + 1 + Math.floor(Math.random() ** 4 * 200_000))
      pieces.push(Buffer.from(`${piece.length.toString(16)};x\r\n`), piece, Buffer.from('\r\n'))
      at += piece.length
    }
    return Buffer.concat([...pieces, Buffer.from('0\r\nA: b\r\n\r\n')])
  }
  const sendFramed = (socket: Socket, how: number, bytes: Buffer): void => {
    const heads = [`Content-Length: ${bytes.length}`, 'Transfer-Encoding: chunked', 'Connection: close']
    socket.write(`${OK}${heads[how]}\r\n\r\n`)
    void send(socket, how === 1 ? chunked(bytes) : bytes).then(() => how === 2 && socket.end())
  }

  it.each([0, 1, 2])('T5.2 whatever the pieces (framing %i)', async (how) => {
    const url = await upstream((socket) => sendFramed(socket, how, content))
    const { call } = openConnection(url)
    expect(hash(await bodyOf(await call({ eager: false }).answer))).toBe(hash(content))
  })

  it('T5.1 of many connections at once, though all read into one buffer', async () => {
    const bodies = Array.from({ length: 24 }, (_, index) => randomBytes(index % 2 ? 50_000 : 400_000))
    let next = 0
    const sent: string[] = []
    const url = await upstream((socket) => {
      const bytes = bodies[next++]!
      sent.push(hash(bytes))
      sendFramed(socket, next % 3, bytes)
    })
    const got = await Promise.all(
      bodies.map(async (_, index) => bodyOf(await openConnection(url).call({ eager: index % 4 < 2 }).answer)),
    )
    expect(got.map(hash).sort()).toEqual(sent.sort())
  })

  it('T5.4 two pieces and then silence: who asked sees what there is, after a second', async () => {
    const clock = movableClock()
    const begin = `${OK}Content-Length: 9\r\n\r\nabc`
    let served: Socket | undefined
    const url = await upstream((socket) => (served = socket).write(begin))
    const { call, hasReceived } = openConnection(url, { clock })
    const { answer, over } = call({ eager: true })
    const answered = vi.fn()
    void answer.then(answered)
    await hasReceived(begin.length)
    clock.advance(400)
    served?.write('def')
    await hasReceived(begin.length + 3)
    clock.advance(599)
    await turn()
    expect([answered.mock.calls.length, over()]).toEqual([0, 0])
    clock.advance(1)
    const { body } = await answer
    expect(Buffer.isBuffer(body)).toBe(false)
    const stream = readableOf(body as PieceSource)
    expect(String(stream.read(6))).toBe('abcdef')
    stream.destroy()
  })

  it('T5.1 an upstream is read no further than its answer is read, and the connection then serves another call', async () => {
    const size = 20_000_000
    const url = await upstream((socket, nth) => {
      if (nth === 1) socket.write(`${OK}Content-Length: ${size}\r\n\r\n`)
      socket.write(nth === 1 ? Buffer.alloc(size, 'x') : WHOLE)
    })
    const clock = movableClock()
    const {
      call,
      told,
      connection,
      received: bytesReceived,
    } = openConnection(url, { timeouts: { idle: 1000 }, clock })
    const pause = vi.spyOn(connection, 'pause')
    const { answer } = call({ eager: false })
    const body = readableOf((await answer).body as PieceSource)
    const received = vi.spyOn(body, 'push')
    await eventually(() => expect(pause).toHaveBeenCalled())
    // What we hold is the buffer of the stream and one read more; the rest waits in the kernel or in the upstream.
    const before = [body.readableLength, received.mock.calls.length, bytesReceived()]
    expect(body.readableLength).toBeLessThanOrEqual(MAX_HELD)
    // No timeout while the body is not read: the upstream is not late.
    clock.advance(1100)
    for (let nth = 0; nth < 100; nth += 1) await turn()
    expect([body.readableLength, received.mock.calls.length, bytesReceived()]).toEqual(before)
    expect(told).toEqual([])
    let read = 0
    for await (const piece of body) {
      read += (piece as Buffer).length
      expect(body.readableLength).toBeLessThanOrEqual(MAX_HELD)
    }
    expect(read).toBe(size)
    expect(told).toEqual(['freed'])
    expect(await textOf(call().answer)).toBe('ok')
  })

  it('T2.3 the body of an answer that has ended touches no call that came after it', async () => {
    const url = await upstream((socket, nth) => {
      if (nth === 1)
        socket.write(
          Buffer.concat([Buffer.from(`${OK}Content-Length: 90000\r\n\r\n`), content.subarray(0, 90_000)]),
        )
      else socket.write(`${OK}Content-Length: 2\r\n\r\n`)
      served = socket
    })
    let served: Socket | undefined
    const { call, connection, told } = openConnection(url)
    const first = call({ eager: false })
    const body = readableOf((await first.answer).body as PieceSource)
    await eventually(() => expect(told).toEqual(['freed']))
    const second = call()
    await eventually(() => expect(second.reader.progress).toBe(200))
    const pause = vi.spyOn(connection, 'pause')
    const resume = vi.spyOn(connection, 'resume')
    body.read(10)
    first.reader.cancel(gone)
    body.destroy()
    await turn()
    served?.write('ok')
    expect(await textOf(second.answer)).toBe('ok')
    expect([pause.mock.calls, resume.mock.calls, told]).toEqual([[], [], ['freed', 'freed']])
  })
  const gone = new Error('gone')
})
