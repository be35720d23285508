import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { prepareRecord } from '../../../src/extensions/audit/format/record.ts'
import {
  ArrivingProgress,
  ArrivingRecords,
  LeavingRecords,
  progressFrame,
} from '../../../src/extensions/audit/queue/record-frames.ts'

const TIME = Date.UTC(2026, 10, 22, 23, 59, 59, 7)

const recordOf = (subject: string, personal: Record<string, string> = {}) =>
  prepareRecord(
    { event: 'call.intended', outcome: 'pending', actor: { kind: 'user', subject }, personal },
    TIME,
  )

/** The frames that come out where bytes arrive in pieces of a size. */
function through<F extends ArrivingRecords | ArrivingProgress, T>(
  frames: F,
  bytes: Buffer,
  size: number,
  read: (frames: F) => T,
): T[] {
  const found: T[] = []
  for (let start = 0; start < bytes.length; start += size) {
    frames.add(bytes.subarray(start, start + size))
    while (frames.isWhole) {
      found.push(read(frames))
      frames.drop()
    }
  }
  return found
}

const SIZES = [1, 7, 33, 1_000_000]
const NO_BOUND = Number.POSITIVE_INFINITY

describe('C12.4.2 the bytes between a worker and the process that writes', () => {
  it.each(SIZES)('C12.4.2 give back each record, in pieces of %i bytes', (size) => {
    const records = [recordOf('ann'), recordOf('bjørn 𝄞', { a: 'é', b: 'x' }), recordOf('cyd', { a: '' })]
    const puts = [
      { awaited: true, onlyDurable: true, time: TIME, opens: true, settles: 0 },
      { awaited: false, onlyDurable: false, time: TIME + 1, opens: false, settles: 2 ** 40 },
      { awaited: true, onlyDurable: false, time: 0, opens: false, settles: 7 },
    ]
    const leaving = new LeavingRecords()
    for (const [index, record] of records.entries()) leaving.add(record, puts[index] ?? puts[0]!, NO_BOUND)
    const read = through(new ArrivingRecords(), leaving.take(), size, (record) => {
      const { bytes, start, memberBytes, besideBytes, awaited, onlyDurable, time, opens, settles } = record
      const beside = start + memberBytes
      return {
        put: { awaited, onlyDurable, time, opens, settles },
        members: bytes.toString('utf8', start, beside),
        beside: bytes.toString('utf8', beside, beside + besideBytes),
      }
    })
    expect(read).toEqual(
      records.map(({ members, personal }, index) => ({
        put: puts[index],
        members,
        beside: personal.join('\n'),
      })),
    )
  })

  it('C12.4.2 take no record beyond the bound, and keep those before it; their place is used again', () => {
    const leaving = new LeavingRecords()
    const put = { awaited: true, onlyDurable: false, time: TIME, opens: false, settles: 0 }
    const wide = prepareRecord(
      {
        ...{ event: 'service.started', outcome: 'success', actor: { kind: 'service' } },
        change: { rows: Array.from({ length: 100 }, () => 'é'.repeat(250)) },
      },
      TIME,
    )
    for (let turn = 0; turn < 3; turn += 1) {
      const size = leaving.add(recordOf('ann'), put, NO_BOUND)
      expect(leaving.add(recordOf('bob'), put, size - 1)).toBe(0)
      // More than the bytes that there are at first.
      const more = [1, 2, 3].map(() => leaving.add(wide, put, NO_BOUND))
      const taken = leaving.take()
      expect(taken).toHaveLength(more.reduce((sum, each) => sum + each, size))
      expect(leaving.isEmpty).toBe(true)
      const read = through(
        new ArrivingRecords(),
        Buffer.from(taken),
        NO_BOUND,
        ({ memberBytes }) => memberBytes,
      )
      expect(read).toHaveLength(4)
      leaving.giveBack(taken)
    }
  })

  it.each(SIZES)('C12.4.2 give back how far the records have come, in pieces of %i bytes', (size) => {
    const told = [
      { written: 3, durable: 1, failing: false, steps: 0, seqs: [2 ** 40] },
      { written: 2 ** 32 + 2, durable: 2 ** 32 - 1, failing: true, steps: -1, seqs: [] },
      { written: 0, durable: 0, failing: false, steps: 5, seqs: [5, 6, 8] },
    ]
    const read = through(new ArrivingProgress(), Buffer.concat(told.map(progressFrame)), size, (progress) => {
      const { ahead, failing, steps, count } = progress
      return { ahead, failing, steps, seqs: Array.from({ length: count }, (_, index) => progress.seq(index)) }
    })
    // Modulo 2³².
    expect(read).toEqual([
      { ahead: 2, failing: false, steps: 0, seqs: [2 ** 40] },
      { ahead: 3, failing: true, steps: 2 ** 32 - 1, seqs: [] },
      { ahead: 0, failing: false, steps: 5, seqs: [5, 6, 8] },
    ])
  })
})
