import { describe, expect, it } from 'vitest'
import { FeedProgress } from '../../../src/stores/feed-progress.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const START = 100 * DAY
/** No revocation is missing. */
const NONE = Number.POSITIVE_INFINITY

/** A node that has read a feed whose end was a day old, and reads it four times a second until it is told otherwise. */
function following() {
  const progress = new FeedProgress(undefined)
  const end = START - DAY
  progress.saw(end, START)
  progress.compare(progress.numbers, { newest: end, oldestLost: NONE }, START)
  return {
    progress,
    end,
    /** Reads the feed, whose newest number is this, up to a time. */
    read: (newest: number, from: number, to: number): void => {
      for (let now = from; now <= to; now += 250) progress.saw(newest, now)
    },
  }
}

describe('C11.7.3 whether a store is older than what a running node has seen', () => {
  it('C11.7.3 is not told by a change of the last moments that is missing, however long the failover took', () => {
    const { progress, end, read } = following()
    const lost = START + 10 * MINUTE
    read(end, START, lost)
    read(lost, lost, lost + 2000)
    expect(
      progress.compare(progress.numbers, { newest: end, oldestLost: NONE }, lost + 60 * MINUTE),
    ).toBeUndefined()
    expect(progress.isDoubted).toBe(false)
  })

  it('C11.7.3 is told by one that was more than five minutes old when the store was last read', () => {
    const { progress, end, read } = following()
    const lost = START + MINUTE
    read(lost, lost, lost + 6 * MINUTE)
    read(lost + 6 * MINUTE, lost + 6 * MINUTE, lost + 6 * MINUTE + 2000)
    expect(progress.compare(progress.numbers, { newest: end, oldestLost: NONE }, lost + 7 * MINUTE)).toBe(
      lost + 6 * MINUTE - end,
    )
    expect(progress.isDoubted).toBe(true)
  })

  it('C11.7.3 is told by an old revocation that is missing, though another node has changed something since', () => {
    const { progress, read } = following()
    const revoked = START + MINUTE
    read(revoked, revoked, revoked + 6 * MINUTE)
    read(revoked + 6 * MINUTE, revoked + 6 * MINUTE, revoked + 6 * MINUTE + 2000)
    const now = revoked + 7 * MINUTE
    expect(progress.compare(progress.numbers, { newest: now, oldestLost: revoked }, now)).toBe(6 * MINUTE)
  })

  it('C11.7.3 is told by no number that is ahead of the time', () => {
    const { progress, end, read } = following()
    const ahead = START + 40 * DAY
    read(ahead, START, START + 2000)
    expect(
      progress.compare(progress.numbers, { newest: end, oldestLost: NONE }, START + 3000),
    ).toBeUndefined()
  })
})
