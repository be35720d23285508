/** Carries out orders on the directory's records, of the admin API and of commands alike: planned, recorded, made. */
import type { AuditObject } from '../contracts/audit.ts'
import type { Page } from '../contracts/store.ts'
import { Report } from '../config/report.ts'
import { addedFacts, changeFacts } from '../directory/change-facts.ts'
import type { Editors, NounEditor } from '../directory/editors.ts'
import type { ListedPage } from '../directory/listing.ts'
import { keyOfNames, type NounName, NOUNS, type Written } from '../directory/nouns.ts'
import type { ChangesOf, EndedLoss, PlannedChange } from '../directory/planned-change.ts'
import { shownForm, showRecord, type ShownRecord, tagOf } from '../directory/shown-record.ts'
import { ATTEMPTS, changedByOthers, DirectoryRefusal } from '../directory/stored-editing.ts'
import { AUDIT_EVENTS, type AuditEvent } from '../kernel/audit-events.ts'
import type { Act } from '../operations/acts.ts'
import {
  type AddedRecord,
  type DirectoryOrders,
  type EditedRecord,
  type IsMeant,
  OvertakenError,
  type RecordAt,
  type SwitchedRecord,
} from '../operations/directory-orders.ts'
import { LESSENED } from '../settings/takes-away.ts'

/** An act on a user has the user's name as a personal value. */
export interface DirectoryAct extends Act {
  readonly username?: string
}

export interface ActKeeper {
  /**
   * Does the work and records it: before, if it gives something, and not at all if that cannot be recorded; else after it.
   * Rejects as the work does.
   */
  keep<T>(act: DirectoryAct, gives: boolean, work: () => Promise<T>): Promise<T>
}

export interface DirectoryControlParts {
  /** Those for the configuration in force. */
  readonly editors: () => Promise<Editors>
  readonly keeper: ActKeeper
}

/** As the audit trail names a record. */
const OBJECTS: Readonly<Record<NounName, (names: readonly string[]) => AuditObject>> = {
  client: ([id]) => ({ kind: 'client', id }),
  user: () => ({ kind: 'user' }),
  business: ([business]) => ({ kind: 'business', business }),
  fund: ([business, fund]) => ({ kind: 'fund', business, fund }),
  role: ([id]) => ({ kind: 'role', id }),
}

const ANY_VERSION: IsMeant = () => true

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

  async add(noun: NounName, given: Written): Promise<AddedRecord> {
    const { defaults, names, hashed } = NOUNS[noun]
    refuseHidden(noun, given, hashed)
    const written = { ...defaults?.(given), ...given }
    const editor: NounEditor = (await this.#parts.editors())[noun]
    const at = { noun, names: names.map((name) => String(written[name])) }
    const act = { ...actOf(at, 'added', written['subject']), change: addedFacts(noun, written) }
    const { secret, warnings } = await this.#keep(act, () => editor.add(written))
    return { ...(await this.show(at)), secret, warnings }
  }

  async edit(at: RecordAt, changes: ChangesOf, isMeant = ANY_VERSION): Promise<EditedRecord> {
    const editor = (await this.#parts.editors())[at.noun]
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const planned = await editor.plan(keyOfNames(at.names), withoutHidden(at.noun, changes))
      refuseFixed(at.noun, planned)
      const tag = tagOf(at.noun, planned.version, planned.written.before)
      if (!isMeant(tag)) throw new OvertakenError(tag)
      const ended = await this.#commit(at, planned)
      if (ended === undefined) continue
      return { ...(await this.show(at)), changed: planned.keys, ended, warnings: planned.warnings }
    }
    throw changedByOthers(keyOfNames(at.names))
  }

  disable(at: RecordAt): Promise<SwitchedRecord> {
    return this.#switch(at, 'disabled', (editor, key) => editor.disable(key))
  }

  enable(at: RecordAt): Promise<SwitchedRecord> {
    return this.#switch(at, 'enabled', async (editor, key) => {
      await editor.enable(key)
      return []
    })
  }

  async remove(at: RecordAt, isMeant?: IsMeant): Promise<void> {
    const editor = (await this.#parts.editors())[at.noun]
    const key = keyOfNames(at.names)
    const act = await this.#actOn(at, 'removed')
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const version = isMeant && (await this.#meantVersion(at, editor, isMeant))
      const remove = async () => (await editor.remove(key, version)) || undefined
      if (await this.#unlessOvertaken(act, false, remove)) return
    }
    throw changedByOthers(key)
  }

  async rotateSecret(client: string, overlap: number): Promise<ShownRecord & { readonly secret: string }> {
    const editors = await this.#parts.editors()
    const at: RecordAt = { noun: 'client', names: [client] }
    const act = { ...actOf(at, 'secret_rotated'), change: { overlapMs: overlap } }
    const secret = await this.#keep(act, () => editors.client.rotateSecret(client, overlap))
    return { ...(await this.show(at)), secret }
  }

  async setPassword(username: string, password: unknown): Promise<SwitchedRecord> {
    const editors = await this.#parts.editors()
    const at: RecordAt = { noun: 'user', names: [username] }
    const act = await this.#actOn(at, 'password_set')
    const ended = await this.#keep(act, () => editors.user.setPassword(username, password))
    return { ...(await this.show(at)), ended }
  }

  /** The version of the store's record, if it is meant. Undefined for one of the configuration, which is refused then. */
  async #meantVersion(at: RecordAt, editor: NounEditor, isMeant: IsMeant): Promise<number | undefined> {
    const found = await editor.show(keyOfNames(at.names))
    const { tag } = showRecord(at.noun, found)
    if (!isMeant(tag)) throw new OvertakenError(tag)
    return found.version
  }

  async #switch(
    at: RecordAt,
    done: 'disabled' | 'enabled',
    work: (editor: NounEditor, key: string) => Promise<readonly EndedLoss[]>,
  ): Promise<SwitchedRecord> {
    const editor = (await this.#parts.editors())[at.noun]
    const ended = await this.#keep(await this.#actOn(at, done), () => work(editor, keyOfNames(at.names)))
    return { ...(await this.show(at)), ended }
  }

  /** Makes a change. Undefined if somebody else has changed the record since it was planned. */
  async #commit(at: RecordAt, planned: PlannedChange): Promise<readonly EndedLoss[] | undefined> {
    if (planned.keys.length === 0) return []
    const act = await this.#actOn(at, 'changed')
    const change = changeFacts(planned, NOUNS[at.noun].personal)
    const gives = !LESSENED[at.noun](planned.records.before, planned.records.after)
    return this.#unlessOvertaken({ ...act, change }, gives, () => planned.commit())
  }

  /** Does work that resolves with undefined if somebody else has changed the record: recorded as failed then. */
  async #unlessOvertaken<T>(
    act: DirectoryAct,
    gives: boolean,
    work: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const overtaken = new OvertakenError('')
    const orThrow = async (): Promise<T> => {
      const result = await work()
      if (result === undefined) throw overtaken
      return result
    }
    return this.#parts.keeper.keep(act, gives, orThrow).catch((thrown: unknown) => {
      if (thrown === overtaken) return undefined
      throw thrown
    })
  }

  #keep<T>(act: DirectoryAct, work: () => Promise<T>): Promise<T> {
    return this.#parts.keeper.keep(act, AUDIT_EVENTS[act.event].weight === 'gives', work)
  }

  /** The subject of a user who exists is looked up. */
  async #actOn(at: RecordAt, done: Done): Promise<DirectoryAct> {
    if (at.noun !== 'user') return actOf(at, done)
    const editors = await this.#parts.editors()
    const found = await editors.user.show(keyOfNames(at.names)).catch((thrown: unknown) => {
      if (thrown instanceof DirectoryRefusal) return undefined
      throw thrown
    })
    return actOf(at, done, found?.record.subject)
  }
}

type Done = 'added' | 'changed' | 'disabled' | 'enabled' | 'removed' | 'secret_rotated' | 'password_set'

function actOf({ noun, names }: RecordAt, done: Done, subject?: unknown): DirectoryAct {
  const event = `${noun}.${done}` as AuditEvent
  const on = { ...OBJECTS[noun](names), ...(typeof subject === 'string' && { subject }) }
  return noun === 'user' ? { event, on, username: keyOfNames(names) } : { event, on }
}

/** @throws DirectoryRefusal if members with hashes are written, but for those of `allowed` */
function refuseHidden(noun: NounName, written: Written, allowed: readonly string[]): void {
  const report = new Report()
  for (const [member, instead] of Object.entries(NOUNS[noun].hidden))
    if (Object.hasOwn(written, member) && !allowed.includes(member))
      report.error([member], `cannot be written: ${instead}`)
  if (report.failed) throw new DirectoryRefusal(`The ${noun} has problems.`, report)
}

const withoutHidden =
  (noun: NounName, changes: ChangesOf): ChangesOf =>
  (before) => {
    const changed = changes(before)
    refuseHidden(noun, changed, [])
    return changed
  }

function refuseFixed(noun: NounName, { keys }: PlannedChange): void {
  const report = new Report()
  for (const member of NOUNS[noun].fixed)
    if (keys.includes(member)) report.error([member], `never changes: add another ${noun} instead`)
  if (report.failed) throw new DirectoryRefusal(`The ${noun} has problems.`, report)
}
