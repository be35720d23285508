import { expect, it } from 'vitest'
import { openReplayMemory } from '../../../src/extensions/fapi/replay-memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const SHORT = 60_000
const LONG = 300_000

it('C4.4: a proof is new once, as long as it would be accepted', () => {
  const clock = movableClock()
  const memory = openReplayMemory({ clock })
  const short = { id: 'short', expiresAt: clock.now() + SHORT }
  const long = { id: 'long', expiresAt: clock.now() + LONG }
  expect([memory.isFirst(short), memory.isFirst(long)]).toEqual([true, true])
  clock.advance(SHORT - 1)
  expect([memory.isFirst(short), memory.isFirst(long)]).toEqual([false, false])
  clock.advance(LONG - SHORT)
  expect(memory.isFirst(long)).toBe(false)
})

it('C4.4: beyond its limit the oldest are forgotten, and each is counted', () => {
  const clock = movableClock()
  let forgotten = 0
  const memory = openReplayMemory({
    clock,
    limit: 3,
    onForgotten: () => {
      forgotten += 1
    },
  })
  const first = (id: string, life = SHORT): boolean => memory.isFirst({ id, expiresAt: clock.now() + life })
  for (const id of ['a', 'b', 'c']) expect(first(id)).toBe(true)
  expect(forgotten).toBe(0)
  expect(first('d')).toBe(true)
  expect(forgotten).toBe(1)
  expect([first('b'), first('c'), first('d')]).toEqual([false, false, false])
  expect(first('a')).toBe(true)
})

it('C4.4: what has expired makes room, and is not counted', () => {
  const clock = movableClock()
  let forgotten = 0
  const memory = openReplayMemory({
    clock,
    limit: 2,
    onForgotten: () => {
      forgotten += 1
    },
  })
  // The one that lives long does not stand in the way of those behind it.
  memory.isFirst({ id: 'long', expiresAt: clock.now() + LONG })
  for (let at = 0; at < 4; at += 1) {
    expect(memory.isFirst({ id: `short ${at}`, expiresAt: clock.now() + SHORT })).toBe(true)
    clock.advance(SHORT + 1000)
  }
  expect(forgotten).toBe(0)
  expect(memory.isFirst({ id: 'long', expiresAt: clock.now() + LONG })).toBe(false)
})
