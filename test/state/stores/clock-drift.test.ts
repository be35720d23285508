import { describe, expect, it } from 'vitest'
import { ClockDrift } from '../../../src/state/stores/feed/store-doubts.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'

describe('C11.7.1 a clock of this machine that is wrong', () => {
  it('is told when it is more than a second off, once until it was right again', async () => {
    const [store, machine] = [movableClock(), movableClock()]
    const timers = manualAfter()
    const recorder = keepNotes()
    const drift = new ClockDrift({ store, offset: { doubt: undefined }, machine, recorder }, timers.after)
    machine.step(1000)
    await timers.fire()
    expect(recorder.events).toEqual([])
    machine.step(1)
    await timers.fire()
    await timers.fire()
    expect(recorder.events).toEqual(['clock_differs_from_store'])
    expect(drift.seconds).toBe(-1.001)
    machine.step(-5000)
    await timers.fire()
    machine.step(4000)
    await timers.fire()
    machine.step(4000)
    await timers.fire()
    expect(recorder.events).toEqual(['clock_differs_from_store', 'clock_differs_from_store'])
    drift.stop()
    expect(timers.delays()).toEqual([])
  })
})
