import type { RevocationCause } from '../contracts/tokens.ts'
import type { Operator } from '../audit/audited-change.ts'

/** What is kept of an operator's order with the revocation rule that it made. */
export const causeOf = ({ operator, by, reason, via }: Operator): RevocationCause => ({
  operator,
  by,
  reason,
  via,
})
