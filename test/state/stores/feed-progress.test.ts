import { describe, expect, it } from 'vitest'
import { FeedProgress } from '../../../src/state/stores/feed/feed-progress.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const START = 100 * DAY

/** A node that has read a feed whose end was a day old, and reads it four times a second until it is told otherwise. */
function following() {
  let time = START
  const progress = new FeedProgress(undefined, { now: () => time })
  const end = START - DAY
  progress.saw({ sequence: end })
  /** Reads the whole feed at a time. */
  const compare = (found: { newest: number; oldestLost?: number }, now: number): number | undefined => {
    time = now
    return progress.compare(progress.numbers, { oldestLost: Number.POSITIVE_INFINITY, ...found })
  }
  compare({ newest: end }, START)
  return {
    progress,
    end,
    compare,
    /** Reads the feed, whose newest number is this, up to a time. */
    read: (newest: number, from: number, to: number): void => {
      for (time = from; time <= to; time += 250) progress.saw({ sequence: newest })
    },
  }
}

describe('T3.17 C11.7.3 whether a store is older than what a running node has seen', () => {
  it('C11.7.3 is not told by a change of the last moments that is missing, however long the failover took', () => {
    const { progress, end, read, compare } = following()
    const lost = START + 10 * MINUTE
    read(end, START, lost)
    read(lost, lost, lost + 2000)
    expect(compare({ newest: end }, lost + 60 * MINUTE)).toBeUndefined()
    expect(progress.isDoubted).toBe(false)
  })

  it('C11.7.3 is told by one that was more than five minutes old when the store was last read', () => {
    const { progress, end, read, compare } = following()
    const lost = START + MINUTE
    read(lost, lost, lost + 6 * MINUTE)
    read(lost + 6 * MINUTE, lost + 6 * MINUTE, lost + 6 * MINUTE + 2000)
    expect(compare({ newest: end }, lost + 7 * MINUTE)).toBe(lost + 6 * MINUTE - end)
    expect(progress.isDoubted).toBe(true)
  })

  it('C11.7.3 is told by an old revocation that is missing, though another node has changed something since', () => {
    const { read, compare } = following()
    const revoked = START + MINUTE
    read(revoked, revoked, revoked + 6 * MINUTE)
    read(revoked + 6 * MINUTE, revoked + 6 * MINUTE, revoked + 6 * MINUTE + 2000)
    const now = revoked + 7 * MINUTE
    expect(compare({ newest: now, oldestLost: revoked }, now)).toBe(6 * MINUTE)
  })

  it('C11.7.3 is told by no number that is ahead of the time', () => {
    const { end, read, compare } = following()
    const ahead = START + 40 * DAY
    read(ahead, START, START + 2000)
    expect(compare({ newest: end }, START + 3000)).toBeUndefined()
  })
})
