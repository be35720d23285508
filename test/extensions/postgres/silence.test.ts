import { describe, expect, it } from 'vitest'
import { Silence } from '../../../src/extensions/postgres/link.ts'

const SECOND = 1000

describe('T3.16 the time in which a database did not answer', () => {
  it('is nothing as long as it answers', () => {
    const silence = new Silence()
    silence.answered(50 * SECOND)
    expect(silence.since(49 * SECOND, 60 * SECOND)).toBe(0)
  })

  it('counts from the request that got no answer to the next answer', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.failed(110 * SECOND)
    expect(silence.since(98 * SECOND, 120 * SECOND)).toBe(20 * SECOND)
    silence.answered(140 * SECOND)
    const times = [98, 100, 120, 140, 141].map((at) => silence.since(at * SECOND, 200 * SECOND) / SECOND)
    expect(times).toEqual([40, 40, 20, 0, 0])
  })

  it('is that of all silences together, without the time between them', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.answered(105 * SECOND)
    silence.failed(106 * SECOND)
    silence.answered(130 * SECOND)
    expect(silence.since(99 * SECOND, 200 * SECOND)).toBe(29 * SECOND)
    expect(silence.since(120 * SECOND, 200 * SECOND)).toBe(10 * SECOND)
  })

  it('is short for a database that fails for a moment now and then, however long it goes on so', () => {
    const silence = new Silence()
    for (let at = 0; at < 3600; at += 9) {
      silence.failed(at * SECOND)
      silence.answered(at * SECOND + 10)
    }
    expect(silence.since(0, 3600 * SECOND)).toBeLessThanOrEqual(4 * SECOND)
  })

  it('counts once where answers and failures of several requests overlap', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.answered(103 * SECOND)
    silence.failed(101 * SECOND)
    silence.answered(104 * SECOND)
    expect(silence.since(0, 200 * SECOND)).toBe(4 * SECOND)
  })
})
