import type { RevocationOrder } from '../contracts/tokens.ts'
import type { Operator } from '../audit/audited-change.ts'

/** What is kept of an operator's order with the revocation rule that it made. */
export const orderOf = ({ operator, by, reason, via }: Operator): RevocationOrder => ({
  operator,
  by,
  reason,
  via,
})
