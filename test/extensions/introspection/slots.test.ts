import { describe, expect, it } from 'vitest'
import { Slots } from '../../../src/extensions/introspection/introspection.ts'
import { settled } from '../../support/settled.ts'

const open = new AbortController().signal

function queue(slots: Slots) {
  const entered: number[] = []
  const enter = (id: number, signal: AbortSignal = open): Promise<void> =>
    slots.enter(signal).then(() => void entered.push(id))
  return { entered, enter }
}

describe('C11.2 places for introspection', () => {
  it('C11.2 are given in the order in which they were asked for', async () => {
    const slots = new Slots(2, 10)
    const { entered, enter } = queue(slots)
    const all = [1, 2, 3, 4].map((id) => enter(id))
    await settled()
    expect(entered).toEqual([1, 2])
    slots.leave()
    slots.leave()
    await Promise.all(all)
    expect(entered).toEqual([1, 2, 3, 4])
    slots.leave()
    slots.leave()
    await enter(5)
  })

  it('C11.2 are not waited for by more than the limit, nor beyond the deadline', async () => {
    const slots = new Slots(1, 1)
    const { entered, enter } = queue(slots)
    await enter(1)
    const deadline = new AbortController()
    const late = enter(2, deadline.signal)
    await expect(enter(3)).rejects.toThrow('too many')
    deadline.abort(new Error('late'))
    await expect(late).rejects.toThrow('late')
    await expect(enter(4, deadline.signal)).rejects.toThrow('late')
    const next = enter(5)
    slots.leave()
    await next
    expect(entered).toEqual([1, 5])
  })
})
