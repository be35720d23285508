import { describe, expect, it } from 'vitest'
import { isInstant } from '../../../src/base/kernel/units.ts'

describe('a moment as people write it', () => {
  it.each(['2026-02-28T20:00Z', '2026-02-28T23:59:59.999+10:00', '2028-02-29T00:00-03:30'])(
    'is %s',
    (text) => {
      expect(isInstant(text)).toBe(true)
    },
  )

  it.each([
    '2026-02-30T20:00Z',
    '2026-02-29T20:00Z',
    '2026-13-01T20:00Z',
    '2026-02-01T25:00Z',
    '2026-02-01T20:00',
    '2026-02-01',
    'now',
  ])('is not %s', (text) => {
    expect(isInstant(text)).toBe(false)
  })
})
