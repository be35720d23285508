import { expect, it } from 'vitest'
import { accessTokenHash } from '../../../src/keys/signatures.ts'

it('C6.1.8 at_hash is that of the example in OIDC Core, appendix A.3', () => {
  expect(accessTokenHash('jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y', 'RS256')).toBe(
    '77QmUPtjPfzWtF2AnpK9RQ',
  )
})
