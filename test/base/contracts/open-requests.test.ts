import { describe, expect, it } from 'vitest'
import { OpenRequests } from '../../../src/base/contracts/processes/open-requests.ts'
import { manualAfter } from '../../support/manual-after.ts'

function startOrders() {
  const clock = manualAfter()
  const sent: number[] = []
  const orders = new OpenRequests(clock.after)
  const give = (ms = 1000, arrives = true): Promise<unknown> =>
    orders.give(ms, (ask) => {
      sent.push(ask)
      return arrives
    })
  return { orders, give, sent, clock }
}

describe('T5.9 an order to a worker process', () => {
  it('ends with its answer, or with what the worker says went wrong', async () => {
    const { orders, give, sent, clock } = startOrders()
    const [good, bad] = [give(), give()]
    orders.done(sent[0]!, 'value')
    orders.failed(sent[1]!, new TypeError('it could not'))
    expect(await good).toBe('value')
    await expect(bad).rejects.toThrow(TypeError)
    expect(clock.delays()).toEqual([])
  })

  it('ends at its deadline, and an answer that comes later finds nobody', async () => {
    const { orders, give, sent, clock } = startOrders()
    const order = give(5000)
    void order.catch(() => undefined)
    expect(clock.delays()).toEqual([5000])
    await clock.fire()
    orders.done(sent[0]!, 'too late')
    await expect(order).rejects.toMatchObject({ name: 'WorkerRequestError', end: 'late' })
  })

  it('ends with the worker, and at once where the worker is gone already or cannot be sent to', async () => {
    const { orders, give, sent, clock } = startOrders()
    const unsent = give(1000, false)
    await expect(unsent).rejects.toMatchObject({ end: 'gone' })
    const open = [give(), give()]
    orders.end()
    for (const order of open) await expect(order).rejects.toMatchObject({ end: 'gone' })
    await expect(give()).rejects.toMatchObject({ end: 'gone' })
    expect(sent).toHaveLength(3)
    expect(clock.delays()).toEqual([])
  })
})
