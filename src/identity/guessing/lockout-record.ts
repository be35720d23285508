import type { AuditEntry, AuditTrail } from '../../contracts/audit.ts'
import type { BegunLockout } from './lockouts.ts'

/** Records that a delay began (C12.3). Anybody can cause that, so it counts as a refusal (C12.1.5). */
export function recordLockout(begun: BegunLockout, audit: Pick<AuditTrail, 'refuse'>): void {
  audit.refuse({ event: 'lockout.began', reason: begun.of, address: begun.network }, () => entryOf(begun))
}

/** A name is what somebody typed, so it is a personal value, as the network is (C12.2.3). */
const entryOf = ({ client, delay, failures, network, of, subject, user }: BegunLockout): AuditEntry => ({
  event: 'lockout.began',
  outcome: 'success',
  actor: { kind: 'anonymous' },
  on: { kind: 'lockout', subject, client: client === '' ? undefined : client },
  change: { of, failures, delay },
  personal: { 'actor.address': network, 'on.id': user },
})
