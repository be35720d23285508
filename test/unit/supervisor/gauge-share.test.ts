import { describe, expect, it } from 'vitest'
import { Exposition } from '../../../src/operations/metrics/exposition.ts'
import {
  type Delta,
  MetricCounts,
  MetricPlan,
  type Plan,
} from '../../../src/operations/metrics/metric-counts.ts'
import { FAMILIES } from '../../../src/operations/metrics/metric-families.ts'
import { GaugeShare } from '../../../src/supervisor/worker-handle.ts'

/** A process that counts what is open and what has ended, by the backends of its configuration. */
function counting(...backends: readonly string[]) {
  const plan = new MetricPlan()
  const ended = plan.plan(FAMILIES.tunnelsEnded, { backend: backends }, { end: ['closed'] })
  const open = plan.plan(FAMILIES.tunnelsOpen, { backend: backends })
  const ledger = new MetricCounts(plan.size)
  return {
    plan: plan.blocks,
    open: (backend: string, amount: number) => ledger.add(open + backends.indexOf(backend), amount),
    end: (backend: string) => ledger.add(ended + backends.indexOf(backend)),
    take: () => ledger.take(),
  }
}

const ledgerOf = () => {
  const exposition = new Exposition({ version: '1', node: 'v0' })
  const share = new GaugeShare()
  return {
    share,
    count: (plan: Plan, delta: Delta) => {
      exposition.absorb(plan, delta)
      share.follow(plan)
      share.add(delta)
    },
    takeBack: () => {
      const counted = share.takeBack()
      if (counted) exposition.absorb(counted.plan, counted.delta)
      return counted !== undefined
    },
    shown: async (name: string) =>
      (await exposition.text()).split('\n').filter((line) => line.startsWith(name)),
  }
}

describe('C11.1 the part of a process that has ended', () => {
  it('C11.1 is taken out of gauges, and stays in counters', async () => {
    const { count, takeBack, shown } = ledgerOf()
    const other = counting('a', 'b')
    const killed = counting('a', 'b')
    other.open('a', 2)
    killed.open('a', 3)
    killed.open('b', 1)
    killed.end('a')
    count(killed.plan, killed.take())
    expect(takeBack()).toBe(true)
    expect(await shown('postern_tunnels_open')).toEqual([
      'postern_tunnels_open{backend="a"} 0',
      'postern_tunnels_open{backend="b"} 0',
    ])
    count(other.plan, other.take())
    expect(await shown('postern_tunnels_open{backend="a"}')).toEqual(['postern_tunnels_open{backend="a"} 2'])
    expect(await shown('postern_tunnels_ended_total')).toEqual([
      'postern_tunnels_ended_total{backend="a",end="closed"} 1',
    ])
  })

  it('C11.1 is what is left of it over all its configurations', async () => {
    const { count, takeBack, shown } = ledgerOf()
    const before = counting('a', 'b')
    before.open('a', 2)
    count(before.plan, before.take())
    const after = counting('c', 'a')
    after.open('a', -1)
    after.open('c', 1)
    count(after.plan, after.take())
    expect(await shown('postern_tunnels_open{backend="a"}')).toEqual(['postern_tunnels_open{backend="a"} 1'])
    expect(takeBack()).toBe(true)
    expect(await shown('postern_tunnels_open')).toEqual([
      'postern_tunnels_open{backend="a"} 0',
      'postern_tunnels_open{backend="b"} 0',
      'postern_tunnels_open{backend="c"} 0',
    ])
  })

  it('C11.1 is nothing where all that was opened was closed, and is taken back once', () => {
    const { count, takeBack } = ledgerOf()
    const process = counting('a')
    process.open('a', 1)
    count(process.plan, process.take())
    process.open('a', -1)
    count(process.plan, process.take())
    expect(takeBack()).toBe(false)
    process.open('a', 5)
    count(process.plan, process.take())
    expect([takeBack(), takeBack()]).toEqual([true, false])
  })
})
