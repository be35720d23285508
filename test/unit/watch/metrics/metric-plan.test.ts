import { describe, expect, it } from 'vitest'
import {
  holds,
  HISTOGRAM_CELLS,
  MetricPlan,
  seriesAt,
} from '../../../../src/watch/metrics/metric-counts.ts'
import { FAMILIES } from '../../../../src/watch/metrics/metric-families.ts'

const DOOR = { door: ['api', 'none'] }
const METHOD = { method: ['GET', 'POST', 'other'] }
const STATUS = { status: ['2xx', '4xx', '5xx', '1xx'] }

describe('counts plan', () => {
  it('C11.1 finds the series of every cell by the order in which they were planned', () => {
    const plan = new MetricPlan()
    plan.plan(FAMILIES.tokenCache, { outcome: ['hit', 'miss'] })
    const first = plan.plan(FAMILIES.requests, DOOR, METHOD, STATUS)
    const block = plan.blocks[1]!
    expect([first, block.at, block.count, plan.size]).toEqual([2, 2, 24, 26])
    const found = Array.from({ length: block.count }, (_, at) => seriesAt(block, first + at))
    const expected = [0, 1].flatMap((door) =>
      [0, 1, 2].flatMap((method) => [0, 1, 2, 3].map((status) => [door, method, status])),
    )
    expect(found).toEqual(expected)
    expect([1, 2, 25, 26].map((cell) => holds(block, cell))).toEqual([false, true, true, false])
  })

  it('C11.1 gives a histogram one series for all of its cells', () => {
    const plan = new MetricPlan()
    const areas = { door: ['none', 'api', 'api'], area: ['', 'fund-data', 'member-data'] }
    const first = plan.plan(FAMILIES.requestDuration, areas)
    const block = plan.blocks[0]!
    expect(plan.size).toBe(3 * HISTOGRAM_CELLS)
    expect(seriesAt(block, first + HISTOGRAM_CELLS - 1)).toEqual([0])
    expect(seriesAt(block, first + HISTOGRAM_CELLS)).toEqual([1])
    expect(seriesAt(block, first + 3 * HISTOGRAM_CELLS - 1)).toEqual([2])
  })

  it('C11.1 plans a family without labels as one series', () => {
    const plan = new MetricPlan()
    const cell = plan.plan(FAMILIES.logDropped)
    expect(plan.blocks[0]).toMatchObject({ at: cell, count: 1 })
    expect(seriesAt(plan.blocks[0]!, cell)).toEqual([])
  })
})
