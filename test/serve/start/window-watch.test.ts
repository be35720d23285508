/** Planned maintenance that begins and ends by the clock, as it is recorded (C9.1, C12.3). */
import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import type { KeptSwitch } from '../../../src/gateway/maintenance/records.ts'
import { WindowWatch } from '../../../src/serve/start/service-events.ts'
import { movableClock } from '../../support/movable-clock.ts'

const NOW = Date.UTC(2026, 0, 15)

function watching() {
  const clock = movableClock(NOW)
  const switches: KeptSwitch[] = []
  const events: string[] = []
  const audit = { note: ({ event }: AuditEntry) => void events.push(event) }
  const watch = new WindowWatch({ switches: () => switches, audit, clock })
  const set = (window: Pick<KeptSwitch, 'from' | 'until'> & { readonly setAt?: number }): void =>
    void switches.push({
      id: 'one',
      source: 'operator',
      scope: { kind: 'service' },
      setAt: clock.now(),
      ...window,
    })
  const after = (ms: number): readonly string[] => {
    clock.advance(ms)
    watch.look()
    return events
  }
  return { set, after, forget: () => void switches.splice(0) }
}

describe('C12.3 a planned window', () => {
  it('C12.3 is told when it begins and when it ends, once', () => {
    const { set, after } = watching()
    set({ from: NOW + 5000, until: NOW + 9000 })
    expect(after(1000)).toEqual([])
    expect(after(5000)).toEqual(['maintenance.began'])
    expect(after(1000)).toEqual(['maintenance.began'])
    expect(after(3000)).toEqual(['maintenance.began', 'maintenance.ended'])
  })

  it('C12.3 is told though nobody looked between the order and the beginning', () => {
    const { set, after } = watching()
    set({ from: NOW + 500, until: NOW + 9000 })
    expect(after(1000)).toEqual(['maintenance.began'])
    expect(after(9000)).toEqual(['maintenance.began', 'maintenance.ended'])
  })

  it('C12.3 is not told of what an operator switches on at once', () => {
    const { set, after } = watching()
    set({ from: undefined, until: undefined })
    expect(after(1000)).toEqual([])
  })

  it('C12.3 is not told again of one that is missing from the list for a while', () => {
    const { set, after, forget } = watching()
    const window = { from: NOW + 500, until: NOW + 90_000 }
    set(window)
    expect(after(1000)).toEqual(['maintenance.began'])
    forget()
    expect(after(1000)).toEqual(['maintenance.began'])
    set({ ...window, setAt: NOW })
    expect(after(1000)).toEqual(['maintenance.began'])
  })
})
