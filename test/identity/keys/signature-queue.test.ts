import { describe, expect, it } from 'vitest'
import { SignatureQueue } from '../../../src/identity/keys/verify/signature-queue.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { settled } from '../../support/settled.ts'

/** A queue whose time and turns a test moves. Each check takes 0.4 ms. */
function queueByHand() {
  let now = 0
  const turns: (() => void)[] = []
  const queue = new SignatureQueue(
    () => now,
    (work) => turns.push(work),
  )
  const checked: number[] = []
  const check = (id: number, caller?: { gone?: boolean }): boolean | Promise<boolean> =>
    queue.quick(() => {
      now += 0.4
      checked.push(id)
      return id % 2 === 0
    }, caller)
  const turn = async (): Promise<void> => {
    turns.shift()?.()
    await settled()
  }
  return { queue, turns, checked, check, turn }
}

const codeOf = (work: () => unknown): string => {
  try {
    work()
    return 'none'
  } catch (thrown) {
    return thrown instanceof Fault ? thrown.code : String(thrown)
  }
}

describe('C4.15 T5.19 signatures that a thread checks', () => {
  it('C4.15 are checked at once as long as those of one turn took less than a millisecond', async () => {
    const { turns, checked, check, turn } = queueByHand()
    const results = [1, 2, 3, 4, 5, 6, 7].map((id) => check(id))
    expect(results.slice(0, 3)).toEqual([false, true, false])
    expect([checked, turns.length]).toEqual([[1, 2, 3], 1])
    await turn()
    expect([checked, turns.length]).toEqual([[1, 2, 3, 4, 5, 6], 1])
    await turn()
    expect(await Promise.all(results.map((each) => Promise.resolve(each)))).toEqual([
      false,
      true,
      false,
      true,
      false,
      true,
      false,
    ])
    await turn()
    expect([checked.length, turns.length]).toEqual([7, 0])
    expect(check(8)).toBe(true)
  })

  it('C4.15 are checked in the order in which they came: none passes those that wait', async () => {
    const { checked, check, turn } = queueByHand()
    for (const id of [1, 2, 3, 4, 5, 6, 7]) void check(id)
    await turn()
    void check(8)
    expect(checked).toEqual([1, 2, 3, 4, 5, 6])
    await turn()
    expect(checked).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('C4.15 wait 5,000 at a time: for one more the answer is 503, until there is room', async () => {
    const { queue, check, turn } = queueByHand()
    for (let id = 0; id < 5_003; id += 1) void check(id)
    expect(queue.waiting).toBe(5_000)
    expect(codeOf(() => check(6_000))).toBe('token_judge_unavailable')
    await turn()
    expect(queue.waiting).toBe(4_997)
    expect(check(6_001)).toBeInstanceOf(Promise)
  })

  it('C4.15 are not checked for clients that left meanwhile', async () => {
    const { checked, check, turn } = queueByHand()
    for (const id of [1, 2, 3]) void check(id)
    const callers = Array.from({ length: 100 }, () => ({ gone: false }))
    const left = Promise.allSettled(callers.map((caller, at) => Promise.resolve(check(100 + at, caller))))
    const last = check(8)
    for (const caller of callers) caller.gone = true
    await turn()
    expect(checked).toEqual([1, 2, 3, 8])
    expect(await last).toBe(true)
    for (const result of await left)
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { code: 'client_gone' },
      })
  })
})

describe('C4.15 signatures that take long', () => {
  function slowByHand() {
    const queue = new SignatureQueue()
    const ends: ((genuine: boolean) => void)[] = []
    const check = (caller?: { gone?: boolean }) =>
      queue.slow(() => new Promise((resolve) => ends.push(resolve)), caller)
    return { queue, ends, check }
  }

  it('C4.15 are checked four at a time, in their order, and hold up no quick one', async () => {
    const { queue, ends, check } = slowByHand()
    const results = Array.from({ length: 6 }, () => check())
    expect([ends.length, queue.waiting]).toEqual([4, 2])
    expect(queue.quick(() => true, undefined)).toBe(true)
    ends[1]?.(true)
    expect(await results[1]).toBe(true)
    expect([ends.length, queue.waiting]).toEqual([5, 1])
    for (const end of ends) end(false)
    await settled()
    ends[5]?.(true)
    expect(await Promise.all(results.map((each) => Promise.resolve(each)))).toEqual([
      false,
      true,
      false,
      false,
      false,
      true,
    ])
  })

  it('C4.15 wait 1,000 at a time, and for nobody who has left', async () => {
    const { queue, ends, check } = slowByHand()
    const caller = { gone: false }
    const results = Array.from({ length: 1_004 }, () => check(caller))
    expect(queue.waiting).toBe(1_000)
    expect(codeOf(() => check())).toBe('token_judge_unavailable')
    caller.gone = true
    for (const end of ends) end(true)
    const settledResults = await Promise.allSettled(results.map((each) => Promise.resolve(each)))
    expect(settledResults.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
    expect([ends.length, queue.waiting]).toEqual([4, 0])
  })
})
