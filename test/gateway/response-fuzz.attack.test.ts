import { expect, it } from 'vitest'
import { fuzzResponses, type Verdict } from '../support/response-fuzz.ts'

/** A million cases: `node test/long/prove/response-fuzz.ts`. */
const CASES = 20_000
const SEED = 20_261_122

it('T2.3 of 20,000 generated responses llhttp reads in each that we accept the same, and refuses none of them', () => {
  const defects: Verdict[] = []
  const counts = new Map<string, number>()
  for (const verdict of fuzzResponses(CASES, SEED)) {
    counts.set(verdict.kind, (counts.get(verdict.kind) ?? 0) + 1)
    if (verdict.kind === 'only we accept' || verdict.kind === 'read differently') defects.push(verdict)
  }
  expect(defects.slice(0, 5)).toEqual([])
  // Otherwise little would be proven.
  expect(counts.get('same')).toBeGreaterThan(CASES / 5)
  expect(counts.get('both refuse')).toBeGreaterThan(CASES / 5)
})
