import { describe, expect, it } from 'vitest'
import { Ledger } from '../../../../src/operations/metrics/metric-counts.ts'

describe('ledger', () => {
  it('hands over what was counted since the last time, and nothing twice', () => {
    const ledger = new Ledger(8)
    ledger.add(5)
    ledger.add(5)
    ledger.add(2, 3)
    expect(ledger.take()).toEqual({ cells: [5, 2], amounts: [2, 3] })
    expect(ledger.take()).toEqual({ cells: [], amounts: [] })
  })

  it('counts up and down, through nothing and back', () => {
    const ledger = new Ledger(8)
    ledger.add(1, 1)
    ledger.add(1, -1)
    ledger.add(1, 1)
    ledger.add(3, 1)
    ledger.add(3, -1)
    expect(ledger.take()).toEqual({ cells: [1], amounts: [1] })
    ledger.add(1, -1)
    expect(ledger.take()).toEqual({ cells: [1], amounts: [-1] })
  })
})
