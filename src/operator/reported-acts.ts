/** Acts that commands report to the service that holds the lock of the audit trail (C12.1.7). */
import { type AuditedChange, byOperator, type Operator } from '../audit/audited-change.ts'
import type { AuditEntry, AuditTrail } from '../contracts/audit.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'

/** What commands do without the service. Nothing else can be reported, so that no record of a call is forged. */
export const REPORTABLE = [
  'keys.announced',
  'keys.compromised',
  'keys.resealed',
  'store.backed_up',
  'store.migrated',
  'store.copied',
] as const satisfies readonly AuditEvent[]

/** The end of an act. */
export type ActOutcome = 'success' | 'refused' | 'failed'

/** Intents that are open at once: far more than operators run commands. */
const MOST_OPEN = 1000

/** Keeps what was begun, so that only who began an act can report its end. */
export class ReportedActs {
  readonly #audit: AuditTrail
  /** By the `seq` of the intent. */
  readonly #open = new Map<number, string>()
  /** Called with each act that is reported first. */
  reported: (act: AuditedChange) => void = () => undefined

  constructor(audit: AuditTrail) {
    this.#audit = audit
  }

  /** Resolves with the `seq` of the intent, when it is durable. Rejects with Fault `audit_unavailable`. */
  async begin(act: AuditedChange, operator: Operator): Promise<number> {
    const intent = await this.#audit.require({ ...entryOf(act, operator), outcome: 'pending' })
    this.reported(act)
    for (const oldest of this.#open.keys()) if (this.#open.size >= MOST_OPEN) this.#open.delete(oldest)
    this.#open.set(intent, keyOf(act, operator))
    return intent
  }

  /** False if there is no such intent of this operator: the service was restarted, or it has ended already. */
  async end(intent: number, outcome: ActOutcome, act: AuditedChange, operator: Operator): Promise<boolean> {
    if (this.#open.get(intent) !== keyOf(act, operator)) return false
    this.#open.delete(intent)
    await this.#audit.settle({ ...entryOf(act, operator), outcome, intent })
    return true
  }

  /** Records what has taken effect already. */
  keep(outcome: ActOutcome, act: AuditedChange, operator: Operator): Promise<void> {
    this.reported(act)
    return this.#audit.keep({ ...entryOf(act, operator), outcome })
  }
}

const keyOf = ({ event }: AuditedChange, { operator }: Operator): string => `${event} ${operator ?? ''}`

/** As an act of an operator, done by a command. */
export function entryOf(act: AuditedChange, operator: Operator): Omit<AuditEntry, 'outcome'> {
  const { actor, why, personal } = byOperator(operator)
  return {
    ...act,
    actor: { ...actor, kind: 'operator', via: 'cli' },
    why,
    personal: { ...personal, ...act.personal },
  }
}
