import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Tunnel, TunnelEnd } from '../../../src/base/contracts/calls/backend.ts'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { OpenTunnels } from '../../../src/gateway/decide/door.ts'
import { decide, Findings } from '../../../src/gateway/decide/pipeline.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import { exchangeOf, FUND_LIST, makeGateway, principalWith } from '../../support/gateway.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
})

/** Tunnels of this process, and which of them were closed. */
function opened() {
  const revoked = new Set<Principal>()
  const told: unknown[] = []
  const { runtime, clock } = makeGateway({ isRevoked: (principal) => revoked.has(principal) })
  const tunnels = new OpenTunnels(() => runtime)
  const closed: string[] = []
  const recorder = {
    ...runtime.recorder,
    tunnel: ({ backend, end, ms }: { backend: string; end: TunnelEnd | undefined; ms: number }) =>
      told.push([backend, end, ms]),
  }
  const open = (
    name: string,
    principal: Principal,
    endsWithToken = true,
  ): { end: (how: TunnelEnd) => void } => {
    const findings = new Findings()
    void decide(runtime, exchangeOf(FUND_LIST), findings, PRINCIPAL)
    findings.principal = principal
    const listeners: ((end: TunnelEnd) => void)[] = []
    const end = (how: TunnelEnd): void => {
      for (const listener of listeners) listener(how)
    }
    const tunnel: Tunnel = {
      endsWithToken,
      onEnd: (listener) => void listeners.push(listener),
      close: (why) => {
        closed.push(`${name} ${why}`)
        end('token')
      },
    }
    tunnels.add(tunnel, exchangeOf(FUND_LIST), findings, { ...runtime, recorder })
    return { end }
  }
  return { open, revoked, closed, told, clock }
}

describe('C4.16 open tunnels', () => {
  it('C4.16 each is closed within a quarter of a second of its own token being revoked', () => {
    const { open, revoked, closed } = opened()
    const principals = [principalWith(), principalWith(), principalWith()]
    for (const [index, principal] of principals.entries()) open(`t${index}`, principal)
    vi.advanceTimersByTime(250)
    expect(closed).toEqual([])
    for (const index of [1, 0, 2]) {
      revoked.add(principals[index]!)
      vi.advanceTimersByTime(250)
    }
    expect(closed).toEqual(['t1 token', 't0 token', 't2 token'])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('C4.16 one that is opened when all others have ended is watched too', () => {
    const { open, revoked, closed } = opened()
    open('first', principalWith()).end('closed')
    vi.advanceTimersByTime(250)
    expect(vi.getTimerCount()).toBe(0)
    const principal = principalWith()
    open('second', principal)
    revoked.add(principal)
    vi.advanceTimersByTime(250)
    expect(closed).toEqual(['second token'])
  })

  it('C4.16 one that is configured to outlive its token is not closed', () => {
    const { open, revoked, closed } = opened()
    const principal = principalWith()
    open('lasting', principal, false)
    revoked.add(principal)
    vi.advanceTimersByTime(1000)
    expect([closed, vi.getTimerCount()]).toEqual([[], 0])
  })

  it('each is told once when it is opened and once when it ends, with its duration', () => {
    const { open, told, clock } = opened()
    const { end } = open('one', principalWith())
    clock.advance(70)
    end('closed')
    expect(told).toEqual([
      ['funds', undefined, 0],
      ['funds', 'closed', 70],
    ])
  })
})
