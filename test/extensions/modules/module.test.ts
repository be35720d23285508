import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readableOf } from '../../../src/base/http/body/pieces.ts'
import { answeringModule } from '../../../src/extensions/modules/answering.ts'
import { userModule } from '../../../src/extensions/modules/module.ts'
import type { Module, ModuleCall } from '../../../src/base/contracts/calls/module.ts'
import { parseJson } from '../../../src/base/http/body/json.ts'
import { type Clock, systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { makeCall, PRINCIPAL, type CallOverrides } from '../../support/calls.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { factsOf } from '../../../src/extensions/modules/call.ts'

/** What user code may answer when it runs: anything at all. */
const over = (
  answer: (call: ModuleCall) => unknown,
  { clock = systemClock, ...more }: Pick<Module, 'healthy' | 'close'> & { readonly clock?: Clock } = {},
) => {
  const timers = manualAfter()
  const failures: unknown[] = []
  const rules = {
    name: 'mine',
    clock,
    after: timers.after,
    timeout: 30_000,
    idle: 60_000,
    responseHeaders: ['Location'],
    answerLimit: 16 * 1024 ** 2,
    failed: (thrown: unknown) => void failures.push(thrown),
  }
  return { backend: userModule(answeringModule({ answer, ...more }, false), rules), timers, failures }
}

const answering = (given: unknown, call: CallOverrides = {}) =>
  over(() => given).backend.answer(makeCall(call))

async function faultOf(asked: Promise<unknown>): Promise<Fault> {
  const thrown: unknown = await asked.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(Fault)
  return thrown as Fault
}

const valued = (value: unknown) => ({ body: { kind: 'value', value } })
const streamed = (stream: Readable, contentType?: string) => ({
  body: { kind: 'stream', stream, ...(contentType !== undefined && { contentType }) },
})
async function streamOf(given: unknown): Promise<Readable> {
  const { body } = await answering(given)
  if (body.kind !== 'stream') throw new Error('no stream')
  return readableOf(body.pieces)
}
const circle: Record<string, unknown> = {}
circle['self'] = circle

describe('C8.1: what a module is given', () => {
  const seen = async (call: CallOverrides): Promise<ModuleCall> => {
    const calls: ModuleCall[] = []
    await over((given) => (calls.push(given), {})).backend.answer(makeCall(call))
    return calls[0]!
  }

  it('names the action as configured, without the types of its parameters', async () => {
    const action = { ...makeCall().action, area: 'member-data', action: 'member-detail/{memberId:uuid}' }
    expect((await seen({ action, params: { memberId: 'x' } })).action).toBe(
      'member-data/member-detail/{memberId}',
    )
  })

  it('gives a HEAD as GET, and the query read', async () => {
    const { method, query } = await seen({
      method: 'HEAD',
      target: '/api/1.0/b/ACME/fund-data/fund-list?a=1&a=%20',
    })
    expect(method).toBe('GET')
    expect(query.getAll('a')).toEqual(['1', ' '])
  })

  it('gives numbers that are numbers, whatever their literals were', async () => {
    const value = parseJson(Buffer.from('{"a": 1.0, "b": [1e2, 3], "__proto__": {"c": -0.50}}'))
    const { body } = await seen({ body: { kind: 'value', value } })
    expect(JSON.stringify(body)).toBe('{"kind":"value","value":{"a":1,"b":[100,3],"__proto__":{"c":-0.5}}}')
  })

  it('C4.16 gives a copy of who calls: what it changes there, no other call sees', async () => {
    const call = makeCall()
    const { backend } = over(({ caller }) => {
      ;(caller.scopes as Set<string>).add('fund.maintain')
      return {}
    })
    await backend.answer(call)
    expect([...(call.principal?.scopes ?? [])]).toEqual(['fund.read', 'target:b/ACME'])
  })

  it('C8.9 has no `forward` and no `upstream` where it runs around no backend', async () => {
    const given = await seen({})
    expect(given).not.toHaveProperty('forward')
    expect(given).not.toHaveProperty('upstream')
  })

  it('never gives the Authorization of the client', async () => {
    const given = await seen({ authorization: 'Bearer secret' })
    expect(JSON.stringify(given)).not.toContain('secret')
  })
})

describe('C8.1: what a module answers', () => {
  it('is 200 and empty if it says nothing else', async () => {
    expect(await answering({})).toEqual({ status: 200, headers: {}, body: { kind: 'none' } })
  })

  it('is a value as JSON.stringify would write it: dates as text, undefined members left out', async () => {
    const { body } = await answering(valued({ at: new Date(0), gone: undefined, list: [{ a: 1 }] }))
    expect(body).toMatchObject({ kind: 'value' })
    expect(JSON.stringify(body)).toBe(
      '{"kind":"value","value":{"at":"1970-01-01T00:00:00.000Z","list":[{"a":1}]}}',
    )
  })

  it('C8.3 passes only the headers that are configured, or harmless', async () => {
    const headers = {
      Location: '/x',
      'Set-Cookie': 'a=b',
      ETag: '"1"',
      Connection: 'x',
      'Content-Length': '9',
    }
    expect((await answering({ headers })).headers).toEqual({ location: '/x', etag: '"1"' })
  })

  it('C8.4 passes its own errors with a 4xx, and makes ours of one without', async () => {
    const errors = [{ code: 'MINE', message: 'Not so.' }]
    const answer = await answering({ status: 409, body: { kind: 'errors', errors } })
    expect(answer).toEqual({ status: 409, headers: {}, body: { kind: 'errors', errors } })
    expect((await faultOf(answering({ status: 404 }))).code).toBe('upstream_not_found')
    expect((await faultOf(answering({ status: 409 }))).status).toBe(409)
    expect((await faultOf(answering({ status: 503 }))).code).toBe('upstream_unavailable')
    expect((await faultOf(answering({ status: 403 }))).code).toBe('upstream_forbade')
  })

  it('C8.4 a date in Retry-After counts from the answer, not from the call', async () => {
    const clock = movableClock()
    const { backend } = over(
      () => {
        clock.advance(60_000)
        return { status: 503, headers: { 'Retry-After': new Date(clock.now() + 30_000).toUTCString() } }
      },
      { clock },
    )
    expect((await faultOf(backend.answer(makeCall()))).facts.retryAfter).toBe(30)
  })

  it('is 304 only to a conditional request', async () => {
    expect((await faultOf(answering({ status: 304 }))).code).toBe('upstream_broken')
    const headers = { 'if-none-match': '"1"' }
    expect((await answering({ status: 304 }, { headers })).status).toBe(304)
  })

  it('C8.4 is 206 only to a request with a range', async () => {
    expect((await faultOf(answering({ status: 206 }))).code).toBe('upstream_broken')
    expect((await answering({ status: 206 }, { headers: { range: 'bytes=0-1' } })).status).toBe(206)
  })

  it('may be a stream of text or bytes; of a HEAD it is let go', async () => {
    const { body } = await answering({
      body: { kind: 'stream', stream: Readable.from(['a', Buffer.from('b')]) },
    })
    expect(body.kind === 'stream' && Buffer.concat(await readableOf(body.pieces).toArray()).toString()).toBe(
      'ab',
    )
    const stream = Readable.from(['a'])
    expect((await answering({ body: { kind: 'stream', stream } }, { method: 'HEAD' })).body.kind).toBe('none')
    await new Promise((resolve) => setImmediate(resolve))
    expect(stream.destroyed).toBe(true)
  })

  it('breaks a stream that holds something else, without ending the process', async () => {
    const source = Readable.from([{ no: 'bytes' }])
    expect((await faultOf(answering(streamed(source)))).code).toBe('upstream_broken')
    expect(source.destroyed).toBe(true)
    const late = await streamOf(streamed(Readable.from(['fine', { no: 'bytes' }])))
    expect((await faultOf(late.toArray())).code).toBe('upstream_broken')
  })
})

describe('C8.4: a stream of a module', () => {
  it('that never yields is a fault when the time is up, and is let go', async () => {
    const source = new Readable({ read: () => undefined })
    const { backend, timers } = over(() => streamed(source))
    const asked = faultOf(backend.answer(makeCall()))
    await new Promise((resolve) => setImmediate(resolve))
    await timers.fire()
    expect((await asked).code).toBe('upstream_timeout')
    expect(source.destroyed).toBe(true)
  })

  it('that stops in the middle fails after `idle`, and is let go', async () => {
    const source = new Readable({ read: () => undefined })
    source.push('begun')
    const { backend, timers } = over(() => streamed(source))
    const { body } = await backend.answer(makeCall())
    const read = faultOf(body.kind === 'stream' ? readableOf(body.pieces).toArray() : Promise.resolve())
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers.delays()).toEqual([60_000])
    await timers.fire()
    expect((await read).code).toBe('upstream_timeout')
    expect(source.destroyed).toBe(true)
  })

  it('of events is answered before it has any, and bounded by `idle` from then on', async () => {
    const source = new Readable({ read: () => undefined })
    const { backend, timers } = over(() => streamed(source, 'text/event-stream; charset=utf-8'))
    const { body } = await backend.answer(makeCall())
    const read = faultOf(body.kind === 'stream' ? readableOf(body.pieces).toArray() : Promise.resolve())
    await new Promise((resolve) => setImmediate(resolve))
    await timers.fire()
    expect((await read).code).toBe('upstream_timeout')
  })

  it('that nobody takes is not timed out', async () => {
    const { backend, timers } = over(() => streamed(Readable.from(Array(100).fill('x'.repeat(10_000)))))
    await backend.answer(makeCall())
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers.delays()).toEqual([])
  })

  it.each([
    ['has failed', () => new Readable({ read: () => undefined }).destroy(new Error('no'))],
    ['was destroyed', () => new Readable({ read: () => undefined }).destroy()],
    [
      'fails at its first piece',
      () =>
        new Readable({
          read() {
            this.destroy(new Error('no'))
          },
        }),
    ],
    [
      'closes before its end',
      () =>
        new Readable({
          read() {
            this.destroy()
          },
        }),
    ],
    [
      'throws when it is read',
      () =>
        new Readable({
          read: () => {
            throw new Error('no')
          },
        }),
    ],
    [
      'throws when it is let go',
      () =>
        Object.assign(
          new Readable({
            read() {
              this.push({})
            },
          }),
          {
            destroy: () => {
              throw new Error('no')
            },
          },
        ),
    ],
  ])('that %s is a fault, and no empty 200', async (_case, stream) => {
    expect((await faultOf(answering(streamed(stream())))).code).toBe('upstream_broken')
  })

  it('that was read to its end before is a fault, and an empty one is none', async () => {
    const read = Readable.from(['a'])
    await read.toArray()
    expect((await faultOf(answering(streamed(read)))).code).toBe('upstream_broken')
    const ended = new Readable({ read: () => undefined })
    ended.push(null)
    expect(await (await streamOf(streamed(ended))).toArray()).toEqual([])
  })
})

describe('T4.7: a large value of a module', () => {
  const list = (length: number) => Array.from({ length }, (_, i) => i)

  it.each([
    ['many numbers', list(50_000)],
    [
      'many members',
      Object.fromEntries(list(5000).map((i) => [`key "${i}"`, { i, gone: undefined, list: [] }])),
    ],
    ['a long text', '\u{1f600}"\\'.repeat(30_000)],
    ['a long name', { a: 1, ['n'.repeat(100_000)]: [null, true] }],
    ['what has toJSON', list(3000).map((i) => new Date(i))],
    ['much of each', [list(3000), { text: 'x'.repeat(70_000), empty: {}, none: [] }, 'end']],
  ])('is the text that JSON.stringify writes, in slices: %s', async (_case, value) => {
    const { body } = await answering(valued(value))
    expect(body.kind === 'bytes' && body.bytes.toString()).toBe(JSON.stringify(value))
  })

  it('lets others run in between', async () => {
    let turns = 0
    const turn = (): void => {
      turns++
      running = setImmediate(turn)
    }
    let running = setImmediate(turn)
    await answering(valued(list(150_000).map((i) => ({ i }))))
    clearImmediate(running)
    expect(turns).toBeGreaterThan(2)
  })

  it('is refused above the limit, with a fault that says so', async () => {
    expect((await faultOf(answering(valued('x'.repeat(16 * 1024 ** 2))))).code).toBe('answer_too_large')
    expect((await faultOf(answering(valued(Array(4200).fill('x'.repeat(4096)))))).code).toBe(
      'answer_too_large',
    )
  })

  it.each([
    [
      'an object of 100,001 members',
      Object.fromEntries(Array.from({ length: 100_001 }, (_, at) => [`m${at}`, at])),
      /more than 100000 members/,
    ],
    ['a sparse list', Object.assign([], { length: 4_000_000_000 }), /more than 1000000 values/],
    ['a list with a hole', Object.assign([1], { length: 5000 }), /undefined at value\[1\]/],
    [
      'a wide circle',
      (() => {
        const a: unknown[] = list(3000)
        a.push(a)
        return a
      })(),
      /circle/,
    ],
    ['NaN deep in it', { a: [...list(3000), { b: Number.NaN }] }, /NaN at value\.a\[3000\]\.b/],
    ['a map in it', [...list(3000), new Map()], /Map at value\[3000\]/],
    [
      'a toJSON without end',
      (() => {
        const a = { toJSON: () => a }
        return a
      })(),
      /toJSON without end/,
    ],
    ['a thenable', { then: 1, a: Promise.resolve() }, /Promise at value\.a/],
    [
      'a member that throws',
      {
        get a() {
          throw new Error('no')
        },
      },
      /threw/,
    ],
    [
      'a proxy that throws',
      new Proxy([], {
        get: () => {
          throw new Error('no')
        },
      }),
      /threw/,
    ],
  ])('is refused at once: %s', async (_case, value, told) => {
    const fault = await faultOf(answering(valued(value)))
    expect(fault.code).toBe('upstream_broken')
    expect(fault.facts.detail).toMatch(told)
  })
})

describe('C8.4: a mistake of a module is upstream_broken, with what it was for the log', () => {
  const getter = Object.defineProperty({}, 'status', {
    get: () => {
      throw new RangeError('no')
    },
  })
  it.each([
    ['no answer', undefined, /undefined/],
    ['null', null, /null/],
    ['a text', 'hello', /string/],
    ['a status that is none', { status: 99 }, /status 99/],
    ['a status that is a text', { status: '200' }, /status 200/],
    ['a 1xx', { status: 103 }, /103/],
    ['NaN', valued({ Funds: [{ Assets: Number.NaN }] }), /NaN at value\.Funds\[0\]\.Assets/],
    ['Infinity', valued(Infinity), /Infinity/],
    ['a bigint', valued({ id: 1n }), /bigint at value\.id/],
    ['a function', valued([() => 1]), /function at value\[0\]/],
    ['a symbol', valued(Symbol('x')), /symbol/],
    ['a value that is not there', valued(undefined), /undefined/],
    ['a map', valued(new Map([['a', 1]])), /Map/],
    ['bytes as a value', valued(Buffer.from('x').buffer), /ArrayBuffer/],
    ['a circle', valued(circle), /circle/],
    ['an unknown body', { body: { kind: 'html' } }, /kind html/],
    ['a body of the kind constructor', { body: { kind: 'constructor' } }, /kind constructor/],
    ['bytes that are a text', { body: { kind: 'bytes', bytes: 'x' } }, /Uint8Array/],
    ['a stream that is none', { body: { kind: 'stream', stream: {} } }, /Readable/],
    ['a negative length', { body: { kind: 'stream', stream: Readable.from([]), length: -1 } }, /length/],
    [
      'a media type with a line end',
      { body: { kind: 'bytes', bytes: Buffer.alloc(0), contentType: 'a/b\r\nX: y' } },
      /media type/,
    ],
    ['T2.7 a header with a line end', { headers: { Location: '/\r\nSet-Cookie: a=b' } }, /location/i],
    ['a header with NUL', { headers: { Location: ['/', '\0'] } }, /location/i],
    ['a header beyond Latin-1', { headers: { Location: '/✓' } }, /location/i],
    ['a header that is a number', { headers: { Location: 7 } }, /location/i],
    ['a header’s name with a colon', { headers: { 'A: b\r\nC': 'd' } }, /header/],
    [
      'errors with a success',
      { body: { kind: 'errors', errors: [{ code: 'a', message: 'b' }] } },
      /status 200/,
    ],
    ['no errors in a list of errors', { status: 400, body: { kind: 'errors', errors: [] } }, /empty/],
    [
      'an error without a message',
      { status: 400, body: { kind: 'errors', errors: [{ code: 'a' }] } },
      /message/,
    ],
    ['headers of 10 MiB', { headers: { Location: 'x'.repeat(10 * 1024 ** 2) } }, /header/],
    [
      '10 MiB of headers',
      { headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`X-${i}`, 'x'.repeat(1000)])) },
      /more than 16384 characters/,
    ],
    ['a header of many lines', { headers: { Location: Array(200).fill('x') } }, /lines/],
    ['a header of billions of lines', { headers: { Location: Object.assign([], { length: 4e9 }) } }, /lines/],
    [
      'billions of errors',
      { status: 400, body: { kind: 'errors', errors: Object.assign([], { length: 4e9 }) } },
      /errors/,
    ],
    [
      'an error of 8 MiB',
      { status: 400, body: { kind: 'errors', errors: [{ code: 'a', message: 'x'.repeat(2 ** 23) }] } },
      /characters/,
    ],
    [
      'a status that cannot be said',
      {
        status: {
          toString: () => {
            throw new Error('no')
          },
        },
      },
      /threw/,
    ],
    ['a redirect', { status: 302, headers: { Location: '/' } }, /302/],
    ['a 401', { status: 401 }, /401/],
    ['a 500', { status: 500 }, /500/],
    ['an answer that throws when it is read', getter, /threw/],
  ])('%s', async (_case, given, told) => {
    const fault = await faultOf(answering(given))
    expect(fault.code).toBe('upstream_broken')
    expect(fault.facts.detail).toMatch(told)
    expect(fault.publicText).not.toMatch(told)
  })

  it('what it throws, at once or later, whatever it is', async () => {
    const throwing: (() => unknown)[] = [
      () => {
        throw new Error('at once')
      },
      () => Promise.reject(new Error('later')),
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what user code does
      () => Promise.reject(undefined),
    ]
    for (const answer of throwing)
      expect((await faultOf(over(answer).backend.answer(makeCall()))).code).toBe('upstream_broken')
  })
})

describe('C8.4: the time of a module', () => {
  it('is bounded: then 503, its signal is aborted, and a stream that comes late is let go', async () => {
    const late = Promise.withResolvers<unknown>()
    const signals: AbortSignal[] = []
    const { backend, timers } = over(({ signal }) => (signals.push(signal), late.promise))
    const asked = faultOf(backend.answer(makeCall()))
    expect(timers.delays()).toEqual([30_000])
    await timers.fire()
    expect((await asked).code).toBe('upstream_timeout')
    expect(signals[0]!.aborted).toBe(true)
    const stream = Readable.from(['too late'])
    late.resolve({ body: { kind: 'stream', stream } })
    await new Promise((resolve) => setImmediate(resolve))
    expect(stream.destroyed).toBe(true)
  })

  it('leaves no timer behind', async () => {
    const { backend, timers } = over(() => ({}))
    await backend.answer(makeCall())
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers.delays()).toEqual([])
  })

  it('ends when the client leaves', async () => {
    let leave = (): void => undefined
    const signals: AbortSignal[] = []
    const { backend } = over(({ signal }) => (signals.push(signal), new Promise(() => undefined)))
    const asked = faultOf(backend.answer(makeCall({ onCancel: (listener) => void (leave = listener) })))
    leave()
    expect((await asked).code).toBe('client_gone')
    expect(signals[0]!.aborted).toBe(true)
  })
})

describe('C8.1: the life of a module', () => {
  it('is healthy unless it says no, or cannot say', () => {
    const healthOf = (healthy?: () => boolean) => over(() => ({}), healthy && { healthy }).backend.healthy?.()
    expect(healthOf()).toBe(true)
    expect(healthOf(() => false)).toBe(false)
    expect(
      healthOf(() => {
        throw new Error('no')
      }),
    ).toBe(false)
  })

  it('is closed, and may fail at it without keeping others from closing', async () => {
    const close = () => Promise.reject(new Error('no'))
    await expect(over(() => ({}), { close }).backend.close()).resolves.toBeUndefined()
  })
})

describe('T3.19 the service behind', () => {
  it('T3.19 C8.3 is a module that learns the client and no subject', () => {
    const principal = { ...PRINCIPAL, subject: 'nightly', client: 'nightly', isMachine: true } as const
    const { caller } = factsOf(makeCall({ principal }), new AbortController().signal)
    expect(caller).toMatchObject({ client: 'nightly', subject: undefined })
  })
})
