import { describe, expect, it } from 'vitest'
import {
  budget,
  outsideBudgets,
  waitInBudget,
  withStartBudget,
  withStoreBudget,
} from '../../../src/base/kernel/store-budget.ts'

const NEVER = new Promise<string>(() => undefined)

describe('T5.5 the time budget of a request', () => {
  it('is charged while the request waits for work that others share, and ends the wait', async () => {
    await withStoreBudget(async () => {
      expect(await waitInBudget(NEVER, () => 'late')).toBe('late')
      // A timer of Node counts whole milliseconds, so it may end a part of one early.
      expect(budget()?.left()).toBeLessThan(1)
    }, 20)
  })

  it('tells the reason where the wait has failed', async () => {
    const late = (): never => {
      throw new Error('too late')
    }
    await expect(withStoreBudget(() => waitInBudget(NEVER, late), 20)).rejects.toThrow('too late')
    await expect(waitInBudget(NEVER, late, 20)).rejects.toThrow('too late')
  })

  it('changes nothing about work that ends in time, or that no request waits for', async () => {
    const done = Promise.resolve('done')
    expect(await withStoreBudget(() => waitInBudget(done, () => 'late'))).toBe('done')
    expect(await waitInBudget(done, () => 'late')).toBe('done')
  })

  it('does not hold for work that many callers share', async () => {
    await withStoreBudget(async () => {
      await outsideBudgets(async () => {
        await Promise.resolve()
        expect(budget()).toBeUndefined()
      })
      expect(budget()?.left()).toBeGreaterThan(0)
    })
  })

  it('has no end while a process starts, and none afterwards', async () => {
    const started = await withStartBudget(() => {
      const own = budget()
      own?.spend()
      expect(own?.left()).toBe(5000)
      return Promise.resolve(own)
    })
    expect(started?.left()).toBeUndefined()
  })
})
