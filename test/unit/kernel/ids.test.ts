import { describe, expect, it } from 'vitest'
import { newRequestId, newSpanId } from '../../../src/kernel/ids.ts'

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
