import { describe, expect, it } from 'vitest'
import { didYouMean, nearest } from '../../../src/base/config/problem-text.ts'

describe('suggestions', () => {
  it.each([
    ['lisen', 'listen'],
    ['LISTEN', 'listen'],
    ['tiemouts', 'timeouts'],
    ['timeout', 'timeouts'],
  ])('%s probably means %s', (given, meant) => {
    expect(nearest(given, ['demo', 'timeouts', 'listen'])).toBe(meant)
  })

  it('suggests nothing where nothing is near', () => {
    expect(didYouMean('zebra', ['listen', 'timeouts'])).toBeUndefined()
    expect(didYouMean('x'.repeat(10_000), ['listen'])).toBeUndefined()
  })
})
