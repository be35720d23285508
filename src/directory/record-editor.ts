/** Adds and changes the businesses, funds and roles of the store: one editor for all three, and a table of what differs. */
import { announce } from './stored-directory.ts'
import { Report, type Problem } from '../config/report.ts'
import type { TSchema } from '../config/schema.ts'
import type { Entry, IndexValues, Page, StoredValue } from '../contracts/store.ts'
import type { Holdings } from './holdings.ts'
import { type ListedEntry, type ListedPage, pageOf, type Source } from './listing.ts'
import { type Loss, lossesBetween } from './losses.ts'
import { stored } from './place-records.ts'
import { type ChangesOf, type EndedLoss, merged, planChange, type PlannedChange } from './planned-change.ts'
import { problemsAt, readRecord, type RecordProblems, writtenForm } from './read-records.ts'
import {
  ATTEMPTS,
  changedByOthers,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  missingText,
  untilInForce,
} from './stored-editing.ts'

/** What an operator can switch off. */
interface Switchable {
  readonly disabled: boolean
}

/** What differs between the kinds of records. */
export interface RecordKind<R extends Switchable, C> {
  /** As people call it, and the member of the announcement that has its key. */
  readonly what: 'business' | 'fund' | 'role'
  readonly kind: string
  readonly schema: TSchema
  readonly read: (value: StoredValue) => R
  readonly keyOf: (record: R) => string
  /** The members of the key: they cannot change. */
  readonly fixed: readonly (keyof R & string)[]
  readonly indexes?: (record: R) => IndexValues
  /** Those of the configuration, by key. */
  readonly configured: (parts: EditingParts) => ReadonlyMap<string, C>
  /** One of the configuration, as a record of the store would be. */
  readonly asRecord: (configured: C) => R
  /** Why a key cannot be changed here; undefined if it can. */
  readonly taken: (key: string, parts: EditingParts) => string | undefined
  /** Reports what the schema cannot say. */
  readonly check: (record: R, parts: EditingParts, problems: RecordProblems) => void
  /** Rejects with DirectoryRefusal if such a record may not be added. */
  readonly admit?: (record: R, parts: EditingParts) => Promise<void>
  /** What others may hold because of it. Undefined: it was removed. */
  readonly holdings: (record: R | undefined, key: string, parts: EditingParts) => Holdings
  /** Removes what belongs to it. */
  readonly clear?: (key: string, parts: EditingParts) => Promise<unknown>
}

/** A record, and where it stands. */
export interface FoundRecord<R> {
  readonly key: string
  readonly source: Source
  readonly record: R
  /** Of the store: grows with each change. */
  readonly version: number | undefined
}

export interface AddedRecord<R> {
  readonly record: R
  readonly warnings: readonly Problem[]
}

/**
 * Changes the records of one kind in the store. Those of the configuration are only shown and listed. All methods reject
 * with DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class RecordEditor<R extends Switchable, C> {
  readonly #kind: RecordKind<R, C>
  readonly #parts: EditingParts

  constructor(kind: RecordKind<R, C>, parts: EditingParts) {
    this.#kind = kind
    this.#parts = parts
  }

  /** Refuses a record that has problems, and a key that is taken. In force everywhere within a second. */
  async add(written: object): Promise<AddedRecord<R>> {
    const report = new Report()
    const record = this.#read(written, report)
    const key = this.#kind.keyOf(record)
    this.#refuseTaken(key)
    await this.#kind.admit?.(record, this.#parts)
    const entry = {
      value: stored(record),
      ...(this.#kind.indexes && { indexes: this.#kind.indexes(record) }),
    }
    if (!(await this.#parts.store.create(this.#kind.kind, key, entry)))
      throw new DirectoryRefusal(`There is a ${this.#kind.what} "${key}" already.`)
    await this.#announce(key)
    return { record, warnings: report.problems }
  }

  /** Rejects with DirectoryRefusal if neither layer has it. */
  async show(key: string): Promise<FoundRecord<R>> {
    const configured = this.#kind.configured(this.#parts).get(key)
    if (configured !== undefined) return this.#ofConfiguration(key, configured)
    return this.#ofStore(await this.#entry(key))
  }

  /** One page of both layers, in the order of keys. */
  async list(page: Page): Promise<ListedPage<FoundRecord<R>>> {
    const configured = this.#kind.configured(this.#parts)
    const { items, next } = await pageOf(
      { configured, store: this.#parts.store, kind: this.#kind.kind },
      page,
    )
    return { items: items.map((item) => this.#found(item)), next }
  }

  /** A change of what is written. Refuses one that `add` would refuse, and another key. */
  plan(key: string, changes: ChangesOf): Promise<PlannedChange> {
    return this.#plan(key, changes)
  }

  /** @param enabledBefore whether everything counts as lost that it could give, although it may be switched off */
  async #plan(key: string, changes: ChangesOf, enabledBefore = false): Promise<PlannedChange> {
    this.#refuseTaken(key)
    const { read, schema, what, kind } = this.#kind
    const entry = await this.#entry(key)
    const before = read(entry.value)
    const written = writtenForm(schema, before)
    const report = new Report()
    const after = this.#read(this.#keepKey(merged(written, changes(written)), before), report)
    return planChange(this.#parts, {
      ...{ at: { kind, entry }, value: stored(after), announced: { [what]: key } },
      warnings: report.problems,
      records: { before, after },
      written: { before: written, after: writtenForm(schema, after) },
      losses: this.#losses(key, enabledBefore ? { ...before, disabled: false } : before, after),
      via: `change of the ${what}`,
    })
  }

  #losses(key: string, before: R, after: R | undefined): readonly Loss[] {
    const holdings = (record: R | undefined): Holdings => this.#kind.holdings(record, key, this.#parts)
    return lossesBetween(holdings(before), holdings(after))
  }

  /** From now on it opens nothing, and what was issued for it ends; consents stay. May be called again. */
  async disable(key: string): Promise<readonly EndedLoss[]> {
    return this.#switch(key, true)
  }

  /** What has ended stays so. */
  async enable(key: string): Promise<void> {
    await this.#switch(key, false)
  }

  /**
   * Removes it with what belongs to it, and ends what was issued for it, consents too. Where the configuration has one of
   * the same key, only the record goes, which was hidden.
   *
   * @param version of the record that is meant; without it, the latest
   * @returns false if another version is the latest: nothing has changed then
   */
  async remove(key: string, version?: number): Promise<boolean> {
    const { kind, what, read, clear } = this.#kind
    const isHidden = this.#kind.configured(this.#parts).has(key)
    if (isHidden && (await this.#parts.store.find(kind, key)) === undefined) this.#refuseTaken(key)
    const { value } = await this.#entry(key)
    const losses = isHidden ? [] : this.#losses(key, { ...read(value), disabled: false }, undefined)
    const end = async (): Promise<void> => {
      await clear?.(key, this.#parts)
      for (const { tokens, consents } of losses)
        await this.#parts.tokenRevoker.end(tokens, { consents, order: { via: `removal of the ${what}` } })
    }
    // Before and after: nothing is left if the store fails in between, and a process that does not know of the removal
    // does not know the rule either. Of one version only after, since nothing may end if it is not the latest.
    if (version === undefined) await end()
    if (!(await this.#parts.store.remove(kind, key, version)) && version !== undefined) return false
    await this.#announce(key)
    await end()
    await untilInForce(this.#parts)
    return true
  }

  async #switch(key: string, disabled: boolean): Promise<readonly EndedLoss[]> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const planned = await this.#plan(key, () => ({ disabled }), true)
      const ended = await planned.commit()
      if (ended !== undefined) return ended
    }
    throw changedByOthers(key)
  }

  /** The record with its key. @throws DirectoryRefusal if the changes name another one */
  #keepKey(changed: object, before: R): object {
    const values = changed as Readonly<Record<string, unknown>>
    const other = this.#kind.fixed.find((member) => values[member] !== before[member])
    if (other === undefined) return changed
    throw new DirectoryRefusal(
      `The ${other} of a ${this.#kind.what} cannot change: add another ${this.#kind.what}, and remove this one.`,
    )
  }

  #read(written: object, report: Report): R {
    const { schema, what, check } = this.#kind
    const record = readRecord(schema, written, report) as R | undefined
    if (record) check(record, this.#parts, problemsAt(report, []))
    if (record === undefined || report.failed) throw new DirectoryRefusal(`The ${what} has problems.`, report)
    return record
  }

  #refuseTaken(key: string): void {
    const taken = this.#kind.taken(key, this.#parts)
    if (taken !== undefined) throw new DirectoryRefusal(taken)
  }

  #entry(key: string): Promise<Entry> {
    const at = { kind: this.#kind.kind, key }
    return foundEntry(this.#parts.store, {
      ...at,
      missing: () => missingText(this.#parts, this.#kind.what, at),
    })
  }

  #announce(key: string): Promise<void> {
    return announce(this.#parts, { [this.#kind.what]: key })
  }

  #found(item: ListedEntry<C>): FoundRecord<R> {
    return item.source === 'store' ? this.#ofStore(item.entry) : this.#ofConfiguration(item.key, item.record)
  }

  #ofStore({ key, value, version }: Entry): FoundRecord<R> {
    return { key, source: 'store', record: this.#kind.read(value), version }
  }

  #ofConfiguration(key: string, configured: C): FoundRecord<R> {
    return { key, source: 'configuration', record: this.#kind.asRecord(configured), version: undefined }
  }
}
