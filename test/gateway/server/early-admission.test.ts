import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Exchange } from '../../../src/base/contracts/calls/exchange.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { eventually } from '../../support/eventually.ts'
import { openRaw, sendRaw } from '../../support/raw-http.ts'
import { startListener } from '../../support/listener.ts'

const GET = 'GET /api/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

/** A listener whose door counts how often each exchange ended, and answers when told to. */
async function watchEnds() {
  const ends: number[] = []
  const held: { exchange: Exchange; answer: () => void }[] = []
  const { port } = await startListener(async (exchange) => {
    const place = ends.push(0) - 1
    exchange.onEnd(() => {
      ends[place] = (ends[place] ?? 0) + 1
    })
    await new Promise<void>((resolve) => held.push({ exchange, answer: resolve }))
    return { status: 200, headers: {}, body: 'done' }
  })
  const waiting = (count: number) => eventually(() => expect(held).toHaveLength(count))
  return { port, ends, held, waiting }
}

describe('the end of an exchange', () => {
  it('C4.5 is told once, when the answer was sent', async () => {
    const { port, ends, held, waiting } = await watchEnds()
    const connection = await openRaw(port)
    connection.send(GET + GET)
    await waiting(1)
    expect(ends).toEqual([0])
    held[0]!.answer()
    await waiting(2)
    await eventually(() => expect(ends).toEqual([1, 0]))
    held[1]!.answer()
    await connection.response()
    await connection.response()
    await eventually(() => expect(ends).toEqual([1, 1]))
    connection.destroy()
    await turn()
    expect(ends).toEqual([1, 1])
  })

  it('C4.5 is told once, when the client has left, and to whoever asks after that', async () => {
    const { port, ends, held, waiting } = await watchEnds()
    const connection = await openRaw(port)
    connection.send(GET)
    await waiting(1)
    connection.destroy()
    await eventually(() => expect(ends).toEqual([1]))
    const late = vi.fn()
    held[0]!.exchange.onEnd(late)
    held[0]!.answer()
    await eventually(() => expect(late).toHaveBeenCalledTimes(1))
    expect(ends).toEqual([1])
  })
})

describe('early admission', () => {
  it('C4.5 is asked for every request by its address, and its refusal is the door’s to tell', async () => {
    const asked: string[] = []
    const fault = new Fault('address_rate_limited')
    const { port, seen } = await startListener(undefined, {
      earlyAdmission: {
        refuse: (address) => {
          asked.push(address)
          return asked.length > 1 ? fault : undefined
        },
      },
    })
    await sendRaw(port, GET)
    await sendRaw(port, GET)
    expect(asked).toEqual(['127.0.0.1', '127.0.0.1'])
    expect(seen.map(({ refusal }) => refusal)).toEqual([undefined, fault])
  })
})
