import { type PieceSource, readableOf } from '../../../src/base/http/body/pieces.ts'
import { eventually } from '../../support/eventually.ts'
import dns from 'node:dns'
import { createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { movableClock } from '../../support/movable-clock.ts'
import {
  faulty,
  listen,
  OK,
  openPool,
  rawUpstream,
  textOf,
  WHOLE,
  type StartedCall,
} from '../../support/upstream-connections.ts'

/** An upstream that holds what it is asked until it is told to answer. `asked` are the paths, `by` whom they came by. */
async function holding() {
  const asked: string[] = []
  const by: Socket[] = []
  const sockets: Socket[] = []
  const url = await rawUpstream((socket) => {
    sockets.push(socket)
    socket.on('data', (bytes) => {
      asked.push(
        ...Array.from(bytes.toString('latin1').matchAll(/^[A-Z]+ \/(\S*)/gm), ([, path]) => path ?? ''),
      )
      by.push(socket)
    })
  })
  const until = (count: number) => eventually(() => expect(asked).toHaveLength(count))
  const answer = (path: string, bytes = WHOLE): void => void by[asked.indexOf(path)]!.write(bytes)
  const open = (): number =>
    sockets.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length
  return { url, asked, by, sockets, until, answer, open }
}

const overPool = (url: string, changes: Parameters<typeof openPool>[1] = {}) => {
  const { pool, call } = openPool(url, changes)
  const get = (path: string, more: Parameters<typeof call>[0] = {}): StartedCall =>
    call({ path: `/${path}`, ...more })
  return { pool, get }
}

describe('the connections to a target', () => {
  it('T5.4 are as many as calls at once, never more than allowed; who comes then waits, in order', async () => {
    const { url, until, asked, answer, sockets } = await holding()
    const { pool, get } = overPool(url, { maxConnections: 2 })
    const calls = ['a', 'b', 'c', 'd', 'e'].map((path) => get(path))
    await until(2)
    expect(pool.inFlight).toBe(5)
    for (const [count, path] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      answer(path)
      expect(await textOf(calls[count]!.answer)).toBe('ok')
      await until(Math.min(count + 3, 5))
    }
    expect(asked).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(sockets).toHaveLength(2)
    expect(pool.inFlight).toBe(0)
    expect(calls.map(({ answers }) => answers())).toEqual([1, 1, 1, 1, 1])
  })

  it('T5.1 the one used last is used next, so that the others fall out of use', async () => {
    const { url, until, answer, by } = await holding()
    const { get } = overPool(url)
    const [a, b] = [get('a'), get('b')]
    await until(2)
    answer('b')
    await b.answer
    answer('a')
    await a.answer
    await turn()
    for (const [index, path] of ['c', 'd', 'e'].entries()) {
      const { answer: later } = get(path)
      await until(index + 3)
      answer(path)
      await later
      await turn()
      expect(by[index + 2]).toBe(by[0])
    }
  })

  it('T2.4 a free one is not used when it was closed meanwhile', async () => {
    const { url, until, answer, by, sockets } = await holding()
    const { get } = overPool(url)
    const first = get('a')
    await until(1)
    answer('a')
    await first.answer
    by[0]!.end()
    await eventually(() => expect(by[0]!.destroyed).toBe(true))
    const second = get('b')
    await until(2)
    answer('b')
    expect(await textOf(second.answer)).toBe('ok')
    expect(sockets).toHaveLength(2)
  })

  it('C8.5 a further attempt goes over a connection of its own, that nobody keeps', async () => {
    const { url, until, answer, sockets, open } = await holding()
    const { pool, get } = overPool(url, { maxConnections: 1 })
    const kept = get('a')
    await until(1)
    const heads: string[] = []
    const fresh = ['b', 'c'].map((path) => get(path, { fresh: true }))
    await until(2)
    sockets[1]!.on('data', (bytes) => heads.push(String(bytes)))
    answer('b')
    await until(3)
    answer('c')
    for (const { answer: got } of fresh) expect(await textOf(got)).toBe('ok')
    answer('a')
    await kept.answer
    expect(sockets).toHaveLength(3)
    await eventually(() => expect(open()).toBe(1))
    expect(pool.inFlight).toBe(0)
  })
})

it('C8.4 a name that stands for another address is noticed under load, when connections are old', async () => {
  const [first, second] = ['127.13.57.1', '127.13.57.2']
  const answersWith = (name: string) =>
    createServer((socket) => socket.on('data', () => socket.write(`${OK}Content-Length: 3\r\n\r\n${name}`)))
  const port = await listen(answersWith('one'), first)
  await listen(answersWith('two'), second, port)
  const lookup = vi.spyOn(dns, 'lookup')
  onTestFinished(() => lookup.mockRestore())
  const nameIs = (address: string): void =>
    void lookup.mockImplementation(((_: string, __: object, found: (error: null, all: object[]) => void) =>
      found(null, [{ address, family: 4 }])) as unknown as typeof dns.lookup)
  nameIs(first)
  const clock = movableClock()
  const { get } = overPool(`http://moving.test:${port}`, { connectionAge: 200, clock })
  let answers: string[] = []
  let isOver = false
  const work = async (): Promise<void> => {
    while (!isOver) answers.push(await textOf(get('').answer))
  }
  const workers = Array.from({ length: 4 }, work)
  await eventually(() => expect(answers.length).toBeGreaterThan(20))
  expect(new Set(answers)).toEqual(new Set(['one']))
  nameIs(second)
  clock.advance(200)
  await eventually(() => {
    const latest = answers
    answers = []
    expect(new Set(latest)).toEqual(new Set(['two']))
  })
  isOver = true
  await Promise.all(workers)
})

it('T2.8 after stray bytes each call has a connection of its own for ten minutes, from the last ones on', async () => {
  const { url, until, answer, sockets, open } = await holding()
  const clock = movableClock()
  const changes: boolean[] = []
  const { get } = overPool(url, { clock, trustChanged: (distrusted) => void changes.push(distrusted) })
  let asked = 0
  const call = async (bytes = WHOLE): Promise<void> => {
    const path = String((asked += 1))
    const { answer: got } = get(path)
    await until(asked)
    answer(path, bytes)
    expect(await textOf(got)).toBe('ok')
    await turn()
  }
  await call(`${WHOLE}stray`)
  expect(changes).toEqual([true])
  clock.advance(9 * 60_000)
  // Stray bytes again: the ten minutes begin anew, and nobody is told twice.
  await call(`${WHOLE}stray`)
  clock.advance(9 * 60_000)
  await call()
  await call()
  expect(changes).toEqual([true])
  expect(sockets).toHaveLength(4)
  await eventually(() => expect(open()).toBe(0))
  clock.advance(2 * 60_000)
  await call()
  await call()
  expect(changes).toEqual([true, false])
  expect(sockets).toHaveLength(5)
})

describe('a call that waits for a connection', () => {
  it('T5.4 waits as long as for the first byte, and was then never sent', async () => {
    const { url, until, asked, answer } = await holding()
    const clock = movableClock()
    const { pool, get } = overPool(url, { maxConnections: 1, timeouts: { firstByte: 150 }, clock })
    const first = get('a')
    await until(1)
    answer('a', `${OK}Content-Length: 9\r\n\r\n`)
    await eventually(() => expect(first.reader.progress).toBe(200))
    const second = get('b')
    clock.advance(149)
    expect(second.answers()).toBe(0)
    clock.advance(1)
    await expect(second.answer).rejects.toEqual(faulty('upstream_timeout'))
    expect(pool.inFlight).toBe(1)
    answer('a', 'whole now')
    expect(await textOf(first.answer)).toBe('whole now')
    const third = get('c')
    await until(2)
    answer('c')
    await third.answer
    expect(asked).toEqual(['a', 'c'])
    expect(second.answers()).toBe(1)
  })

  it('T5.1 is not sent when it was cancelled, and the next one is', async () => {
    const { url, until, asked, answer } = await holding()
    const { pool, get } = overPool(url, { maxConnections: 1 })
    const [a, b, c] = [get('a'), get('b'), get('c')]
    await until(1)
    b.reader.cancel(new Error('gone'))
    b.reader.cancel(new Error('gone'))
    await expect(b.answer).rejects.toThrow()
    expect(pool.inFlight).toBe(2)
    answer('a')
    await a.answer
    await until(2)
    answer('c')
    expect(await textOf(c.answer)).toBe('ok')
    expect(asked).toEqual(['a', 'c'])
    expect([pool.inFlight, b.answers()]).toEqual([0, 1])
  })

  it.each([
    ['breaks off', (_: StartedCall, socket: Socket) => socket.resetAndDestroy()],
    ['is cancelled', (call: StartedCall) => call.reader.cancel(new Error('gone'))],
    ['answers what is none', (_: StartedCall, socket: Socket) => void socket.write('nonsense')],
    ['is closed behind its answer', (_: StartedCall, socket: Socket) => void socket.write(`${WHOLE}x`)],
  ])('T5.1 gets a new one when the call before it %s', async (_how, end) => {
    const { url, until, asked, answer, sockets, by } = await holding()
    const { pool, get } = overPool(url, { maxConnections: 1 })
    const [a, b] = [get('a'), get('b')]
    await until(1)
    end(a, by[0]!)
    await until(2)
    answer('b')
    expect(await textOf(b.answer)).toBe('ok')
    await a.answer.catch(() => undefined)
    expect([asked, sockets.length, pool.inFlight]).toEqual([['a', 'b'], 2, 0])
  })

  it('T5.1 fails with those before it where nobody listens', async () => {
    const { pool, get } = overPool('http://127.0.0.1:1', { maxConnections: 2 })
    const calls = Array.from({ length: 200 }, (_, index) => get(String(index)))
    for (const { answer } of calls) await expect(answer).rejects.toEqual(faulty('upstream_unreachable'))
    expect(pool.inFlight).toBe(0)
    expect(new Set(calls.map(({ answers }) => answers()))).toEqual(new Set([1]))
  })
})

it('C8.4 a pool that is closed cuts every call and takes no other', async () => {
  const { url, until, answer, open } = await holding()
  const { pool, get } = overPool(url, { maxConnections: 3 })
  const [idle, asked, streamed] = ['a', 'b', 'c'].map((path) => get(path)) as [
    StartedCall,
    StartedCall,
    StartedCall,
  ]
  await until(3)
  answer('a')
  await idle.answer
  answer('c', `${OK}Content-Length: 100000\r\n\r\nx`)
  const body = readableOf((await streamed.answer).body as PieceSource)
  const connecting = get('d', { fresh: true })
  const queued = get('e', { fresh: true })
  await pool.close()
  for (const { answer: got } of [asked, connecting, queued, get('f')])
    await expect(got).rejects.toEqual(faulty('upstream_unreachable'))
  await expect(body.toArray()).rejects.toThrow()
  expect(pool.inFlight).toBe(0)
  await eventually(() => expect(open()).toBe(0))
})

it(
  'T5.1 4,000 calls of every fate leave no connection, listener or timer behind',
  { timeout: 60_000 },
  async () => {
    const warnings: string[] = []
    const warned = ({ name }: Error): number => warnings.push(name)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    let accepted = 0
    const url = await rawUpstream((socket) => {
      accepted += 1
      socket.on('data', (bytes) => {
        for (const [, path] of bytes.toString('latin1').matchAll(/^GET \/(\S*)/gm)) {
          if (path === 'reset') socket.resetAndDestroy()
          else if (path === 'bad') socket.write('bad')
          else if (path === 'long') socket.write(`${OK}Content-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`)
          else if (path !== 'never') socket.write(WHOLE)
        }
      })
    })
    const { pool, get } = overPool(url, {
      maxConnections: 8,
      timeouts: { connect: 60_000, firstByte: 60_000 },
    })
    const count = (kind: string): number =>
      process.getActiveResourcesInfo().filter((active) => active === kind).length
    const before = { timers: count('Timeout'), sockets: count('TCPSocketWrap') }
    const fates = ['', '', '', '', '', '', 'long', '', 'never', '', 'reset', '', '', 'bad', '', '']
    let asked = 0
    const work = async (): Promise<void> => {
      while (asked < 4000) {
        const fate = fates[asked++ % fates.length]!
        const { answer, reader } = get(fate)
        if (fate === 'never') {
          await turn()
          reader.cancel(new Error('gone'))
        }
        await textOf(answer).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: 16 }, work))
    expect(pool.inFlight).toBe(0)
    expect(accepted).toBeGreaterThan(200)
    await pool.close()
    await turn()
    expect(count('Timeout')).toBeLessThanOrEqual(before.timers)
    await eventually(() => expect(count('TCPSocketWrap')).toBeLessThanOrEqual(before.sockets))
    expect(warnings).toEqual([])
  },
)

describe('a socket that cannot be made', () => {
  it('C8.4 fails its call at once, and takes no place', async () => {
    const tls = { cert: 'none', key: 'none' }
    const { pool, call } = openPool('https://127.0.0.1:1', { tls, maxConnections: 1 })
    for (let attempt = 0; attempt < 3; attempt += 1)
      await expect(call().answer).rejects.toMatchObject({ code: 'upstream_unreachable' })
    expect(pool.inFlight).toBe(0)
  })
})
