import { describe, expect, it } from 'vitest'
import { killUnderLoad } from './support/killed-service.ts'
import { sized } from '../../support/long.ts'

// T5.7: a service that is killed with all its processes while it changes data. More often: test/long/prove/audit-kills.ts.

describe('T5.7 a service killed while it changes data', () => {
  it.each([
    { workers: 1, times: sized(1, 2) },
    { workers: sized(2, 4), times: 1 },
  ])(
    'C12.1.3 of what $workers worker(s) answered no record is missing, what was under way is an open intent, and the trail is whole (C12.4.6)',
    async ({ workers, times }) => {
      for (let time = 0; time < times; time += 1) {
        const { answered, open, ...lost } = await killUnderLoad({ workers, answers: 40 + 150 * time })
        expect(answered).toBeGreaterThanOrEqual(40)
        expect(open).toBeLessThanOrEqual(8)
        expect(lost).toEqual({ changes: [], received: [], acts: [], answeredOpen: [], findings: [] })
      }
    },
    120_000,
  )
})
