import { describe, expect, it } from 'vitest'
import { Silence } from '../../../../src/stores/postgres/silence.ts'

const SECOND = 1000

describe('T3.16 the time in which a database did not answer', () => {
  it('is nothing as long as it answers', () => {
    const silence = new Silence()
    silence.answered(50 * SECOND)
    expect(silence.after(49 * SECOND, 60 * SECOND)).toBe(0)
  })

  it('counts from what was written shortly before it, or in it, to its end', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.failed(110 * SECOND)
    expect(silence.after(98 * SECOND, 120 * SECOND)).toBe(22 * SECOND)
    silence.answered(140 * SECOND)
    expect([98, 120, 140].map((at) => silence.after(at * SECOND, 200 * SECOND) / SECOND)).toEqual([42, 20, 0])
  })

  it('counts for nothing that was written long before it, or after it', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.answered(140 * SECOND)
    expect([94, 141].map((at) => silence.after(at * SECOND, 200 * SECOND))).toEqual([0, 0])
  })

  it('is one where single answers come between, and another one later', () => {
    const silence = new Silence()
    silence.failed(100 * SECOND)
    silence.answered(105 * SECOND)
    silence.failed(106 * SECOND)
    silence.answered(130 * SECOND)
    expect(silence.after(99 * SECOND, 200 * SECOND)).toBe(31 * SECOND)
    silence.failed(150 * SECOND)
    silence.answered(160 * SECOND)
    expect(silence.after(99 * SECOND, 200 * SECOND)).toBe(0)
    expect(silence.after(155 * SECOND, 200 * SECOND)).toBe(5 * SECOND)
  })
})
