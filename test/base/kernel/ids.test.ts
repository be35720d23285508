import { describe, expect, it } from 'vitest'
import { newOrderedId, newRequestId, newSpanId } from '../../../src/base/kernel/ids.ts'

describe('random ids', () => {
  it('C2.6 are 32 and 16 hex digits, and never the same again, however many are drawn', () => {
    const seen = new Set<string>()
    for (let drawn = 0; drawn < 20_000; drawn += 1) {
      const [request, span] = [newRequestId(), newSpanId()]
      expect(request).toMatch(/^[0-9a-f]{32}$/)
      expect(span).toMatch(/^[0-9a-f]{16}$/)
      // Halves too: a text that is cut twice at the same place would show.
      for (const part of [request.slice(0, 16), request.slice(16), span]) seen.add(part)
    }
    expect(seen.size).toBe(60_000)
  })
})

describe('ordered ids', () => {
  const NOW = Date.UTC(2026, 10, 23)

  it('C6.1.7 are 22 characters of base64url, and never the same again, however many are drawn at once', () => {
    const drawn = Array.from({ length: 20_000 }, () => newOrderedId(NOW))
    for (const id of drawn) expect(id).toMatch(/^[\w-]{22}$/)
    expect(new Set(drawn.map((id) => id.slice(5))).size).toBe(20_000)
  })

  it('C6.1.7 stand in a store in the order of their times', () => {
    const drawn = Array.from({ length: 2000 }, (_, at) => newOrderedId(NOW + at * 16.5))
    expect(drawn.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))).toEqual(
      drawn,
    )
  })
})
