import { describe, expect, it } from 'vitest'
import { Ejection } from '../../../src/gateway/backends/forward/target/targets.ts'
import { movableClock } from '../../support/movable-clock.ts'

function begin() {
  const clock = movableClock()
  const changes: boolean[] = []
  const ejection = new Ejection({ failures: 2, for: 1000 }, clock, (ejected) => changes.push(ejected))
  const eject = (): void => {
    ejection.enter()('bad')
    ejection.enter()('bad')
  }
  return { clock, changes, ejection, eject }
}

describe('C8.4 passive ejection of a target', () => {
  it('C8.4 counts failures in a row: a success between them starts the count again', () => {
    const { ejection, changes } = begin()
    for (const outcome of ['bad', 'good', 'bad', 'unknown'] as const) ejection.enter()(outcome)
    expect(changes).toEqual([])
    ejection.enter()('bad')
    expect(changes).toEqual([true])
    expect(ejection.isEjected).toBe(true)
  })

  it('C8.4 admits nobody before its time has passed, then one call until that has ended', () => {
    const { clock, ejection, eject } = begin()
    eject()
    clock.advance(999)
    expect(ejection.admits).toBe(false)
    clock.advance(1)
    expect(ejection.admits).toBe(true)
    const end = ejection.enter()
    expect(ejection.admits).toBe(false)
    end('good')
    expect([ejection.admits, ejection.isEjected]).toEqual([true, false])
  })

  it('C8.4 a wall clock that is stepped does not end an ejection', () => {
    const { clock, ejection, eject } = begin()
    eject()
    clock.step(100_000)
    expect(ejection.admits).toBe(false)
  })

  it.each(['bad', 'unknown'] as const)('C8.4 a trial that ends %s ejects for as long again', (outcome) => {
    const { clock, changes, ejection, eject } = begin()
    eject()
    clock.advance(1000)
    ejection.enter()(outcome)
    expect(changes).toEqual([true, true])
    clock.advance(999)
    expect(ejection.admits).toBe(false)
    clock.advance(1)
    expect(ejection.admits).toBe(true)
  })

  it('C8.4 what began before an ejection, or was sent in spite of it, neither ends nor prolongs it', () => {
    const { clock, changes, ejection, eject } = begin()
    const before = ejection.enter()
    eject()
    before('good')
    ejection.enter()('bad')
    ejection.enter()('good')
    expect([changes, ejection.isEjected]).toEqual([[true], true])
    clock.advance(1000)
    expect(ejection.admits).toBe(true)
  })

  it('C8.4 after its return the failures are counted from none', () => {
    const { clock, changes, ejection, eject } = begin()
    eject()
    clock.advance(1000)
    ejection.enter()('good')
    ejection.enter()('bad')
    expect(changes).toEqual([true, false])
  })
})
