import { describe, expect, it } from 'vitest'
import { Buckets, compileRate } from '../../../src/gateway/limits/buckets.ts'
import { BudgetExchange, LeasedBuckets } from '../../../src/extensions/postgres/leased-buckets.ts'
import { MemoryBudgets } from './support/memory-budgets.ts'
import { movableClock } from '../../support/movable-clock.ts'

const TICK = 20

/** Processes of several nodes on one store. */
function nodes(count: number, share = 0.1) {
  const clock = movableClock()
  const now = (): number => clock.monotonic()
  const budgets = new MemoryBudgets(now)
  const all = Array.from({ length: count }, () => {
    const clients = new LeasedBuckets(50_000, share)
    const addresses = new Buckets(50_000, true)
    const exchange = new BudgetExchange(budgets, clients, addresses, now)
    exchange.processes = count
    return { clients, addresses, exchange }
  })
  /** A tick of all processes, whose requests are answered before the next one. */
  const tick = async (): Promise<void> => {
    clock.advance(TICK)
    for (const { exchange } of all) exchange.tick()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { all, budgets, clock, now, tick }
}

const RATE = compileRate({ requests: 100, per: 1000 })

/** How many calls are let in within `ms`, if `each` calls of every key come to each process in a tick. */
async function allowed(
  world: ReturnType<typeof nodes>,
  { ms, each, keys = 1, rate = RATE }: { ms: number; each: number; keys?: number; rate?: typeof RATE },
): Promise<number[]> {
  const passed = world.all.map(() => 0)
  for (let at = 0; at < ms; at += TICK) {
    for (const [index, { clients }] of world.all.entries())
      for (let key = 0; key < keys; key += 1)
        for (let n = 0; n < each; n += 1)
          if (clients.take(`k${key}`, rate, world.now()) >= 0) passed[index]! += 1
    await world.tick()
  }
  return passed
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0)

describe('C11.7.5 a rate that several nodes share', () => {
  it.each([10, 20])(
    'lets in no more than 15 % too much at %i times the rate, on four nodes',
    async (times) => {
      const world = nodes(4)
      const seconds = 8
      const each = (times * 100 * TICK) / 1000 / 4
      const passed = sum(await allowed(world, { ms: seconds * 1000, each }))
      const right = RATE.burst + 100 * seconds
      expect(passed).toBeLessThanOrEqual(right * 1.15)
      expect(passed).toBeGreaterThan(right * 0.9)
    },
  )

  it('is shared about equally by nodes that are called equally', async () => {
    const passed = await allowed(nodes(4), { ms: 8000, each: 5 })
    // When a node asks for its part is spread at random.
    expect(Math.min(...passed) / Math.max(...passed)).toBeGreaterThan(0.15)
  })

  it('refuses nobody who stays below it, however the calls are spread', async () => {
    const world = nodes(4)
    let refused = 0
    for (let at = 0; at < 20_000; at += TICK) {
      // 90 calls in a second, each at another node.
      if (at % 100 !== 0)
        for (const { clients } of [world.all[(at / TICK) % 4]!])
          if (clients.take('k', RATE, world.now()) < 0) refused += 1
      await world.tick()
    }
    expect(refused).toBe(0)
  })

  it('tells who is refused when the next call may be made', async () => {
    const world = nodes(2)
    await allowed(world, { ms: 2000, each: 50 })
    const left = world.all.map(({ clients }) => clients.take('k0', RATE, world.now()))
    expect(Math.min(...left)).toBeLessThan(0)
    expect(Math.min(...left)).toBeGreaterThan(-1000)
  })

  it('costs four requests a second of each process for any number of keys, and none for idle ones', async () => {
    const world = nodes(1)
    await allowed(world, { ms: 4000, each: 1, keys: 200, rate: compileRate({ requests: 1000, per: 1000 }) })
    expect(world.budgets.requests).toBeLessThan(4 * 50)
    for (let n = 0; n < 200; n += 1) {
      world.all[0]!.clients.sweep(500, world.now())
      await world.tick()
    }
    const idle = world.budgets.requests
    for (let n = 0; n < 100; n += 1) await world.tick()
    expect(world.budgets.requests).toBe(idle)
  })

  it('gives back what an idle node holds', async () => {
    const world = nodes(1)
    await allowed(world, { ms: 500, each: 1 })
    for (let n = 0; n < 100; n += 1) {
      world.all[0]!.clients.sweep(500, world.now())
      await world.tick()
    }
    expect(world.budgets.level('c:k0')).toBeGreaterThan(RATE.burst - 5)
  })

  it('gives nothing back a second time when the answer to that was lost', () => {
    const leases = new LeasedBuckets(50_000, 0.1)
    leases.take('k', RATE, 0)
    leases.settle(
      leases.uses(0).map(({ key }) => ({ key, granted: 40, level: 50 })),
      0,
    )
    leases.sweep(10, 2000)
    const uses = leases.uses(2000)
    expect(uses).toMatchObject([{ key: 'k', spent: -40 }])
    leases.failed(uses, 2000)
    leases.take('k', RATE, 2000)
    for (const { spent } of leases.uses(2250)) expect(spent).toBeGreaterThanOrEqual(0)
  })

  it('tells no key a second time whose part of a large exchange was taken', async () => {
    const world = nodes(1)
    const told = new Map<string, number>()
    const sizes: number[] = []
    const exchange = world.budgets.exchange.bind(world.budgets)
    world.budgets.exchange = async (who, number, asked) => {
      sizes.push(asked.length)
      // The second one fails, and the third one takes one half.
      world.budgets.isAway = sizes.length === 2
      const reports = sizes.length === 3 ? asked.slice(0, asked.length / 2) : asked
      const grants = await exchange(who, number, reports)
      for (const { key, spent } of reports) told.set(key, (told.get(key) ?? 0) + Math.max(0, spent))
      return grants
    }
    for (let key = 0; key < 1200; key += 1) world.all[0]!.clients.take(`k${key}`, RATE, world.now())
    for (let at = 0; at < 1000; at += TICK) await world.tick()
    expect(sizes.slice(0, 4)).toEqual([500, 500, 500, 200])
    expect(sizes[4]).toBe(250)
    expect([told.size, ...new Set(told.values())]).toEqual([1200, 1])
  })

  it('goes on at each node with its part of the rate while the store is out of reach', async () => {
    const world = nodes(4)
    await allowed(world, { ms: 2000, each: 20 })
    world.budgets.isAway = true
    await allowed(world, { ms: 1000, each: 20 })
    const passed = sum(await allowed(world, { ms: 10_000, each: 20 }))
    expect(passed).toBeGreaterThan(900)
    expect(passed).toBeLessThanOrEqual(1150)
    world.budgets.isAway = false
    await allowed(world, { ms: 2000, each: 20 })
    const after = sum(await allowed(world, { ms: 5000, each: 20 }))
    expect(after).toBeGreaterThan(400)
    expect(after).toBeLessThanOrEqual(575)
  })

  it('counts addresses at each node, and tells those that call much', async () => {
    const world = nodes(2)
    const rate = compileRate({ requests: 10, per: 1000 })
    let passed = 0
    for (let at = 0; at < 5000; at += TICK) {
      for (const { addresses } of world.all)
        if (addresses.take('198.51.100.7', rate, world.now()) >= 0) passed += 1
      world.all[0]!.addresses.take(`192.0.2.${at % 250}`, rate, world.now())
      await world.tick()
    }
    expect(world.budgets.level('a:198.51.100.7')).toBeLessThan(10)
    expect(world.budgets.level('a:192.0.2.0')).toBeNaN()
    // Two nodes that told each other nothing would let in 120.
    expect(passed).toBeLessThan(90)
  })

  it('answers a peek without taking anything', () => {
    const { all, now } = nodes(1)
    const { clients } = all[0]!
    expect(clients.peek('k', RATE, now())).toBe(99)
    expect(clients.size).toBe(0)
    clients.take('k', RATE, now())
    const left = clients.peek('k', RATE, now())
    expect(clients.peek('k', RATE, now())).toBe(left)
  })
})
