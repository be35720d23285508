import { describe, expect, it } from 'vitest'
import { SYNC_BYTES, SyncTimes } from '../../../src/extensions/audit/queue/sync-times.ts'

/** The memory as the thread that writes sees it, and as the other one does. */
function both(): readonly [SyncTimes, SyncTimes] {
  const memory = new SharedArrayBuffer(64 + SYNC_BYTES)
  return [new SyncTimes(memory, 64), new SyncTimes(memory, 64)]
}

describe('the times of syncs', () => {
  it('C11.1 are told once each, in their order', () => {
    const [writing, looking] = both()
    expect(looking.take()).toEqual([])
    writing.add(1.5)
    writing.add(0.25)
    expect(looking.take()).toEqual([1.5, 0.25])
    writing.add(3)
    expect([looking.take(), looking.take()]).toEqual([[3], []])
  })

  it('C11.1 are the last 256 if nobody looked for long', () => {
    const [writing, looking] = both()
    for (let ms = 1; ms <= 1000; ms++) writing.add(ms)
    const told = looking.take()
    expect([told.length, told[0], told.at(-1)]).toEqual([256, 745, 1000])
    expect(looking.take()).toEqual([])
  })
})
