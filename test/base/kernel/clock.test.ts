import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { after, timerMs } from '../../../src/base/kernel/clock.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('waits as long as a timer can be set for where it is told to wait longer', () => {
  const worked: string[] = []
  after(2 ** 31, () => worked.push('too soon'))
  vi.advanceTimersByTime(60_000)
  expect(worked).toEqual([])
})

it('sets timers of node for no more than they can be set for', () => {
  expect(timerMs(2 ** 31)).toBe(2 ** 31 - 1)
  expect(timerMs(1500)).toBe(1500)
})
