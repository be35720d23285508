/** What operators do to the records of the directory (C11.5.1): planned, recorded, made. */
import {
  type AuditedChange,
  type Operator,
  recordGiving,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import { type Problem, Problems } from '../../base/config/problems.ts'
import type { AuditObject } from '../../base/contracts/records/audit.ts'
import type { PageQuery } from '../../base/contracts/records/store.ts'
import type { WrittenClient } from '../../identity/directory/editors/client-editor.ts'
import {
  ATTEMPTS,
  changedByOthers,
  type ChangesOf,
  DirectoryRefusal,
  type EndedLoss,
  type ListedPage,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
} from '../../identity/directory/editors/editing.ts'
import type { NounEditor } from '../../identity/directory/editors/editors.ts'
import {
  addedFacts,
  changeFacts,
  isFixed,
  keyOfNames,
  memberFactsOf,
  type NounName,
  NOUNS,
  shownForm,
  type ShownRecord,
  showRecord,
  tagOf,
  type Written,
} from '../../identity/directory/editors/nouns.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import { onlyLessens } from '../../base/config/lessens.ts'
import { viewOf } from '../../base/config/schema.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { IsMeant } from '../operation/conditions.ts'
import type { OperationContext } from '../operation/context.ts'

// Every function rejects with DirectoryRefusal if what is asked is not allowed, with Fault `identity_unavailable` if the
// store cannot be reached, with Fault `audit_unavailable` if what gives something cannot be recorded, and with
// OvertakenError. A change is in force everywhere when its promise resolves; what is added, within a second.

/** A record, by its noun and its names: for a fund its business and its code. */
export interface RecordAt {
  readonly noun: NounName
  readonly names: readonly string[]
}

/** A record, who changes it, and which of its versions is meant: the latest one, if nothing is said. */
export interface MeantRecord {
  readonly at: RecordAt
  readonly operator: Operator
  readonly isMeant: IsMeant | undefined
}

/** A secret that is to be in force, and whether it is to be stored, or only previewed: it can be shown before. */
export interface SecretOptions {
  /** Default: another one is drawn. */
  readonly secret?: string | undefined
  /** `recorded`: it is recorded that it is about to be stored, by the intent that is returned. */
  readonly preview?: 'true' | 'recorded' | undefined
  /** The intent of such a preview. */
  readonly intent?: string | undefined
}

interface AddedRecord extends ShownRecord {
  /** The secret of a new client: to be shown once, because only its hash is stored. */
  readonly secret: string | undefined
  readonly warnings: readonly Problem[]
  /** Which intent a preview has recorded. */
  readonly intent?: string | undefined
}

interface EditedRecord extends ShownRecord {
  /** The members that have changed. */
  readonly changed: readonly string[]
  /** What the change has ended. */
  readonly ended: readonly EndedLoss[]
  readonly warnings: readonly Problem[]
}

type SwitchedRecord = Pick<EditedRecord, 'record' | 'tag' | 'ended'>

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

/** A page of the records of both layers. `within` are the names before the last one: of funds their business. */
export async function listRecords(
  context: OperationContext,
  noun: NounName,
  within: readonly string[],
  { after, limit, prefix = '' }: PageQuery,
): Promise<ListedPage<Written>> {
  const editors = await context.editors()
  // Refuses a list of the funds of a business that does not exist.
  if (within.length > 0) await editors.business.show(keyOfNames(within))
  const below = within.length === 0 ? '' : `${keyOfNames(within)}/`
  const { items, next } = await editors[noun].list({
    limit,
    prefix: `${below}${prefix}`,
    after: after === undefined ? undefined : `${below}${after}`,
  })
  return { items: items.map((found) => shownForm(noun, found)), next: next?.slice(below.length) }
}

export async function findRecord(context: OperationContext, { noun, names }: RecordAt): Promise<ShownRecord> {
  const editors = await context.editors()
  return showRecord(noun, await editors[noun].show(keyOfNames(names)))
}

/** With `preview`, the record has no tag. */
export async function addRecord(
  context: OperationContext,
  operator: Operator,
  noun: NounName,
  given: Written,
  { secret: brought, preview, intent }: SecretOptions = {},
): Promise<AddedRecord> {
  const { defaults, names, hashed = [] } = NOUNS[noun]
  refuseHidden(noun, given, hashed)
  const written = { ...defaults?.(given), ...given }
  const editors = await context.editors()
  const editor: NounEditor = editors[noun]
  const planned: PlannedAdd = await (noun === 'client'
    ? editors.client.planAdd(written as Written & WrittenClient, brought)
    : editor.planAdd(written))
  const { unshown, warnings } = planned
  const at = { noun, names: names.map((name) => String(written[name])) }
  const change = { ...changeOf(at, 'added', written['subject']), change: addedFacts(noun, written) }
  if (preview !== undefined) {
    const record = unshown === undefined ? written : shownForm('client', unshown.client)
    const isRecorded = preview === 'recorded' && unshown !== undefined
    const begun = isRecorded ? await context.intents.begin(change, operator) : undefined
    return { record, tag: '', secret: unshown?.secret, warnings, intent: begun }
  }
  const secret = await recorded(context, operator, change, () => planned.commit(), { gives: true, intent })
  return { ...(await findRecord(context, at)), secret, warnings }
}

export async function editRecord(
  context: OperationContext,
  meant: MeantRecord,
  changes: ChangesOf,
): Promise<EditedRecord> {
  const { at } = meant
  const editor = (await context.editors())[at.noun]
  const { planned, result } = await doLatest(context, meant, {
    plan: async () => {
      const change = await editor.plan(keyOfNames(at.names), withoutHidden(at.noun, changes))
      refuseFixed(at.noun, change)
      return change.keys.length === 0 ? asItWas(change) : change
    },
    change: (planned) =>
      planned.keys.length === 0
        ? undefined
        : {
            ...changeOf(at, 'changed', subjectOf(planned)),
            change: changeFacts(NOUNS[at.noun], planned),
          },
    gives: ({ records }) => !onlyLessens(viewOf(NOUNS[at.noun].schema), records.before, records.after),
  })
  const { keys, warnings } = planned
  return { ...(await findRecord(context, at)), changed: keys, ended: result, warnings }
}

export const disableRecord = (context: OperationContext, meant: MeantRecord): Promise<SwitchedRecord> =>
  switchRecord(context, meant, 'disabled', (editor, key) => editor.planSwitch(key, true))

export const enableRecord = (context: OperationContext, meant: MeantRecord): Promise<SwitchedRecord> =>
  switchRecord(context, meant, 'enabled', (editor, key) => editor.planSwitch(key, false))

export async function removeRecord(context: OperationContext, meant: MeantRecord): Promise<void> {
  const { noun, names } = meant.at
  const editor = (await context.editors())[noun]
  await doLatest(context, meant, {
    plan: () => editor.planRemoval(keyOfNames(names)),
    gives: () => false,
    change: (planned) => changeOf(meant.at, 'removed', subjectOf(planned)),
  })
}

/**
 * The old secret stays valid for so many milliseconds.
 *
 * @param meant a client
 */
export async function rotateSecret(
  context: OperationContext,
  meant: MeantRecord,
  overlap: number,
  { secret: brought, preview, intent }: SecretOptions = {},
): Promise<ShownRecord & { readonly secret: string; readonly intent?: string | undefined }> {
  const { at, operator } = meant
  const editors = await context.editors()
  // The same, however often the step is planned.
  const secret = brought ?? newSecret()
  const plan = () => editors.client.planSecret(keyOfNames(at.names), overlap, secret)
  const change = { ...changeOf(at, 'secret_rotated'), change: { overlapMs: overlap } }
  if (preview !== undefined) {
    const { unshown } = await plan()
    const begun = preview === 'recorded' ? await context.intents.begin(change, operator) : undefined
    return { record: shownForm('client', unshown.client), tag: '', secret, intent: begun }
  }
  // With an intent, one record is for all attempts.
  const rotate = (recordedAs: RecordChange | undefined) =>
    doLatest(context, meant, { plan, gives: () => true, change: () => recordedAs })
  const { result } = await (intent === undefined
    ? rotate(change)
    : recorded(context, operator, change, () => rotate(undefined), { gives: true, intent }))
  return { ...(await findRecord(context, at)), secret: result }
}

/** @param meant a user */
export async function setPassword(
  context: OperationContext,
  meant: MeantRecord,
  password: unknown,
): Promise<SwitchedRecord> {
  const editors = await context.editors()
  return switchRecord(context, meant, 'password_set', (_editor, username) =>
    editors.user.planPassword(username, password),
  )
}

async function switchRecord(
  context: OperationContext,
  meant: MeantRecord,
  done: 'disabled' | 'enabled' | 'password_set',
  plan: (editor: NounEditor, key: string) => Promise<PlannedChange>,
): Promise<SwitchedRecord> {
  const { at } = meant
  const editor = (await context.editors())[at.noun]
  const { planned, result } = await doLatest(context, meant, {
    plan: () => plan(editor, keyOfNames(at.names)),
    gives: () => done !== 'disabled',
    change: (planned) => ({
      ...changeOf(at, done, subjectOf(planned)),
      ...(planned.mark && { change: { mark: planned.mark } }),
    }),
  })
  const { shown } = planned
  return { ...(shown ? showRecord(at.noun, shown) : await findRecord(context, at)), ended: result }
}

/** A change of a user has the user's name as a personal value. */
interface RecordChange extends AuditedChange {
  readonly username?: string
}

/** How something is done to a record, and how the audit trail tells of it. */
interface Step<T, P> {
  readonly plan: () => Promise<P & PlannedStep<T>>
  /** Undefined if nothing changes: then nothing is recorded. */
  readonly change: (planned: P) => RecordChange | undefined
  readonly gives: (planned: P) => boolean
}

/**
 * Plans a step, then records it and does it; plans it anew if somebody else has changed the record meanwhile. A step that
 * is refused when it is planned leaves no record: nothing was begun.
 */
async function doLatest<T, P>(
  context: OperationContext,
  { at, operator, isMeant }: MeantRecord,
  { plan, change, gives }: Step<T, P>,
): Promise<{ readonly planned: P; readonly result: T }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const planned = await plan()
    const tag = tagOf(at.noun, planned.version, planned.written.before)
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
  change: RecordChange,
  gives: boolean,
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const overtaken = new OvertakenError('')
  const orThrow = async (): Promise<T> => {
    const result = await work()
    if (result === undefined) throw overtaken
    return result
  }
  return recorded(context, operator, change, orThrow, { gives }).catch((thrown: unknown) => {
    if (thrown === overtaken) return undefined
    throw thrown
  })
}

/**
 * Does the work and records it. Work that gives something is recorded first, and not done if that fails; any other work is
 * recorded afterwards. Rejects as the work does.
 */
async function recorded<T>(
  { audit, recorder, intents }: OperationContext,
  operator: Operator,
  { username, ...change }: RecordChange,
  work: () => Promise<T>,
  { gives, intent }: { readonly gives: boolean; readonly intent?: string | undefined },
): Promise<T> {
  const record = gives ? recordGiving : recordTaking
  const personal = username === undefined ? undefined : { 'on.id': username }
  const result = await (intent === undefined
    ? record(audit, operator, { ...change, ...(personal && { personal }) }, work)
    : intents.take(intent, change, operator).carryOut(work))
  const { event, on } = change
  recorder.note('info', 'directory_changed', { change: event, on, ...operator })
  return result
}

/** The object of a record as the audit trail names it. */
const OBJECTS: Readonly<Record<NounName, (names: readonly string[]) => AuditObject>> = {
  client: ([id]) => ({ kind: 'client', id }),
  user: () => ({ kind: 'user' }),
  business: ([business]) => ({ kind: 'business', business }),
  fund: ([business, fund]) => ({ kind: 'fund', business, fund }),
  role: ([id]) => ({ kind: 'role', id }),
}

type Done = 'added' | 'changed' | 'disabled' | 'enabled' | 'removed' | 'secret_rotated' | 'password_set'

function changeOf({ noun, names }: RecordAt, done: Done, subject?: unknown): RecordChange {
  const event = `${noun}.${done}` as AuditEvent
  const on = { ...OBJECTS[noun](names), ...(typeof subject === 'string' && { subject }) }
  return noun === 'user' ? { event, on, username: keyOfNames(names) } : { event, on }
}

/** The same change, without any effect. */
const asItWas = (change: PlannedChange): PlannedChange => ({ ...change, commit: () => Promise.resolve([]) })

/** The subject of a user. */
const subjectOf = ({ written }: Pick<PlannedStep<unknown>, 'written'>): unknown => written.before['subject']

/** @throws DirectoryRefusal if members with hashes are written, but for those of `allowed` */
function refuseHidden(noun: NounName, written: Written, allowed: readonly string[]): void {
  const problems = new Problems()
  for (const [member, { hidden }] of Object.entries(memberFactsOf(NOUNS[noun])))
    if (hidden !== undefined && Object.hasOwn(written, member) && !allowed.includes(member))
      problems.error([member], `cannot be written: ${hidden}`)
  if (problems.failed) throw new DirectoryRefusal(`The ${noun} has problems.`, problems)
}

const withoutHidden =
  (noun: NounName, changes: ChangesOf): ChangesOf =>
  (before) => {
    const changed = changes(before)
    refuseHidden(noun, changed, [])
    return changed
  }

function refuseFixed(noun: NounName, { keys }: PlannedChange): void {
  const problems = new Problems()
  for (const member of keys)
    if (isFixed(NOUNS[noun], member)) problems.error([member], `never changes: add another ${noun} instead`)
  if (problems.failed) throw new DirectoryRefusal(`The ${noun} has problems.`, problems)
}
