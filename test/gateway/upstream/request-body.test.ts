import fc from 'fast-check'
import type { Socket } from 'node:net'
import { PassThrough, Readable, Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Upload } from '../../../src/gateway/upstream/request.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { faulty, OK, openPool, rawUpstream, textOf, WHOLE } from '../../support/upstream-connections.ts'

const HELD = `${OK}Content-Length: 2\r\n\r\n`

/** A socket that nobody reads until told; what was written to it; and what was told of an upload. */
function uploading(body: Readable, declared?: number, highWaterMark = 100) {
  const written: string[] = []
  const stuck: (() => void)[] = []
  const socket = new Writable({
    highWaterMark,
    decodeStrings: true,
    write: (bytes: Buffer, _, taken) => {
      written.push(bytes.toString('latin1'))
      stuck.push(taken)
    },
  })
  const told: unknown[] = []
  const upload = new Upload(body, declared, socket as unknown as Socket, {
    done: () => told.push('done'),
    failed: (error) => told.push(error instanceof Fault ? error.code : error),
    waiting: (forUpstream) => told.push(forUpstream ? 'upstream' : 'client'),
  })
  const drain = async (): Promise<void> => {
    await turn()
    while (stuck.length > 0) {
      stuck.shift()?.()
      await turn()
    }
  }
  return { upload, socket, told, drain, text: () => written.join('') }
}

describe('a body that is passed on', () => {
  it('RFC 9112 §7.1 goes in chunks, or as it is where its length was declared', async () => {
    const piece = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), fc.boolean(), async (pieces, declares) => {
        const whole = Buffer.concat(pieces)
        const body = Readable.from(pieces, { objectMode: false })
        const { upload, told, drain, text, socket } = uploading(body, declares ? whole.length : undefined)
        upload.start()
        await eventually(async () => {
          await drain()
          expect(told).toContain('done')
        })
        await drain()
        const chunks = pieces
          .filter(({ length }) => length > 0)
          .map((bytes) => `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`)
        expect(text()).toBe(declares ? whole.toString('latin1') : `${chunks.join('')}0\r\n\r\n`)
        expect(told.filter((what) => what !== 'upstream' && what !== 'client')).toEqual(['done'])
        expect(socket.listenerCount('drain')).toBe(0)
        expect(['data', 'end', 'close'].map((event) => body.listenerCount(event))).toEqual([0, 0, 0])
      }),
      { numRuns: 60 },
    )
  })

  it('T5.1 is read no faster than the upstream reads, and it is told who is waited for', async () => {
    const body = new PassThrough({ highWaterMark: 10 })
    const { upload, told, drain } = uploading(body, 400)
    upload.start()
    for (let piece = 0; piece < 4; piece += 1) body.write(Buffer.alloc(100, 'x'))
    body.end()
    await turn()
    expect(told).toEqual(['upstream'])
    expect(body.isPaused()).toBe(true)
    await drain()
    await drain()
    expect(told.slice(0, 3)).toEqual(['upstream', 'client', 'upstream'])
    await eventually(() => drain().then(() => expect(told.at(-1)).toBe('done')))
  })

  const unfit: [string, () => Readable, number | undefined, string][] = [
    ['longer than declared', () => Readable.from([Buffer.from('abc'), Buffer.from('def')]), 5, 'abc'],
    ['shorter than declared', () => Readable.from([Buffer.from('abc')]), 5, 'abc'],
    ['empty, though declared', () => Readable.from([]), 5, ''],
  ]
  it.each(unfit)(
    'T2.4 one that is %s fails, and what is too much is not sent',
    async (_how, make, declared, sent) => {
      const { upload, told, drain, text } = uploading(make(), declared)
      upload.start()
      await eventually(() => expect(told).toEqual(['client_gone']))
      await drain()
      expect(text()).toBe(sent)
    },
  )

  it.each([5, undefined])(
    'T5.2 one that breaks off (declared: %s) fails, without an end',
    async (declared) => {
      for (const error of [new Error('reset'), undefined]) {
        const body = new PassThrough()
        const { upload, told, drain, text } = uploading(body, declared)
        upload.start()
        body.write('abc')
        await turn()
        body.destroy(error)
        await drain()
        expect(told).toEqual([error ?? 'client_gone'])
        expect(text()).toBe(declared === undefined ? '3\r\nabc\r\n' : 'abc')
      }
    },
  )

  it('T5.2 one that was gone, or read by another, before it could be sent fails too', async () => {
    const gone = new PassThrough().resume()
    gone.destroy()
    const failed = new PassThrough().on('error', () => undefined)
    failed.destroy(new Error('reset'))
    const read = new PassThrough()
    read.resume().end('abc')
    const ended = new PassThrough({ autoDestroy: false })
    ended.resume().end('abc')
    await turn()
    for (const body of [gone, failed, read, ended]) {
      const { upload, told, text } = uploading(body)
      upload.start()
      expect(told).toEqual([body === failed ? failed.errored : 'client_gone'])
      expect(text()).toBe('')
    }
  })

  it('T5.1 one that is stopped is its owner’s again: neither destroyed nor read, and free to fail', async () => {
    const body = new PassThrough()
    const { upload, told, drain, socket } = uploading(body)
    upload.start()
    body.write('abc')
    await turn()
    upload.stop()
    body.write('def')
    await drain()
    expect([body.destroyed, body.isPaused(), told, socket.listenerCount('drain')]).toEqual([
      false,
      true,
      [],
      0,
    ])
    expect(String(body.read())).toBe('def')
    body.destroy(new Error('later'))
    await turn()
  })
})

/** An upstream that does as it is told with the socket, and all that came. */
async function receiving(behave: (socket: Socket, sofar: string) => void) {
  const seen = { text: '', closed: 0, opened: 0 }
  const url = await rawUpstream((socket) => {
    seen.opened += 1
    socket
      .on('close', () => (seen.closed += 1))
      .on('data', (bytes) => {
        seen.text += bytes.toString('latin1')
        behave(socket, seen.text)
      })
  })
  return { url, seen }
}
const POST = { method: 'POST' }
const soon = (check: () => void) => eventually(check)

describe('an upload over a connection', () => {
  it.each([6, undefined])(
    'T2.4 (declared: %s) is whole at the upstream, and the connection is kept',
    async (length) => {
      const end = length === undefined ? '0\r\n\r\n' : 'def'
      const { url, seen } = await receiving((socket, text) => {
        if (text.endsWith(end)) {
          seen.text = ''
          socket.write(WHOLE)
        }
      })
      const { call, pool } = openPool(url)
      for (let nth = 0; nth < 3; nth += 1) {
        const body = Readable.from([Buffer.from('abc'), Buffer.from('def')])
        expect(await textOf(call({ ...POST, body, length }).answer)).toBe('ok')
      }
      expect([seen.opened, pool.inFlight]).toEqual([1, 0])
    },
  )

  it.each([6, undefined])(
    'T5.2 (declared: %s) whose client leaves is cut: it does not look whole, and nothing follows',
    async (length) => {
      const { url, seen } = await receiving(() => undefined)
      const { call, pool } = openPool(url)
      const body = new PassThrough()
      const { answer, answers } = call({ ...POST, body, length })
      body.write('abc')
      await soon(() => expect(seen.text).toContain('abc'))
      body.destroy()
      await expect(answer).rejects.toEqual(faulty('client_gone'))
      await soon(() => expect(seen.closed).toBe(1))
      expect(seen.text.split('\r\n\r\n')[1]).toBe(length === undefined ? '3\r\nabc\r\n' : 'abc')
      expect([pool.inFlight, answers(), seen.text.endsWith('0\r\n\r\n')]).toEqual([0, 1, false])
    },
  )

  it('T5.2 whose client left before there was a connection never begins', async () => {
    const { url, seen } = await receiving(() => undefined)
    const { call } = openPool(url)
    const body = new PassThrough()
    const { answer } = call({ ...POST, body })
    body.destroy()
    await expect(answer).rejects.toEqual(faulty('client_gone'))
    await soon(() => expect(seen.closed).toBe(1))
    expect(seen.text).not.toContain('\r\n0\r\n')
  })

  it('C8.4 that is answered before it was sent: the answer counts, the connection is not used again', async () => {
    const { url, seen } = await receiving(
      (socket) => void socket.write('HTTP/1.1 413 X\r\nContent-Length: 2\r\n\r\nno'),
    )
    const { call, pool } = openPool(url)
    for (const length of [1000, undefined]) {
      const body = new PassThrough()
      body.write('abc')
      const response = await call({ ...POST, body, length }).answer
      expect(response.statusCode).toBe(413)
      expect([body.destroyed, pool.inFlight]).toEqual([false, 0])
      body.destroy(new Error('later'))
    }
    await soon(() => expect([seen.opened, seen.closed]).toEqual([2, 2]))
    expect(seen.text).not.toContain('\r\n0\r\n\r\n')
  })

  it('C8.4 a whole body that the upstream did not take before it answered ends its connection too', async () => {
    const { url, seen } = await receiving((socket) => void socket.pause().write(WHOLE))
    const { call } = openPool(url)
    const body = Buffer.alloc(50_000_000)
    expect(await textOf(call({ ...POST, body }).answer)).toBe('ok')
    expect(await textOf(call().answer)).toBe('ok')
    expect(seen.opened).toBe(2)
  })

  it('T5.1 that the upstream does not read is not read from the client, and is given up in time', async () => {
    const { url } = await receiving((socket) => void socket.pause())
    const clock = movableClock()
    const { call, pool } = openPool(url, { timeouts: { firstByte: 300 }, clock })
    let read = 0
    const body = new Readable({
      read() {
        read += 65_536
        this.push(Buffer.alloc(65_536))
      },
    })
    const { answer, answers } = call({ ...POST, body })
    await eventually(() => expect(body.isPaused()).toBe(true))
    clock.advance(299)
    expect(answers()).toBe(0)
    // The kernel may still take some of it, from when on the upstream has its time anew.
    await eventually(() => {
      clock.advance(300)
      expect(answers()).toBe(1)
    })
    await expect(answer).rejects.toEqual(faulty('upstream_timeout'))
    expect(read).toBeLessThan(40_000_000)
    expect([pool.inFlight, body.destroyed]).toEqual([0, false])
  })

  it('T5.3 whose client is slow is not the upstream’s fault: no time runs, until all was sent', async () => {
    const { url, seen } = await receiving((socket, text) => {
      if (text.endsWith('0\r\n\r\n')) socket.write(HELD)
    })
    const clock = movableClock()
    const { call } = openPool(url, { timeouts: { firstByte: 100, idle: 150 }, clock })
    const body = new PassThrough()
    const { answer, answers, reader } = call({ ...POST, body })
    await soon(() => expect(seen.text).toMatch(/\r\n\r\n$/))
    for (const piece of ['a', 'b', 'c']) {
      clock.advance(120)
      body.write(piece)
      await soon(() => expect(seen.text).toMatch(new RegExp(`${piece}\r\n$`)))
    }
    expect([seen.opened, answers()]).toEqual([1, 0])
    body.end()
    await soon(() => expect(reader.progress).toBe(200))
    clock.advance(149)
    expect(answers()).toBe(0)
    clock.advance(1)
    await expect(answer).rejects.toEqual(faulty('upstream_timeout'))
  })

  it('T5.3 nor while the upstream has begun its answer, and waits for the rest of the body', async () => {
    const { url, seen } = await receiving((socket, text) => {
      if (text.endsWith('1\r\na\r\n')) socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`)
      if (text.endsWith('b\r\n0\r\n\r\n')) socket.write('3\r\n, b\r\n0\r\n\r\n')
    })
    const clock = movableClock()
    const { call, pool } = openPool(url, { timeouts: { idle: 100 }, clock })
    for (const isWhole of [true, false]) {
      const body = new PassThrough()
      const { answer } = call({ ...POST, body, eager: false })
      body.write('a')
      await answer
      clock.advance(350)
      const rest = textOf(answer)
      body.end(isWhole ? 'b' : 'x')
      if (isWhole) {
        expect(await rest).toBe('ok, b')
        continue
      }
      await soon(() => expect(seen.text).toMatch(/x\r\n0\r\n\r\n$/))
      // Once it has all, it is late as ever.
      clock.advance(99)
      expect(pool.inFlight).toBe(1)
      clock.advance(1)
      await expect(rest).rejects.toEqual(faulty('upstream_timeout'))
    }
    expect(pool.inFlight).toBe(0)
  })
})
