import { describe, expect, it } from 'vitest'
import { ClockOffset, StoreClock, TrustedOffset } from '../../../src/base/kernel/store-clock.ts'
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
})

/** The same, of a clock that is doubted when it jumps. */
function trusted() {
  const machine = movableClock()
  const told: (number | undefined)[] = []
  const offset = new TrustedOffset((doubt) => told.push(doubt))
  const clock = new StoreClock(offset, machine)
  const read = (by: number): void => {
    const askedAt = machine.monotonic()
    machine.advance(2)
    offset.read(machine.now() - 1 + by, askedAt, machine.monotonic())
  }
  return { machine, offset, told, read, ahead: () => clock.now() - machine.now() }
}

const DAY = 24 * 3_600_000

describe('C11.7.1 the clock of a store that is doubted', () => {
  it('is followed by up to a minute, and doubted when it jumps further, until it is back', () => {
    const { read, ahead, offset, told } = trusted()
    for (const by of [0, 60_000, 0]) {
      read(by)
      expect([ahead(), offset.doubt]).toEqual([by, undefined])
    }
    for (const by of [DAY, 40 * DAY, -DAY]) {
      read(by)
      expect([ahead(), offset.doubt]).toEqual([0, by])
    }
    read(5)
    expect([ahead(), offset.doubt]).toEqual([5, undefined])
    expect(told).toEqual([DAY, undefined])
  })

  it('is not doubted after a suspension of this machine', () => {
    const { read, ahead, offset, machine } = trusted()
    read(0)
    // The wall clock goes on, the monotonic one does not.
    machine.step(DAY)
    read(0)
    expect(offset.doubt).toBe(DAY)
    offset.advance(DAY)
    read(0)
    expect([ahead(), offset.doubt]).toEqual([0, undefined])
  })

  it('is not doubted either when somebody sets the wall clock of this machine', () => {
    const { read, ahead, offset, machine } = trusted()
    read(0)
    machine.step(DAY)
    offset.advance(DAY)
    read(-DAY)
    expect([ahead(), offset.doubt]).toEqual([-DAY, undefined])
  })

  it('is accepted as it was doubted, and not after another jump', () => {
    const { read, ahead, offset } = trusted()
    read(0)
    read(40 * DAY)
    offset.accept(DAY)
    expect(offset.doubt).toBe(40 * DAY)
    offset.accept(40 * DAY + 1000)
    expect([ahead(), offset.doubt]).toEqual([40 * DAY, undefined])
    read(40 * DAY)
    expect(offset.doubt).toBeUndefined()
  })

  it('that was doubted at the start is believed once another node confirms it, and a jump that was seen is not', () => {
    const { read, ahead, offset } = trusted()
    read(DAY)
    offset.assume(offset.value! - DAY, true)
    expect([ahead(), offset.doubt]).toEqual([0, DAY])
    offset.confirmed()
    expect([ahead(), offset.doubt]).toEqual([DAY, undefined])
    read(0)
    offset.confirmed()
    expect(offset.doubt).toBe(-DAY)
  })
})
