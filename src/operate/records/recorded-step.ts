/** Changes of records (C11.5.1, C12.1.7): planned, recorded and made, and planned anew if somebody else was faster. */
import {
  type AuditedChange,
  type Operator,
  recordGiving,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import { ATTEMPTS, changedByOthers, type PlannedStep } from '../../identity/directory/editors/editing.ts'
import { tagOf } from '../../identity/directory/editors/record-forms.ts'
import { keyOfNames, type RecordKind } from '../../identity/directory/editors/record-kind.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import type { IsMeant } from '../operation/conditions.ts'
import type { OperationContext } from '../operation/context.ts'

/** A record, by its kind and its names: for a fund its business and its code. */
export interface RecordAt {
  readonly kind: RecordKind
  readonly names: readonly string[]
}

/** A record, who changes it, and which of its versions is meant: the latest one, if nothing is said. */
export interface MeantRecord {
  readonly at: RecordAt
  readonly operator: Operator
  readonly isMeant: IsMeant | undefined
}

/** Another version than the one that was meant is the latest. Nothing has changed. */
export class OvertakenError extends Error {
  override readonly name = 'OvertakenError'
  /** The tag of the latest version. */
  readonly tag: string

  constructor(tag: string) {
    super('another version is the latest')
    this.tag = tag
  }
}

type Done =
  'added' | 'changed' | 'disabled' | 'enabled' | 'removed' | 'secret_rotated' | 'password_set' | 'link_made'

export function changeOf({ kind, names }: RecordAt, done: Done, subject?: unknown): AuditedChange {
  const event = `${kind.noun}.${done}` as AuditEvent
  const on = { ...kind.object(names), ...(typeof subject === 'string' && { subject }) }
  return { event, on, ...(kind.isPersonal === true && { personal: { 'on.id': keyOfNames(names) } }) }
}

/** Something that is done to a record, and the change that the audit trail tells of it. */
interface Step<T, P> {
  readonly plan: () => Promise<P & PlannedStep<T>>
  /** Undefined if nothing changes: then nothing is recorded. */
  readonly change: (planned: P) => AuditedChange | undefined
  readonly gives: (planned: P) => boolean
}

/**
 * Plans a step, then records it and does it; plans it anew if somebody else has changed the record meanwhile. A step that
 * is refused when it is planned leaves no record: nothing was begun. Rejects with DirectoryRefusal, OvertakenError, and Fault
 * `identity_unavailable` or `audit_unavailable`. The change is in force everywhere when this resolves.
 */
export async function doLatest<T, P>(
  context: OperationContext,
  { at, operator, isMeant }: MeantRecord,
  { plan, change, gives }: Step<T, P>,
): Promise<{ readonly planned: P; readonly result: T }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const planned = await plan()
    const tag = tagOf(at.kind, planned.version, planned.written.before)
    if (isMeant?.(tag) === false) throw new OvertakenError(tag)
    const commit = (): Promise<T | undefined> => planned.commit(isMeant !== undefined)
    const changed = change(planned)
    const result = await (changed
      ? recordedUnlessOvertaken(context, operator, changed, gives(planned), commit)
      : commit())
    if (result !== undefined) return { planned, result }
  }
  throw changedByOthers(keyOfNames(at.names))
}

/** Does work that resolves with undefined if somebody else has changed the record: recorded as failed then. */
async function recordedUnlessOvertaken<T>(
  context: OperationContext,
  operator: Operator,
  change: AuditedChange,
  gives: boolean,
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const overtaken = new OvertakenError('')
  const orThrow = async (): Promise<T> => {
    const result = await work()
    if (result === undefined) throw overtaken
    return result
  }
  return doRecorded(context, operator, change, orThrow, { gives }).catch((thrown: unknown) => {
    if (thrown === overtaken) return undefined
    throw thrown
  })
}

/**
 * Does the work and records it. Work that gives something is recorded first, and not done if that fails; any other work is
 * recorded afterwards. Rejects as the work does.
 */
export async function doRecorded<T>(
  { audit, recorder, intents }: OperationContext,
  operator: Operator,
  change: AuditedChange,
  work: () => Promise<T>,
  { gives, intent }: { readonly gives: boolean; readonly intent?: string | undefined },
): Promise<T> {
  const record = gives ? recordGiving : recordTaking
  const result = await (intent === undefined
    ? record(audit, operator, change, work)
    : intents.take(intent, change, operator).carryOut(work))
  const { event, on } = change
  recorder.note('info', 'directory_changed', { change: event, on, ...operator })
  return result
}
