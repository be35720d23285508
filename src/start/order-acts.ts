/** What the audit trail says of orders that revoke tokens or end delays. */
import type { GuessingKey } from '../contracts/lockouts.ts'
import { type AuditedChange, plainFacts } from '../audit/audited-change.ts'
import type { RevokeOptions } from '../operator/context.ts'

/** What the revocation rule names is what the record is about. */
export const revocationChange = (
  { subject, client, business, ...one }: Partial<Record<string, string>>,
  { consents, force }: RevokeOptions,
): AuditedChange => ({
  event: 'revocation.ordered',
  on: { kind: 'tokens', subject, client, business },
  change: plainFacts({ ...one, withConsents: consents, force }),
})

/** A user name as typed, and networks, are personal. */
export const clearingChange = ({ user, client, network }: Partial<GuessingKey>): AuditedChange => ({
  event: 'lockout.cleared',
  on: { kind: 'lockout', client },
  personal: { 'on.user': user, 'on.network': network },
})
