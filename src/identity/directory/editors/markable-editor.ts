/** Editors of what a mark can disable: clients and users, also those that no command changes (records/marks.ts). */
import type { Entry, PageQuery } from '../../../base/contracts/records/store.ts'
import type { Ended } from '../../../base/contracts/records/tokens.ts'
import {
  DirectoryRefusal,
  type EditingParts,
  type FoundRecord,
  type ListedPage,
  type PlannedChange,
} from './editing.ts'
import type { Loss } from '../records/holdings.ts'
import { type Markable, markKindOf, marksAmong, type MarkValue } from '../records/marks.ts'
import { NOUNS } from './nouns.ts'
import { writtenForm } from '../records/read-records.ts'
import { RecordEditor, type RecordKind, sum, type Switchable } from './record-editor.ts'
import { announceChange } from '../records/stored-directory.ts'

/** Somebody who is to be marked, or not to be any more. */
interface Marking<R> {
  readonly key: string
  readonly source: FoundRecord<R>['source']
  /** Without the mark. */
  readonly record: R
  readonly subjects: readonly string[]
  readonly losses: readonly Loss[]
}

type MarkableKind<R extends Switchable, C> = RecordKind<R, C> & { readonly what: Markable }

export abstract class MarkableEditor<R extends Switchable, C> extends RecordEditor<R, C> {
  readonly #what: Markable
  readonly #markKind: string

  constructor(kind: MarkableKind<R, C>, parts: EditingParts) {
    super(kind, parts)
    this.#what = kind.what
    this.#markKind = markKindOf(kind.what)
  }

  /** The subjects of a record, which the mark follows. */
  protected abstract subjectsOf(record: R): readonly string[]

  /** The subjects of a client or user that neither layer has; undefined if nobody is known. */
  protected abstract elsewhere(key: string): Promise<readonly string[] | undefined>

  /**
   * While it is disabled, its requests or logins are refused; everything issued for it ends. It may be disabled again. A
   * record of the store is changed there. Everything else gets a mark, and `enable` removes only that mark.
   */
  override async planSwitch(key: string, disabled: boolean): Promise<PlannedChange> {
    const { store } = this.parts
    const mark = await store.find(this.#markKind, key)
    const configured = this.kind.configured(this.parts).get(key)
    if (configured !== undefined)
      return this.#planMark(await this.#ofConfiguration(key, this.kind.asRecord(configured)), disabled, mark)
    if ((await store.find(this.kind.kind, key)) === undefined) {
      const subjects = disabled ? await this.elsewhere(key) : (mark?.value as MarkValue | undefined)?.subjects
      if (subjects !== undefined) return this.#planMark(this.#ofElsewhere(key, subjects), disabled, mark)
    }
    const planned = await this.planUnchecked(key, (record) => ({ record: { ...record, disabled } }))
    if (disabled || mark === undefined) return planned
    return {
      ...planned,
      commit: async (exactly) => {
        const ended = await planned.commit(exactly)
        if (ended !== undefined && (await store.remove(this.#markKind, key))) await this.#announceMark(key)
        return ended
      },
    }
  }

  override async show(key: string): Promise<FoundRecord<R>> {
    const mark = await this.parts.store.find(this.#markKind, key)
    if (mark === undefined || this.kind.configured(this.parts).has(key))
      return withMark(await super.show(key), mark)
    const isStored = (await this.parts.store.find(this.kind.kind, key)) !== undefined
    if (isStored) return withMark(await super.show(key), mark)
    const { subjects } = mark.value as MarkValue
    return withMark(this.#foundElsewhere(key, subjects), mark)
  }

  override async list(page: PageQuery): Promise<ListedPage<FoundRecord<R>>> {
    const { items, next } = await super.list(page)
    const names = items.map(({ key }) => key)
    const marks = await marksAmong(this.parts.store, this.#what, names, page)
    return { items: items.map((found) => withMark(found, marks.get(found.key))), next }
  }

  async #ofConfiguration(key: string, record: R): Promise<Marking<R>> {
    const losses = await this.losses(key, { ...record, disabled: false }, { ...record, disabled: true })
    return { key, source: 'configuration', record, subjects: this.subjectsOf(record), losses }
  }

  #ofElsewhere(key: string, subjects: readonly string[]): Marking<R> {
    const losses = subjects.map((subject): Loss => ({ tokens: { subject }, consents: false }))
    return { key, source: 'mark', record: this.#unknown(key, subjects), subjects, losses }
  }

  #foundElsewhere(key: string, subjects: readonly string[]): FoundRecord<R> {
    return { key, source: 'mark', record: this.#unknown(key, subjects), version: undefined }
  }

  /** The facts known about a client or user that neither layer has: to be shown, and never stored. */
  #unknown(key: string, [subject]: readonly string[]): R {
    const [name = ''] = NOUNS[this.#what].names
    const known = { [name]: key, ...(subject !== undefined && { subject }), disabled: false }
    return known as unknown as R
  }

  #planMark(marking: Marking<R>, disabled: boolean, mark: Entry | undefined): PlannedChange {
    const { key, source, record } = marking
    if (!disabled && mark === undefined && record.disabled)
      throw new DirectoryRefusal(
        `The configuration itself disables ${this.#what} "${key}", which no command changes: enable it there.`,
      )
    const losses = disabled ? marking.losses : []
    const end = (): Promise<readonly Ended[]> => this.end(losses, `change of the ${this.#what}`)
    const before = { ...record, disabled: record.disabled || mark !== undefined }
    const after = { ...record, disabled: record.disabled || disabled }
    const written = (each: R): Readonly<Record<string, unknown>> =>
      writtenForm(NOUNS[this.#what].schema, each)
    return {
      records: { before, after },
      // The record itself stays as it is: its tag is that of the record as it is shown, with the version of the mark.
      written: { before: written(record), after: written(record) },
      keys: [],
      warnings: [],
      version: mark?.version,
      mark: disabled ? 'set' : 'removed',
      ...(source === 'mark' && { shown: withMark(this.#foundElsewhere(key, marking.subjects), disabled) }),
      commit: async (exactly = false) => {
        // Before and after, as for a record that is changed.
        const earlier = exactly ? [] : await end()
        if (!(await this.#writeMark(marking, disabled, mark))) return undefined
        await this.#announceMark(key)
        const later = await end()
        await this.untilInForce()
        return losses.map((loss, index) => ({ loss, ended: sum(earlier[index], later[index]) }))
      },
    }
  }

  /** False if somebody else has changed it meanwhile. */
  async #writeMark(
    { key, subjects }: Marking<R>,
    disabled: boolean,
    mark: Entry | undefined,
  ): Promise<boolean> {
    const { store, clock } = this.parts
    const { since = clock.now() } = (mark?.value ?? {}) as Partial<MarkValue>
    const value: MarkValue = { name: key, subjects, since }
    if (!disabled) return mark === undefined || store.remove(this.#markKind, key, mark.version)
    return mark === undefined
      ? store.create(this.#markKind, key, { value: value })
      : store.replace(this.#markKind, key, mark.version, value)
  }

  #announceMark(key: string): Promise<void> {
    return announceChange(this.parts, { [this.#what]: key, mark: true })
  }
}

/** @param mark `true`: one that was just made */
function withMark<R>(found: FoundRecord<R>, mark: Entry | boolean | undefined): FoundRecord<R> {
  if (mark === undefined || mark === false) return found
  const version = found.source === 'store' || mark === true ? found.version : mark.version
  return { ...found, version, disabledByCommand: true }
}
