import { describe, expect, it } from 'vitest'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { type IncomingBody, SlowBodies } from '../../../src/gateway/server/request-body.ts'

function start() {
  let time = 0
  const bodies = new SlowBodies({ request: 8000, bodyRate: 1024 }, { now: () => 0, monotonic: () => time })
  const broken: Fault[] = []
  const body = { received: 0, heldUp: false, isLost: false, break: (fault: Fault) => broken.push(fault) }
  bodies.add(body as unknown as IncomingBody)
  const sweepAt = (ms: number): number => {
    time = ms
    bodies.sweep()
    return broken.length
  }
  return { bodies, body, broken, sweepAt }
}

describe('T5.3 slow bodies', () => {
  it('T5.3 are broken once their time is over and they came too slowly', () => {
    const { body, broken, sweepAt } = start()
    body.received = 8000
    expect(sweepAt(7999)).toBe(0)
    expect(sweepAt(8000)).toBe(1)
    expect(broken[0]?.code).toBe('request_timeout')
  })

  it('T5.3 may take as long as they keep up with the rate', () => {
    const { body, sweepAt } = start()
    body.received = 1024 * 60
    expect(sweepAt(60_000)).toBe(0)
    expect(sweepAt(61_000)).toBe(1)
  })

  it('T5.1 whose client is gone are broken at once', () => {
    const { body, broken, sweepAt } = start()
    body.isLost = true
    expect(sweepAt(1)).toBe(1)
    expect(broken[0]?.code).toBe('client_gone')
  })

  it('T5.3 are excused while it is we who hold them up, and forgotten when they end', () => {
    const { bodies, body, sweepAt } = start()
    body.heldUp = true
    expect(sweepAt(60_000)).toBe(0)
    body.heldUp = false
    bodies.delete(body as unknown as IncomingBody)
    expect(sweepAt(60_000)).toBe(0)
  })
})
