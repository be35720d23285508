/** Who gives orders to a running service, and how the audit trail names them. */
import type { AuditActor, AuditEntry } from '../contracts/audit.ts'

/** Who changes something in a running service, and why: told with every change (C9.3, C12). */
export interface Operator {
  /** The name of the token that was shown. Undefined for signals and changed files, which show none. */
  readonly operator?: string | undefined
  /** As they call themselves: nobody has proven it. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** The address that the order came from, or the signal or file that gave it. */
  readonly via: string
  /** The way that it came. Default: the service itself did it. */
  readonly channel?: 'admin' | 'signal' | 'file'
}

/** Who acted, why and from where, for a record of the audit trail. */
export const byOperator = (
  order: Operator,
): Pick<AuditEntry, 'actor' | 'why'> & { readonly personal: Readonly<Record<string, string>> } => ({
  actor: actorOf(order),
  why: order.reason,
  personal: order.channel === 'admin' ? { 'actor.address': order.via } : {},
})

const actorOf = ({ operator, by, channel }: Operator): AuditActor => ({
  kind: operator === undefined ? 'service' : 'operator',
  operator,
  claimed: by,
  via: channel,
})
