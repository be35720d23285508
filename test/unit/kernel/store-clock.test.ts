import { describe, expect, it } from 'vitest'
import { ClockOffset, StoreClock } from '../../../src/kernel/store-clock.ts'
import { movableClock } from '../../support/movable-clock.ts'

/** A store whose clock is ahead of this machine by `ahead` milliseconds. */
function opened(ahead: number) {
  const machine = movableClock()
  const offset = new ClockOffset()
  const clock = new StoreClock(offset, machine)
  const read = (wayThere = 0, wayBack = 0, by = ahead): void => {
    const askedAt = machine.monotonic()
    machine.advance(wayThere)
    const storeNow = machine.now() + by
    machine.advance(wayBack)
    offset.read(storeNow, askedAt, machine.monotonic())
  }
  return { machine, offset, clock, read, error: () => clock.now() - machine.now() - ahead }
}

describe('C11.7.1 the clock of a store', () => {
  it('is that of this machine before the first reading', () => {
    const { clock, machine } = opened(5000)
    expect(clock.now()).toBe(machine.now())
    expect(clock.monotonic()).toBe(machine.monotonic())
  })

  it('is right to half of the way of a request, and goes on between readings', () => {
    const { machine, read, error } = opened(5000)
    read(80, 0)
    expect(Math.abs(error())).toBe(40)
    machine.advance(10_000)
    expect(Math.abs(error())).toBe(40)
  })

  it('is the median of eight readings, so that one slow answer moves it little', () => {
    const { read, error } = opened(-3000)
    for (let n = 0; n < 7; n += 1) read(1, 1)
    read(400, 0)
    expect(error()).toBe(0)
  })

  it('T3.13 is not moved by answers that lay in the socket while the process was paused', () => {
    const { machine, offset, read, error } = opened(0)
    read(1, 1)
    const [askedAt, storeNow] = [machine.monotonic(), machine.now()]
    machine.advance(60_000)
    for (let n = 0; n < 8; n += 1) offset.read(storeNow, askedAt, machine.monotonic())
    expect(error()).toBe(0)
  })

  it('does not move when the clock of this machine is set', () => {
    const { machine, clock, read } = opened(0)
    read()
    const before = clock.now()
    machine.step(25 * 3_600_000)
    expect(clock.now()).toBe(before)
  })

  it('follows at once when the clock of the store is set, as by a failover to another machine', () => {
    const { read, error } = opened(0)
    for (let n = 0; n < 8; n += 1) read(1, 1)
    read(1, 1, 5000)
    expect(error()).toBe(5000)
  })

  it('moves forward by a suspension until the next reading', () => {
    const { offset, clock, read, machine } = opened(0)
    read()
    offset.advance(60_000)
    expect(clock.now() - machine.now()).toBe(60_000)
    read()
    expect(clock.now() - machine.now()).toBe(0)
  })

  it('knows whether it was read within the last minute', () => {
    const { offset, machine, read } = opened(0)
    expect(offset.isFresh(machine.monotonic())).toBe(false)
    read()
    machine.advance(60_000)
    expect(offset.isFresh(machine.monotonic())).toBe(true)
    machine.advance(1)
    expect(offset.isFresh(machine.monotonic())).toBe(false)
  })
})
