import { describe, expect, it } from 'vitest'
import { Counts } from '../../../src/operate/watch/metrics/counts.ts'
import { FAMILIES } from '../../../src/operate/watch/metrics/families.ts'

const ENTRY = { door: ['none', 'api', 'api'], area: ['', 'fund-data', 'member-data'] }
const METHOD = { method: ['GET', 'POST'] }
const STATUS = { status: ['200', '404', '500'] }

describe('counts', () => {
  it('C11.1 names each series by its row on every axis', () => {
    const counts = new Counts()
    const requests = counts.plan(FAMILIES.requests, ENTRY, METHOD, STATUS)
    for (const entry of [0, 1, 2])
      for (const method of [0, 1]) for (const status of [0, 1, 2]) requests.add(1, entry, method, status)
    const [delta] = counts.take()
    const expected = ENTRY.door.flatMap((door, entry) =>
      METHOD.method.flatMap((method) =>
        STATUS.status.flatMap((status) => [door, ENTRY.area[entry], method, status]),
      ),
    )
    expect(delta?.labels).toEqual(expected)
    expect(delta?.series).toEqual(Array.from({ length: 18 }, (_, at) => at))
  })

  it('hands over what was counted since the last time, and nothing twice', () => {
    const counts = new Counts()
    const requests = counts.plan(FAMILIES.requests, ENTRY, METHOD, STATUS)
    requests.add(1, 1, 1)
    requests.add(2, 1, 1)
    const { name } = FAMILIES.requests
    const labels = ['api', 'fund-data', 'POST', '200']
    expect(counts.take()).toEqual([{ name, series: [9], labels, amounts: [3] }])
    expect(counts.take()).toEqual([])
    requests.add(1, 1, 1)
    expect(counts.take()).toEqual([{ name, series: [9], labels, amounts: [1] }])
  })

  it('C11.1 hands over all series at 0 at first, but of a sparse family only those that are to be shown', () => {
    const counts = new Counts()
    counts.plan(FAMILIES.tokenCache, { outcome: ['hit', 'miss'] })
    const decisions = counts.plan(
      FAMILIES.decisions,
      { area: ['a'], action: ['b'] },
      { reason: ['allowed', 'other'] },
    )
    decisions.show(0, 0)
    const taken = counts.take().map(({ labels, amounts }) => ({ labels, amounts }))
    expect(taken).toEqual([
      { labels: ['hit', 'miss'], amounts: [0, 0] },
      { labels: ['allowed', 'a', 'b'], amounts: [0] },
    ])
    expect(counts.take()).toEqual([])
  })

  it('C11.1 counts a duration in the bucket of its bound, and one beyond all bounds behind them', () => {
    const counts = new Counts()
    const syncs = counts.plan(FAMILIES.auditSyncDuration)
    for (const seconds of [0.0005, 0.002, 40]) syncs.observe(seconds)
    const [delta] = counts.take()
    expect(delta?.labels).toEqual([])
    expect(delta?.amounts).toEqual([1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 40.0025])
  })
})
