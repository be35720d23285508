/** Who changes something, and the records around each change (C12.1.4). */
import { isIP } from 'node:net'
import type { AuditActor, AuditEntry, AuditObject, AuditTrail } from './audit.ts'
import type { RevocationCause } from './tokens.ts'
import type { JsonObject } from '../../http/body/json.ts'
import type { AuditEvent } from '../../kernel/audit-events.ts'
import { Fault } from '../../kernel/faults.ts'

/** Who changes something in a running service, and why: recorded with every change (C9.3, C12). */
export interface Operator {
  /** The name of the token that was shown. Undefined for signals and changed files, which show none. */
  readonly operator?: string | undefined
  /** As they call themselves: nobody has proven it. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** The address that the request came from, or the signal or the file that caused the change. */
  readonly via: string
  /** The way that it came. Default: the service itself did it. */
  readonly channel?: 'admin' | 'cli' | 'signal' | 'file'
}

/** Who acted, why and from where, for a record of the audit trail. */
export const byOperator = (
  operator: Operator,
): Pick<AuditEntry, 'actor' | 'why'> & { readonly personal: Readonly<Record<string, string>> } => ({
  actor: actorOf(operator),
  why: operator.reason,
  personal: isIP(operator.via) === 0 ? {} : { 'actor.address': operator.via },
})

/** The facts about an operator that are kept with a revocation rule. */
export const causeOf = ({ operator, by, reason, via }: Operator): RevocationCause => ({
  operator,
  by,
  reason,
  via,
})

const actorOf = ({ operator, by, channel }: Operator): AuditActor => ({
  kind: operator === undefined ? 'service' : 'operator',
  operator,
  claimed: by,
  via: channel,
})

/** A change, as its records name it. */
export interface AuditedChange {
  readonly event: AuditEvent
  readonly on?: AuditObject
  readonly change?: JsonObject
  readonly personal?: Readonly<Record<string, string | undefined>>
}

/** Facts that are known only after the change. */
type Outcome<T> = (result: T) => JsonObject

/** The members that have a value, as plain data. */
export const plainFacts = (members: object): JsonObject => JSON.parse(JSON.stringify(members)) as JsonObject

const entryOf = (change: AuditedChange, operator: Operator): Omit<AuditEntry, 'outcome'> => {
  const { personal, ...who } = byOperator(operator)
  return { ...change, ...who, personal: { ...personal, ...change.personal } }
}

const failureOf = (thrown: unknown): Pick<AuditEntry, 'outcome' | 'reason'> => ({
  outcome: 'failed',
  reason: thrown instanceof Fault ? thrown.code : undefined,
})

const withResult = (change: AuditedChange, result: JsonObject | undefined): JsonObject | undefined =>
  result === undefined ? change.change : { ...change.change, ...result }

/** Something that is to be given, and whose intent is durable. One of the two is to be called, once. */
export interface BegunGiving {
  /** Does it, and records the outcome. Rejects as the work does. */
  readonly carryOut: <T>(work: () => Promise<T>, outcome?: Outcome<T>) => Promise<T>
  /** It is not done. Never rejects. */
  readonly fail: (thrown?: unknown) => Promise<void>
}

/** Rejects with Fault `audit_unavailable`, if the intent cannot be kept. */
export async function beginGiving(
  audit: AuditTrail,
  operator: Operator,
  change: AuditedChange,
): Promise<BegunGiving> {
  const entry = entryOf(change, operator)
  const intent = await audit.require({ ...entry, outcome: 'pending' })
  const fail = (thrown?: unknown): Promise<void> => audit.settle({ ...entry, ...failureOf(thrown), intent })
  return {
    fail,
    carryOut: async (work, outcome) => {
      try {
        const result = await work()
        const settled = withResult(change, outcome?.(result))
        await audit.settle({ ...entry, outcome: 'success', intent, change: settled })
        return result
      } catch (thrown) {
        await fail(thrown)
        throw thrown
      }
    },
  }
}

/**
 * Does what gives something: its intent is durable before, and its outcome is recorded after. Rejects with Fault
 * `audit_unavailable`, with nothing done, if the intent cannot be kept; otherwise as the work does.
 */
export async function recordGiving<T>(
  audit: AuditTrail,
  operator: Operator,
  change: AuditedChange,
  work: () => Promise<T>,
  outcome?: Outcome<T>,
): Promise<T> {
  const giving = await beginGiving(audit, operator, change)
  return giving.carryOut(work, outcome)
}

/** Does what takes something away, at once; then records it. A failure is recorded too: a part may be done. */
export async function recordTaking<T>(
  audit: AuditTrail,
  operator: Operator,
  change: AuditedChange,
  work: () => Promise<T>,
  outcome?: Outcome<T>,
): Promise<T> {
  const entry = entryOf(change, operator)
  try {
    const result = await work()
    await audit.keep({ ...entry, outcome: 'success', change: withResult(change, outcome?.(result)) })
    return result
  } catch (thrown) {
    await audit.keep({ ...entry, ...failureOf(thrown) })
    throw thrown
  }
}

/** Records what stops nothing. */
export const noteChange = (
  audit: Pick<AuditTrail, 'note'>,
  operator: Operator,
  change: AuditedChange,
  outcome: 'success' | 'refused' = 'success',
): void => audit.note({ ...entryOf(change, operator), outcome })
