import { describe, expect, it } from 'vitest'
import { MetricCounts } from '../../../../src/watch/metrics/metric-counts.ts'

describe('counts', () => {
  it('hands over what was counted since the last time, and nothing twice', () => {
    const counts = new MetricCounts(8)
    counts.add(5)
    counts.add(5)
    counts.add(2, 3)
    expect(counts.take()).toEqual({ cells: [5, 2], amounts: [2, 3] })
    expect(counts.take()).toEqual({ cells: [], amounts: [] })
  })

  it('counts up and down, through nothing and back', () => {
    const counts = new MetricCounts(8)
    counts.add(1, 1)
    counts.add(1, -1)
    counts.add(1, 1)
    counts.add(3, 1)
    counts.add(3, -1)
    expect(counts.take()).toEqual({ cells: [1], amounts: [1] })
    counts.add(1, -1)
    expect(counts.take()).toEqual({ cells: [1], amounts: [-1] })
  })
})
