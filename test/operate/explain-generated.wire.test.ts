import { expect, it } from 'vitest'
import { type Compared, compareCalls } from '../support/generated-calls.ts'

/** 10,000 calls: `npm run prove explain`. */
const CALLS = 400
const SEED = 20_261_122

it('C14.1 of 400 generated calls each is explained as it is decided', async () => {
  const differing: Compared[] = []
  const outcomes = new Set<string>()
  for await (const compared of compareCalls(CALLS, SEED)) {
    outcomes.add(compared.wire)
    if (compared.explained !== compared.wire) differing.push(compared)
  }
  expect(differing.slice(0, 5)).toEqual([])
  // Otherwise little would be proven.
  expect(outcomes.size).toBeGreaterThan(15)
})
