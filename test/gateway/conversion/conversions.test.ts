import { afterAll, describe, expect, it } from 'vitest'
import { Conversions, ConversionSlots, Threads } from '../../../src/gateway/conversion/conversions.ts'
import { isSmall } from '../../../src/gateway/conversion/at-once.ts'
import { perform, type Task } from '../../../src/gateway/conversion/tasks.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { sized } from '../../support/long.ts'
import { manualAfter } from '../../support/manual-after.ts'

const conversions = new Conversions()
afterAll(() => conversions.close())

const LIMIT = 16 * 1024 ** 2
/** What a conversion may have at most is a million of anything. */
const MANY = sized(100_000, 990_000)
const bare = { format: 'json', payload: 'bare' } as const

const toXml = (text: string, limit = LIMIT): Task => ({
  kind: 'answer',
  bytes: Buffer.from(text),
  answerFormat: bare,
  to: 'xml',
  items: { Funds: 'Fund' },
  limit,
})
const fromXml = (text: string): Task => ({
  kind: 'answer',
  bytes: Buffer.from(text),
  answerFormat: { format: 'xml', payload: 'bare' },
  to: 'json',
  items: {},
  limit: LIMIT,
})
const request = (text: string, more: Partial<Extract<Task, { kind: 'request' }>> = {}): Task => ({
  kind: 'request',
  bytes: Buffer.from(text),
  as: 'json',
  to: 'json',
  schema: undefined,
  items: {},
  ...more,
})

const thrownBy = (work: () => unknown): unknown => {
  try {
    work()
  } catch (thrown) {
    return thrown
  }
  return undefined
}

describe('T4.7 a conversion beside the thread that serves', () => {
  it.each([
    ['an answer to XML', toXml('{"Funds":[1,1e5,"\\u00e9",null,{}]}')],
    ['an answer to JSON', fromXml('<a><b type="number">1.0</b></a>')],
    ['a request to XML', request('{"a":[1]}', { to: 'xml' })],
    ['a request that stays as it is', request(' {"a": 1.0}', { schema: { type: 'object' } })],
    [
      'a form',
      request('a=1&b=%C3%A9', {
        as: 'form',
        schema: { type: 'object', properties: { a: { type: 'integer' } } },
      }),
    ],
    ['an empty answer', toXml('')],
  ])('C7.5 gives what it gives at once: %s', async (_case, task) => {
    const here = Buffer.from(perform(task).bytes).toString()
    expect((await conversions.run(task)).toString()).toBe(here)
    expect(task.bytes.byteLength).toBe(Buffer.from(task.bytes).length) // not taken away
  })

  it.each([
    ['an answer that does not parse', toXml('{"a":')],
    ['an answer that XML cannot say', toXml('{"a":"\\u0000"}')],
    ['an answer that grows too large', toXml(JSON.stringify({ [' '.repeat(5000)]: 1 }), 6000)],
    ['a request that does not parse', request('{"a":1,"a":2}')],
    ['a request that does not fit', request('{"a":1}', { schema: { type: 'object', required: ['b'] } })],
    ['a request that XML cannot say', request('{"a":"\\u0000"}', { to: 'xml' })],
  ])('throws the fault that it throws at once: %s', async (_case, task) => {
    const here = thrownBy(() => perform(task)) as Fault
    expect(here).toBeInstanceOf(Fault)
    const there = (await conversions.run(task).catch((thrown: unknown) => thrown)) as Fault
    expect(there).toBeInstanceOf(Fault)
    expect([there.code, there.publicText]).toEqual([here.code, here.publicText])
  })

  it('lets others run while many numbers become XML', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const xml = await conversions.run(toXml(`[${'1,'.repeat(899_999)}1]`))
    clearInterval(timer)
    expect(xml.length).toBeGreaterThan(24_000_000)
    expect(turns).toBeGreaterThan(20)
  })

  it('T4.7 leaves the bytes of a task to who made them: a module may answer the same ones again', async () => {
    const bytes = Buffer.alloc(300_000, '1')
    const task: Task = { ...toXml(''), bytes }
    const first = await conversions.run(task)
    expect([bytes.length, bytes.at(-1)]).toEqual([300_000, 0x31])
    expect(first.equals(await conversions.run(task))).toBe(true)
  })

  it('starts threads anew for what waits while the threads there are end', async () => {
    const own = new Conversions()
    const task = toXml('{"a":1}')
    await Promise.all([own.run(task), own.run(task)])
    own.close()
    const all = await Promise.all([own.run(task), own.run(task), own.run(task)])
    expect(all.map(String)).toEqual(Array(3).fill(Buffer.from(perform(task).bytes).toString()))
    own.close()
  })

  it('T5.18 ends its threads after 5 s without work, and starts others', async () => {
    const timers = manualAfter()
    const threads = new Threads(timers.after)
    const task = toXml('{"a":1}')
    const first = await threads.run(task)
    expect(timers.delays()).toEqual([5000])
    await timers.fire()
    expect(await threads.run(task)).toEqual(first)
    threads.close()
  })

  it.each([
    ['numbers that become XML', toXml(`[${'1,'.repeat(MANY)}1]`)],
    ['texts that become XML', toXml(`[${'"abcdefghijklm",'.repeat(MANY)}1]`)],
    ['elements that become JSON', fromXml(`<r type="array">${'<a>1</a>'.repeat(MANY)}</r>`)],
  ])(`T4.3 has room for ${MANY} %s`, { timeout: 240_000 }, async (_case, task) => {
    // Of its time only the heap is tried here: the machine may be busy.
    const threads = new Threads(manualAfter().after)
    expect((await threads.run(task)).bytes.length).toBeGreaterThan(MANY * 1.9)
    threads.close()
  })

  it.each([
    ['to read XML', 'xml', 8192],
    ['to make a value of JSON', 'json', 65_536],
    ['to write JSON as XML', 'writing', 262_144],
  ] as const)('T4.7 is not needed for what is small: %s', (_, work, most) => {
    expect([isSmall({ length: most }, work), isSmall({ length: most + 1 }, work)]).toEqual([true, false])
  })
})

describe('T4.7 places for large bodies', () => {
  const busy = expect.objectContaining({
    code: 'conversion_busy',
    facts: expect.objectContaining({ retryAfter: 2 }),
  })

  it('are bounded; who waits gets the next, in turn', async () => {
    const { after } = manualAfter()
    const places = new ConversionSlots({ most: 4, waiting: 2, patience: 1000 }, after)
    const leaves = [
      await places.enter('a'),
      await places.enter('a'),
      await places.enter('b'),
      await places.enter('b'),
    ]
    const entered: string[] = []
    const third = places.enter('c').then((leave) => (entered.push('c'), leave))
    const fourth = places.enter('d').then((leave) => (entered.push('d'), leave))
    await expect(places.enter('e')).rejects.toEqual(busy)
    expect(entered).toEqual([])
    leaves[0]?.()
    ;(await third)()
    ;(await fourth)()
    expect(entered).toEqual(['c', 'd'])
  })

  it('are a backend’s for half of them at most, and others pass it by', async () => {
    const timers = manualAfter()
    const places = new ConversionSlots({ most: 4, waiting: 2, patience: 1000 }, timers.after)
    const leave = await places.enter('slow')
    await places.enter('slow')
    let waited = true
    const third = places.enter('slow').then(() => (waited = false))
    await places.enter('quick')
    expect(waited).toBe(true)
    leave()
    await third
    expect(timers.delays()).toEqual([])
  })

  it('T4.7 are shared out by client: one has three quarters of its backend’s, and others get theirs at once', async () => {
    const { after } = manualAfter()
    const places = new ConversionSlots({ most: 8, waiting: 16, patience: 1000 }, after)
    const enter = (client: string) => places.enter('a', undefined, client)
    const leave = await enter('greedy')
    await enter('greedy')
    await enter('greedy')
    const entered: string[] = []
    for (let call = 0; call < 8; call += 1) void enter('greedy').then(() => entered.push('greedy'))
    await expect(enter('greedy')).rejects.toEqual(busy)
    await enter('other')
    void enter('fourth').then(() => entered.push('fourth'))
    leave()
    await Promise.resolve()
    expect(entered).toEqual(['fourth'])
  })

  it('are counted by backend: of two that one holds and one that it leaves, one is left', async () => {
    const { after } = manualAfter()
    const places = new ConversionSlots({ most: 4, waiting: 3, patience: 1000 }, after)
    const leave = await places.enter('slow')
    await places.enter('slow')
    leave()
    await places.enter('slow')
    let entered = false
    void places.enter('slow').then(() => (entered = true))
    await places.enter('quick')
    expect(entered).toBe(false)
  })

  it('are waited for no longer than the client does', async () => {
    const timers = manualAfter()
    const places = new ConversionSlots({ most: 2, waiting: 1, patience: 1000 }, timers.after)
    const leave = await places.enter('a')
    const gone: (() => void)[] = []
    const left = places.enter('a', (listener) => gone.push(listener))
    gone[0]?.()
    await expect(left).rejects.toMatchObject({ code: 'client_gone' })
    expect(timers.delays()).toEqual([])
    const next = places.enter('a')
    leave()
    ;(await next)()
  })

  it('are waited for so long and no longer', async () => {
    const timers = manualAfter()
    const places = new ConversionSlots({ most: 2, waiting: 2, patience: 1000 }, timers.after)
    const leave = await places.enter('a')
    const late = expect(places.enter('a')).rejects.toEqual(busy)
    expect(timers.delays()).toEqual([1000])
    await timers.fire()
    await late
    leave()
    ;(await places.enter('a'))()
  })
})
