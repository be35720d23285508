/** Carries out orders on the directory's records, of the admin API and of commands alike: planned, recorded, made. */
import type { AuditedChange } from '../audit/audited-change.ts'
import { Problems } from '../config/problems.ts'
import type { AuditObject } from '../contracts/audit.ts'
import type { Page } from '../contracts/store.ts'
import type { WrittenClient } from '../directory/client-editor.ts'
import type { Editors, NounEditor } from '../directory/editors.ts'
import {
  addedFacts,
  changeFacts,
  keyOfNames,
  type NounName,
  NOUNS,
  shownForm,
  type ShownRecord,
  showRecord,
  tagOf,
  type Written,
} from '../directory/nouns.ts'
import {
  ATTEMPTS,
  changedByOthers,
  type ChangesOf,
  DirectoryRefusal,
  type ListedPage,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
} from '../directory/editing.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'
import { newSecret } from '../kernel/ids.ts'
import {
  type AddedRecord,
  type DirectoryOrders,
  type EditedRecord,
  type IsMeant,
  OvertakenError,
  type RecordAt,
  type SecretOptions,
  type SwitchedRecord,
} from '../operator/directory-orders.ts'
import { LESSENED } from '../settings/takes-away.ts'

/** An act on a user has the user's name as a personal value. */
export interface DirectoryChange extends AuditedChange {
  readonly username?: string
}

export interface ChangeRecorder {
  /**
   * Does the work and records it: before, if it gives something, and not at all if that cannot be recorded; else after it.
   * Rejects as the work does.
   */
  keep<T>(act: DirectoryChange, gives: boolean, work: () => Promise<T>): Promise<T>
}

export interface DirectoryControlParts {
  /** Those for the configuration in force. */
  readonly editors: () => Promise<Editors>
  readonly changes: ChangeRecorder
  /** Rejects with Fault `audit_unavailable` if what gives something could not be recorded now. Default: nobody knows before. */
  readonly canRecord?: () => Promise<void>
}

/** As the audit trail names a record. */
const OBJECTS: Readonly<Record<NounName, (names: readonly string[]) => AuditObject>> = {
  client: ([id]) => ({ kind: 'client', id }),
  user: () => ({ kind: 'user' }),
  business: ([business]) => ({ kind: 'business', business }),
  fund: ([business, fund]) => ({ kind: 'fund', business, fund }),
  role: ([id]) => ({ kind: 'role', id }),
}

export class DirectoryControl implements DirectoryOrders {
  readonly #parts: DirectoryControlParts

  constructor(parts: DirectoryControlParts) {
    this.#parts = parts
  }

  async list(noun: NounName, within: readonly string[], page: Page): Promise<ListedPage<Written>> {
    const editors = await this.#parts.editors()
    // So that a list of the funds of no business is refused.
    if (within.length > 0) await editors.business.show(keyOfNames(within))
    const below = within.length === 0 ? '' : `${keyOfNames(within)}/`
    const { after, limit, prefix = '' } = page
    const { items, next } = await editors[noun].list({
      ...{ limit, prefix: `${below}${prefix}` },
      after: after === undefined ? undefined : `${below}${after}`,
    })
    return { items: items.map((found) => shownForm(noun, found)), next: next?.slice(below.length) }
  }

  async show({ noun, names }: RecordAt): Promise<ShownRecord> {
    const editors = await this.#parts.editors()
    return showRecord(noun, await editors[noun].show(keyOfNames(names)))
  }

  async add(
    noun: NounName,
    given: Written,
    { secret: brought, preview = false }: SecretOptions = {},
  ): Promise<AddedRecord> {
    const { defaults, names, hashed } = NOUNS[noun]
    refuseHidden(noun, given, hashed)
    const written = { ...defaults?.(given), ...given }
    const editors = await this.#parts.editors()
    const editor: NounEditor = editors[noun]
    const planned: PlannedAdd = await (noun === 'client'
      ? editors.client.planAdd(written as Written & WrittenClient, brought)
      : editor.planAdd(written))
    const { unshown, warnings } = planned
    if (preview) {
      await this.#parts.canRecord?.()
      const record = unshown === undefined ? written : shownForm('client', unshown.client)
      return { record, tag: '', secret: unshown?.secret, warnings }
    }
    const at = { noun, names: names.map((name) => String(written[name])) }
    const act = { ...actOf(at, 'added', written['subject']), change: addedFacts(noun, written) }
    const secret = await this.#parts.changes.keep(act, true, () => planned.commit())
    return { ...(await this.show(at)), secret, warnings }
  }

  async edit(at: RecordAt, changes: ChangesOf, isMeant?: IsMeant): Promise<EditedRecord> {
    const editor = (await this.#parts.editors())[at.noun]
    const { planned, result } = await this.#doLatest(at, isMeant, {
      plan: async () => {
        const change = await editor.plan(keyOfNames(at.names), withoutHidden(at.noun, changes))
        refuseFixed(at.noun, change)
        return change.keys.length === 0 ? asItWas(change) : change
      },
      act: (change) =>
        change.keys.length === 0
          ? undefined
          : {
              ...actOf(at, 'changed', subjectOf(change)),
              change: changeFacts(change, NOUNS[at.noun].personal),
            },
      gives: ({ records }) => !LESSENED[at.noun](records.before, records.after),
    })
    const { keys, warnings } = planned
    return { ...(await this.show(at)), changed: keys, ended: result, warnings }
  }

  disable(at: RecordAt, isMeant?: IsMeant): Promise<SwitchedRecord> {
    return this.#switch(at, 'disabled', isMeant, (editor, key) => editor.planSwitch(key, true))
  }

  enable(at: RecordAt, isMeant?: IsMeant): Promise<SwitchedRecord> {
    return this.#switch(at, 'enabled', isMeant, (editor, key) => editor.planSwitch(key, false))
  }

  async remove(at: RecordAt, isMeant?: IsMeant): Promise<void> {
    const editor = (await this.#parts.editors())[at.noun]
    await this.#doLatest(at, isMeant, {
      ...{ plan: () => editor.planRemoval(keyOfNames(at.names)), gives: () => false },
      act: (planned) => actOf(at, 'removed', subjectOf(planned)),
    })
  }

  async rotateSecret(
    client: string,
    overlap: number,
    isMeant?: IsMeant,
    { secret: brought, preview = false }: SecretOptions = {},
  ): Promise<ShownRecord & { readonly secret: string }> {
    const editors = await this.#parts.editors()
    // The same, however often the step is planned.
    const secret = brought ?? newSecret()
    const at: RecordAt = { noun: 'client', names: [client] }
    const plan = () => editors.client.planSecret(client, overlap, secret)
    if (preview) {
      const { unshown } = await plan()
      await this.#parts.canRecord?.()
      return { record: shownForm('client', unshown.client), tag: '', secret }
    }
    const { result } = await this.#doLatest(at, isMeant, {
      ...{ plan, gives: () => true },
      act: () => ({ ...actOf(at, 'secret_rotated'), change: { overlapMs: overlap } }),
    })
    return { ...(await this.show(at)), secret: result }
  }

  async setPassword(username: string, password: unknown, isMeant?: IsMeant): Promise<SwitchedRecord> {
    const editors = await this.#parts.editors()
    const at: RecordAt = { noun: 'user', names: [username] }
    return this.#switch(at, 'password_set', isMeant, () => editors.user.planPassword(username, password))
  }

  async #switch(
    at: RecordAt,
    done: 'disabled' | 'enabled' | 'password_set',
    isMeant: IsMeant | undefined,
    plan: (editor: NounEditor, key: string) => Promise<PlannedChange>,
  ): Promise<SwitchedRecord> {
    const editor = (await this.#parts.editors())[at.noun]
    const { result } = await this.#doLatest(at, isMeant, {
      ...{ plan: () => plan(editor, keyOfNames(at.names)), gives: () => done !== 'disabled' },
      act: (planned) => actOf(at, done, subjectOf(planned)),
    })
    return { ...(await this.show(at)), ended: result }
  }

  /**
   * Plans a step, then records it and does it; plans it anew if somebody else has changed the record meanwhile. A step that
   * is refused when it is planned leaves no record: nothing was begun.
   */
  async #doLatest<T, P>(
    at: RecordAt,
    isMeant: IsMeant | undefined,
    { plan, act, gives }: Step<T, P>,
  ): Promise<{ readonly planned: P; readonly result: T }> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const planned = await plan()
      const tag = tagOf(at.noun, planned.version, planned.written.before)
      if (isMeant?.(tag) === false) throw new OvertakenError(tag)
      const commit = (): Promise<T | undefined> => planned.commit(isMeant !== undefined)
      const told = act(planned)
      const result = await (told ? this.#unlessOvertaken(told, gives(planned), commit) : commit())
      if (result !== undefined) return { planned, result }
    }
    throw changedByOthers(keyOfNames(at.names))
  }

  /** Does work that resolves with undefined if somebody else has changed the record: recorded as failed then. */
  async #unlessOvertaken<T>(
    act: DirectoryChange,
    gives: boolean,
    work: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const overtaken = new OvertakenError('')
    const orThrow = async (): Promise<T> => {
      const result = await work()
      if (result === undefined) throw overtaken
      return result
    }
    return this.#parts.changes.keep(act, gives, orThrow).catch((thrown: unknown) => {
      if (thrown === overtaken) return undefined
      throw thrown
    })
  }
}

type Done = 'added' | 'changed' | 'disabled' | 'enabled' | 'removed' | 'secret_rotated' | 'password_set'

/** How something is done to a record, and how the audit trail tells of it. */
interface Step<T, P> {
  readonly plan: () => Promise<P & PlannedStep<T>>
  /** Undefined if nothing changes: then nothing is recorded. */
  readonly act: (planned: P) => DirectoryChange | undefined
  readonly gives: (planned: P) => boolean
}

/** A change of nothing. */
const asItWas = (change: PlannedChange): PlannedChange => ({ ...change, commit: () => Promise.resolve([]) })

/** Of a user. */
const subjectOf = ({ written }: Pick<PlannedStep<unknown>, 'written'>): unknown => written.before['subject']

function actOf({ noun, names }: RecordAt, done: Done, subject?: unknown): DirectoryChange {
  const event = `${noun}.${done}` as AuditEvent
  const on = { ...OBJECTS[noun](names), ...(typeof subject === 'string' && { subject }) }
  return noun === 'user' ? { event, on, username: keyOfNames(names) } : { event, on }
}

/** @throws DirectoryRefusal if members with hashes are written, but for those of `allowed` */
function refuseHidden(noun: NounName, written: Written, allowed: readonly string[]): void {
  const problems = new Problems()
  for (const [member, instead] of Object.entries(NOUNS[noun].hidden))
    if (Object.hasOwn(written, member) && !allowed.includes(member))
      problems.error([member], `cannot be written: ${instead}`)
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
  for (const member of NOUNS[noun].fixed)
    if (keys.includes(member)) problems.error([member], `never changes: add another ${noun} instead`)
  if (problems.failed) throw new DirectoryRefusal(`The ${noun} has problems.`, problems)
}
