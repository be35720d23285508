import { describe, expect, it } from 'vitest'
import type { OpenSharedRates } from '../../../src/base/contracts/calls/admission.ts'
import type { Exchange } from '../../../src/base/contracts/calls/exchange.ts'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { checkLoad, compileLoad } from '../../../src/gateway/limits/schema.ts'
import { TICK_MS } from '../../../src/gateway/limits/load-guard.ts'
import { RateUsageExchange } from '../../../src/gateway/limits/rate-usage-exchange.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import { fakeExchange } from '../../support/events.ts'
import { LOAD_DEFAULTS, makeGuard, type TestGuard } from '../../support/load.ts'
import { movableClock } from '../../support/movable-clock.ts'

const RATE = { requests: 10, per: 1000, burst: 20 }
const client = (id: string): Principal => ({ ...PRINCIPAL, client: id, clientKey: id })
const ACME = client('acme-books')

/** Exchanges that end when the test says so. */
function exchanges() {
  const ends: (() => void)[] = []
  const next = (): Exchange => fakeExchange({ onEnd: (listener) => void ends.push(listener) })
  return { next, endOne: () => ends.shift()?.() }
}

const clients = (over: object = {}) => ({ clients: { ...LOAD_DEFAULTS.clients, ...over } })

const letIn = ({ guard }: TestGuard, times: number, principal = ACME): number => {
  let count = 0
  for (let at = 0; at < times; at++)
    if (guard.admit(principal, fakeExchange())?.refusal === undefined) count += 1
  return count
}

describe('a preview', () => {
  it('C14.1 says what the next call would be answered, and counts nothing', () => {
    const { guard, clock } = makeGuard(clients({ rate: { requests: 3, per: 60_000 }, inFlight: 2 }))
    const { next, endOne } = exchanges()
    for (let at = 0; at < 6; at++) {
      if (at === 3) endOne()
      const { verdict, rate, inFlight } = guard.preview(ACME)
      expect(guard.preview(ACME)).toEqual({ verdict, rate, inFlight })
      const admitted = guard.admit(ACME, next())
      expect(verdict?.refusal?.code).toBe(admitted?.refusal?.code)
      expect(verdict?.headers).toEqual(admitted?.headers)
      expect(rate).toMatchObject({ requests: 3, per: 60, burst: 3, left: Math.max(0, 3 - at) })
      expect(inFlight.most).toBe(2)
    }
    clock.advance(20_000)
    expect(guard.preview(ACME).rate?.left).toBe(1)
  })

  it('C14.1 says whether a backend has room, and the client a share of it', () => {
    const { guard } = makeGuard({ backends: { inFlight: 2, byName: {} } })
    expect(guard.previewBackend('funds', 'acme-books')).toMatchObject({
      refusal: undefined,
      inFlight: { now: 0, most: 2 },
    })
    guard.occupy('funds', 'acme-books')
    const release = guard.occupy('funds', 'globex')
    expect(guard.previewBackend('funds', 'acme-books').refusal?.code).toBe('backend_busy')
    release()
    expect(guard.previewBackend('funds', 'acme-books')).toMatchObject({
      refusal: undefined,
      inFlight: { now: 1 },
    })
  })

  it('C14.1 says what an address would be answered', () => {
    const { guard } = makeGuard({ addresses: { rate: { requests: 1, per: 1000 } } })
    expect(guard.previewAddress('192.0.2.1')).toMatchObject({
      refusal: undefined,
      rate: { left: 1 },
      shed: 0,
    })
    expect(guard.refuse('192.0.2.1')).toBeUndefined()
    expect(guard.previewAddress('192.0.2.1')).toMatchObject({
      refusal: { code: 'address_rate_limited' },
      rate: { left: 0 },
    })
    expect(guard.previewAddress('192.0.2.2').refusal).toBeUndefined()
  })
})

describe('clients', () => {
  it('C4.5 tells nothing where no rate applies', () => {
    const { guard } = makeGuard()
    expect(guard.admit(ACME, fakeExchange())).toBeUndefined()
  })

  it('C4.5 refuses what is over the rate, and tells when to come back', () => {
    const { guard, clock } = makeGuard(clients({ rate: RATE }))
    for (let at = 0; at < 20; at++) expect(guard.admit(ACME, fakeExchange())?.refusal).toBeUndefined()
    const refused = guard.admit(ACME, fakeExchange())
    expect(refused).toMatchObject({
      headers: { RateLimit: '"client";r=0;t=1', 'RateLimit-Policy': '"client";q=10;w=1' },
      refusal: { code: 'rate_limited', facts: { retryAfter: 0.1 } },
    })
    clock.advance(100)
    expect(guard.admit(ACME, fakeExchange())?.refusal).toBeUndefined()
  })

  it('C4.5 gives a client the rate of its own', () => {
    const small = { requests: 1, per: 1000 }
    const world = makeGuard(clients({ rate: RATE, byId: { globex: { rate: small }, 'acme-books': {} } }))
    expect(letIn(world, 50, client('globex'))).toBe(1)
    expect(letIn(world, 50)).toBe(20)
    expect(letIn(world, 50, client('another'))).toBe(20)
  })

  it('C4.5 refuses a call over the cap on those in flight, and lets one in for each that ended', () => {
    const { guard } = makeGuard(clients({ inFlight: 2 }))
    const { next, endOne } = exchanges()
    for (let at = 0; at < 2; at++) expect(guard.admit(ACME, next())).toBeUndefined()
    for (let at = 0; at < 3; at++)
      expect(guard.admit(ACME, next())?.refusal).toMatchObject({
        code: 'too_many_calls',
        facts: { retryAfter: 1 },
      })
    expect(guard.admit(client('globex'), next())).toBeUndefined()
    endOne()
    expect(guard.admit(ACME, next())).toBeUndefined()
    expect(guard.admit(ACME, next())?.refusal?.code).toBe('too_many_calls')
  })

  it('takes other limits at a reload, and keeps what was counted', () => {
    const world = makeGuard(clients({ rate: RATE }))
    expect(letIn(world, 50)).toBe(20)
    world.guard.configure(
      compileLoad({ ...LOAD_DEFAULTS, ...clients({ rate: { ...RATE, requests: 1000 } }) }),
    )
    expect(letIn(world, 50)).toBe(0)
    world.clock.advance(10)
    expect(letIn(world, 50)).toBe(10)
  })
})

describe('backends', () => {
  it('T5.4 refuses a call over the cap on those in flight to a backend, whatever others have', () => {
    const { guard } = makeGuard({ backends: { inFlight: 50, byName: { hung: 2 } } })
    const first = guard.occupy('hung')
    guard.occupy('hung')
    expect(() => guard.occupy('hung')).toThrow(
      expect.objectContaining({ code: 'backend_busy', facts: expect.objectContaining({ retryAfter: 1 }) }),
    )
    expect(() => guard.occupy('well')).not.toThrow()
    first()
    first() // giving back twice gives back once
    guard.occupy('hung')
    expect(() => guard.occupy('hung')).toThrow(expect.objectContaining({ code: 'backend_busy' }))
  })
})

describe('a client’s places', () => {
  const hold = ({ guard }: TestGuard, backend: string, client: string | undefined, times: number) => {
    const held = []
    for (let at = 0; at < times; at++) held.push(guard.occupy(backend, client))
    return held
  }
  const BUSY = expect.objectContaining({
    code: 'too_many_backend_calls',
    facts: expect.objectContaining({ retryAfter: 1 }),
  })

  it('T5.4 C4.5 one of several backends holds half of them at most, and gives each back once', () => {
    const world = makeGuard(clients({ inFlight: 5 }), { backends: 2 })
    const [first] = hold(world, 'hung', 'acme-books', 2)
    expect(() => world.guard.occupy('hung', 'acme-books')).toThrow(BUSY)
    hold(world, 'well', 'acme-books', 2)
    hold(world, 'hung', 'globex', 2)
    // Nobody vouches for these: they are no client's.
    hold(world, 'hung', undefined, 10)
    first?.()
    first?.()
    hold(world, 'hung', 'acme-books', 1)
    expect(() => world.guard.occupy('hung', 'acme-books')).toThrow(BUSY)
  })

  it('C4.5 an only backend may hold all of them; a cap of one is not halved', () => {
    hold(makeGuard(clients({ inFlight: 4 })), 'only', 'acme-books', 4)
    const world = makeGuard(clients({ inFlight: 1 }), { backends: 2 })
    hold(world, 'hung', 'acme-books', 1)
    expect(() => world.guard.occupy('hung', 'acme-books')).toThrow(BUSY)
  })

  it('C4.5 a client has half of the places of its own; a refused call takes none of the backend’s', () => {
    const world = makeGuard(
      {
        ...clients({ inFlight: 2, byId: { globex: { inFlight: 6 } } }),
        backends: { inFlight: 4, byName: {} },
      },
      { backends: 2 },
    )
    hold(world, 'hung', 'globex', 3)
    expect(() => world.guard.occupy('hung', 'globex')).toThrow(BUSY)
    hold(world, 'hung', 'acme-books', 1)
    expect(() => world.guard.occupy('hung', 'acme-books')).toThrow(
      expect.objectContaining({ code: 'backend_busy' }),
    )
  })
})

describe('addresses', () => {
  const world = () => makeGuard({ addresses: { rate: RATE } })
  const passed = ({ guard }: TestGuard, address: string): number => {
    let count = 0
    while (guard.refuse(address) === undefined) count += 1
    return count
  }

  it('C4.5 refuses an address over its rate, and no other', () => {
    const guarded = world()
    expect(passed(guarded, '192.0.2.1')).toBe(20)
    expect(guarded.guard.refuse('192.0.2.1')).toMatchObject({
      code: 'address_rate_limited',
      facts: { retryAfter: 0.1 },
    })
    expect(passed(guarded, '192.0.2.2')).toBe(20)
    guarded.clock.advance(100)
    expect(passed(guarded, '192.0.2.1')).toBe(1)
  })

  it('C4.5 counts an IPv6 network of 64 bits as one address', () => {
    const guarded = world()
    expect(passed(guarded, '2001:db8:1:2::1')).toBe(20)
    expect(passed(guarded, '2001:db8:1:2:ffff:ffff:ffff:ffff')).toBe(0)
    expect(passed(guarded, '2001:db8:1:3::1')).toBe(20)
  })
})

describe('load shedding', () => {
  it('T5.4 answers 503 while the event loop is late, and notes its beginning and end once', () => {
    const { guard, clock, notes } = makeGuard()
    const turn = (count: number, late: number): void => {
      for (let at = 0; at < count; at++) {
        clock.advance(TICK_MS + late)
        guard.tick()
      }
    }
    turn(10, 5)
    expect(guard.refuse('192.0.2.1')).toBeUndefined()
    turn(40, 400)
    expect(guard.refuse('192.0.2.1')).toMatchObject({ code: 'overloaded', facts: { retryAfter: 5 } })
    turn(1000, 0)
    expect(guard.refuse('192.0.2.1')).toBeUndefined()
    expect(notes).toEqual(['shedding_started', 'shedding_ended'])
  })
})

describe('rates over several workers', () => {
  /** Workers around a board, on one clock; `pass` lets so much time go by with all that is due in it. */
  function pool(size: number, load: Parameters<typeof makeGuard>[0]) {
    const clock = movableClock()
    const workers = Array.from({ length: size }, () => makeGuard(load, { workers: size, clock }))
    const board = new RateUsageExchange()
    const seats = workers.map(({ guard }) =>
      board.join((spending) => guard.applyRemoteUsage(structuredClone(spending))),
    )
    const pass = (ms: number): void => {
      for (let at = 0; at < ms; at += TICK_MS) {
        clock.advance(TICK_MS)
        workers.forEach(({ guard, told }, index) => {
          guard.tick()
          for (const spending of told.splice(0)) seats[index]?.report(structuredClone(spending))
        })
        if (at % 100 !== 0) board.tick()
      }
    }
    return { workers, seats, board, pass }
  }

  it('C4.5 let in, over a long time, no more than one worker would', () => {
    const { workers, pass } = pool(4, clients({ rate: RATE }))
    let total = 0
    for (let second = 0; second < 100; second += 0.1) {
      for (const worker of workers) total += letIn(worker, 5)
      pass(100)
    }
    expect(total).toBeGreaterThanOrEqual(20 + 950)
    expect(total).toBeLessThanOrEqual(4 * 20 + 1000 + 4)
  })

  it('C4.5 let in a burst once per worker at most, and have it paid back', () => {
    const { workers, pass } = pool(4, clients({ rate: RATE }))
    const together = (): number => workers.reduce((sum, worker) => sum + letIn(worker, 100), 0)
    expect(together()).toBe(80)
    pass(200)
    expect(together()).toBe(0)
    pass(5700) // 60 calls of debt are 6 seconds
    expect(together()).toBe(0)
    pass(300)
    expect(together()).toBeGreaterThan(0)
  })

  it('C4.5 let a client with one connection have its whole rate', () => {
    const { workers, pass } = pool(4, clients({ rate: RATE }))
    const [first] = workers
    let total = 0
    for (let second = 0; second < 20; second++) {
      total += first === undefined ? 0 : letIn(first, 50)
      pass(1000)
    }
    expect(total).toBe(20 + 19 * 10)
  })

  it('T5.8 tell of addresses only what takes more than its part', () => {
    const { workers, pass } = pool(2, { addresses: { rate: { requests: 40, per: 1000 } } })
    const [one, two] = workers
    for (let at = 0; at < 1000; at++) one?.guard.refuse(`198.51.${at >> 8}.${at & 255}`)
    for (let at = 0; at < 40; at++) one?.guard.refuse('192.0.2.1')
    pass(200)
    let passed = 0
    while (two?.guard.refuse('192.0.2.1') === undefined) passed += 1
    expect(passed).toBeLessThanOrEqual(8)
    expect(two.guard.refuse('198.51.1.1')).toBeUndefined()
  })

  it('share out the caps on calls in flight, rounded up', () => {
    const load = compileLoad(
      {
        ...LOAD_DEFAULTS,
        clients: { inFlight: 10, byId: { one: { inFlight: 1 } } },
        backends: { inFlight: 7, byName: { slow: 3 } },
      },
      4,
    )
    expect(load.clients.inFlight).toBe(3)
    expect(load.clientsById.get('one')?.inFlight).toBe(1)
    expect(load.backends).toBe(2)
    expect(load.backendsByName.get('slow')).toBe(1)
  })

  it('have a worker that left told of nothing more', () => {
    const { seats, board, workers } = pool(2, clients({ rate: RATE }))
    seats[1]?.leave()
    seats[0]?.report({ clients: { keys: ['acme-books'], counts: [20] }, addresses: { keys: [], counts: [] } })
    board.tick()
    expect(letIn(workers[1] as TestGuard, 50)).toBe(20)
  })
})

describe('C11.7.5 rates that nodes share', () => {
  it('C11.7.5 get the part of a burst from each configuration, and the number of processes', () => {
    const clients = { share: 0, take: () => 1, peek: () => 1, sweep: () => undefined }
    const exchange = { processes: 0, tick: () => undefined }
    const openRates: OpenSharedRates = ({ share }) => ({
      clients: Object.assign(clients, { share }),
      exchange,
    })
    const { guard } = makeGuard({ share: 0.2 }, { openRates })
    expect(clients.share).toBe(0.2)
    guard.configure(compileLoad({ ...LOAD_DEFAULTS, share: 0.3 }, 1, 1))
    guard.processes = 7
    expect([clients.share, exchange.processes]).toEqual([0.3, 7])
  })
})

describe('load configuration', () => {
  const problems = (load: object): readonly string[] => {
    const problems = new Problems()
    checkLoad({ ...LOAD_DEFAULTS, ...load }, problems, {
      backends: new Set(['sample']),
      issuers: undefined,
      keepsRates: true,
    })
    return problems.list.map(({ path }) => path.join('.'))
  }

  it('refuses a time that cannot be told to clients, and backends that are not there', () => {
    expect(problems(clients({ rate: { requests: 1, per: 500 } }))).toEqual(['load.clients.rate.per'])
    expect(problems(clients({ byId: { a: { rate: { requests: 1, per: 0 } } } }))).toEqual([
      'load.clients.byId.a.rate.per',
    ])
    expect(problems({ addresses: { rate: { requests: 1, per: 1500 } } })).toEqual(['load.addresses.rate.per'])
    expect(problems({ backends: { inFlight: 1, byName: { sampel: 1, sample: 1 } } })).toEqual([
      'load.backends.byName.sampel',
    ])
    expect(problems({})).toEqual([])
  })
})
