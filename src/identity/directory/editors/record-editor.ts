/** Adds and changes the records of the store: one editor for all kinds, and of each kind a table of what differs. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { didYouMeanOfFew } from '../../../base/config/problem-text.ts'
import { type Problem, Problems } from '../../../base/config/problems.ts'
import type { Entry, IndexValues, PageQuery, StoredValue } from '../../../base/contracts/records/store.ts'
import type { Ended } from '../../../base/contracts/records/tokens.ts'
import { byKey } from '../../../base/kernel/key-order.ts'
import {
  alreadyThere,
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  type FoundRecord,
  type ListedPage,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
  type WrittenRecord,
} from './editing.ts'
import { type Holdings, type Loss, lossesBetween } from '../records/holdings.ts'
import { isFixed, keyOfNames, memberFactsOf, type Noun, type NounName, NOUNS } from './nouns.ts'
import { problemsAt, readRecord, type RecordProblems, writtenForm } from '../records/read-records.ts'
import { stored } from '../records/schema.ts'
import { announceChange } from '../records/stored-directory.ts'

export interface Switchable {
  readonly disabled: boolean
}

export interface RecordKind<R extends Switchable, C> {
  /** As people call it, and the member of the announcement that has its key. */
  readonly what: NounName
  readonly kind: string
  readonly read: (value: StoredValue) => R
  readonly indexes?: (record: R) => IndexValues
  readonly configured: (parts: EditingParts) => ReadonlyMap<string, C>
  /** One of the configuration, as a record of the store would be. */
  readonly asRecord: (configured: C) => R
  /** Why a key cannot be changed here; undefined if it can. Default: the configuration has it. */
  readonly taken?: (key: string, parts: EditingParts) => string | undefined
  /** @param before undefined: it is to be added */
  readonly check?: (
    record: R,
    parts: EditingParts,
    problems: RecordProblems,
    before: R | undefined,
  ) => void | Promise<void>
  /**
   * The record as the store keeps it, where that is not as it is written.
   * @param stands the stored value that it replaces
   */
  readonly keep?: (record: R, parts: EditingParts, stands: StoredValue | undefined) => Promise<object>
  /** Rejects with DirectoryRefusal if such a record may not be added. */
  readonly admit?: (record: R, parts: EditingParts) => Promise<void>
  /** Everything that others may hold because of it. Undefined: it was removed. */
  readonly holdings: (record: R | undefined, key: string, parts: EditingParts) => Holdings
  readonly clear?: (key: string, parts: EditingParts) => Promise<unknown>
  /** Frees a name or id that others may get only after everything that was issued for it has ended. */
  readonly free?: (record: R, parts: EditingParts) => Promise<unknown>
}

interface RecordChange<R> {
  readonly before: R
  readonly after: R
  readonly warnings: readonly Problem[]
  /** The record that counts as the one before, to find out what is lost. */
  readonly had: R
  /** The value to write; undefined: the stored value, with the record after the change. */
  readonly value?: StoredValue
}

/** How long it takes until every process knows of a change, in milliseconds. */
const SPREAD = 1000
/** Names that are compared with one that is missing. */
const COMPARED = 500

/**
 * Changes the records of one kind in the store. Those of the configuration are only shown and listed. All methods reject
 * with DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class RecordEditor<R extends Switchable, C> {
  protected readonly parts: EditingParts
  protected readonly kind: RecordKind<R, C>
  readonly #noun: Noun

  constructor(kind: RecordKind<R, C>, parts: EditingParts) {
    this.kind = kind
    this.#noun = NOUNS[kind.what]
    this.parts = parts
  }

  /** In force everywhere within a second. */
  async planAdd(written: object): Promise<PlannedAdd<R>> {
    const { kind, what, admit, indexes } = this.kind
    const { store } = this.parts
    const problems = new Problems()
    const record = await this.read(written, problems)
    const key = keyOfNames(this.#noun.names.map((name) => String(memberOf(record, name))))
    this.refuseTaken(key)
    await admit?.(record, this.parts)
    if ((await store.find(kind, key)) !== undefined) throw alreadyThere(what, key)
    const kept = await this.#kept(record)
    const entry = { value: stored(kept), ...(indexes && { indexes: indexes(record) }) }
    return {
      record,
      warnings: problems.list,
      commit: async () => {
        if (!(await store.create(kind, key, entry))) throw alreadyThere(what, key)
        await this.announce(key)
        return undefined
      },
    }
  }

  /** Rejects with DirectoryRefusal if neither layer has it. */
  async show(key: string): Promise<FoundRecord<R>> {
    const configured = this.kind.configured(this.parts).get(key)
    if (configured !== undefined) return this.ofConfiguration(key, configured)
    return this.ofStore(await this.#entry(key))
  }

  /** One page of both layers, in the order of keys: one look into the store, and one at the keys of the configuration. */
  async list(page: PageQuery): Promise<ListedPage<FoundRecord<R>>> {
    const configured = this.kind.configured(this.parts)
    // One more than the page has: it shows whether another page follows.
    const wanted: PageQuery = { ...page, limit: page.limit + 1 }
    const stored = await this.parts.store.list(this.kind.kind, wanted)
    const found = [
      ...entriesOn(configured, wanted).map((entry) => this.ofConfiguration(...entry)),
      ...stored.filter(({ key }) => !configured.has(key)).map((entry) => this.ofStore(entry)),
    ]
    const items = found.sort((one, other) => byKey(one.key, other.key)).slice(0, page.limit)
    return { items, next: found.length > items.length ? items.at(-1)?.key : undefined }
  }

  /** A change of what is written. Refuses one that `add` would refuse, and another key. */
  async plan(key: string, changes: ChangesOf): Promise<PlannedChange> {
    const { entry, before, written } = await this.#current(key)
    const problems = new Problems()
    const after = await this.read(this.#keepKey(merged(written, changes(written)), before), problems, before)
    return this.#planned(entry, { before, after, warnings: problems.list, had: before })
  }

  /**
   * While it is disabled, it opens nothing; what was issued for it ends, consents stay. May be disabled again, also where
   * the record does not fit the configuration any more: that takes rights away. Enabling refuses such a record.
   */
  async planSwitch(key: string, disabled: boolean): Promise<PlannedChange> {
    if (disabled) return this.planUnchecked(key, (record) => ({ record: { ...record, disabled } }))
    const { entry, before, written } = await this.#current(key)
    const problems = new Problems()
    const after = await this.read({ ...written, disabled }, problems, before)
    return this.#planned(entry, {
      before,
      after,
      warnings: problems.list,
      had: { ...before, disabled: false },
    })
  }

  /** Ends everything that was issued for it, consents too. Where the configuration has the key, only the record is removed. */
  async planRemoval(key: string): Promise<PlannedStep<true>> {
    const { kind, what, read, clear, free } = this.kind
    const { store } = this.parts
    const hidden = await store.find(kind, key)
    if (hidden === undefined) this.refuseTaken(key)
    const entry = hidden ?? (await this.#entry(key))
    const { version, record } = await this.show(key)
    const had = read(entry.value)
    const losses = this.isHidden(had, key)
      ? []
      : await this.losses(key, { ...had, disabled: false }, undefined)
    const end = async (): Promise<void> => {
      await clear?.(key, this.parts)
      await this.end(losses, `removal of the ${what}`)
    }
    return {
      version,
      written: { before: writtenForm(this.#noun.schema, record) },
      commit: async (exactly = false) => {
        // Before and after: nothing is left if the store fails in between, and a process that does not know of the removal
        // does not know the rule either.
        if (!exactly) await end()
        const removed = await store.remove(kind, key, exactly ? entry.version : undefined)
        if (exactly && !removed) return undefined
        await this.announce(key)
        await end()
        await this.untilInForce()
        await free?.(had, this.parts)
        return true
      },
    }
  }

  /** A change of a record that is not checked anew: it may name something that the configuration no longer has. */
  protected async planUnchecked(
    key: string,
    change: (before: R, value: StoredValue) => { readonly record: R } & StoredValue,
  ): Promise<PlannedChange> {
    const { entry, before } = await this.#current(key)
    const value = change(before, entry.value)
    // If it is disabled already, everything ends again: an attempt that failed half way may have left something.
    const had = { ...before, disabled: false }
    return this.#planned(entry, {
      before,
      after: value.record,
      warnings: [],
      had,
      value: { ...entry.value, ...value },
    })
  }

  /** The record that is written so. @throws DirectoryRefusal if it has problems */
  protected async read(written: object, problems: Problems, before?: R): Promise<R> {
    const { what, check } = this.kind
    const record = readRecord(this.#noun.schema, written, problems) as R | undefined
    if (record) await check?.(record, this.parts, problemsAt(problems, []), before)
    if (record === undefined || problems.failed)
      throw new DirectoryRefusal(`The ${what} has problems.`, problems)
    return record
  }

  protected losses(key: string, before: R, after: R | undefined): readonly Loss[] | Promise<readonly Loss[]> {
    const holdings = (record: R | undefined): Holdings => this.kind.holdings(record, key, this.parts)
    return lossesBetween(holdings(before), holdings(after))
  }

  /** Whether nothing is held because of a record, because the configuration's counts. */
  protected isHidden(_record: R, key: string): boolean {
    return this.kind.configured(this.parts).has(key)
  }

  protected refuseTaken(key: string): void {
    const { what, taken, configured } = this.kind
    const why = taken?.(key, this.parts)
    if (why !== undefined) throw new DirectoryRefusal(why)
    if (taken === undefined && configured(this.parts).has(key))
      throw new DirectoryRefusal(
        `${capital(what)} "${key}" is in the configuration, which no command changes: edit it there.`,
      )
  }

  /** `There is no client "tlly" — did you mean "tally"?`. Of a store with more than 500, no name is suggested. */
  protected async missing(key: string): Promise<string> {
    const { kind, what } = this.kind
    const entries = await this.parts.store.list(kind, { after: undefined, limit: COMPARED + 1 })
    const names = entries.map((entry) => entry.key)
    const hint = didYouMeanOfFew(key, names)
    return `There is no ${what} "${key}"${hint === undefined ? '.' : ` — ${hint}`}`
  }

  protected announce(key: string): Promise<void> {
    return announceChange(this.parts, { [this.kind.what]: key })
  }

  protected ofStore({ key, value, version }: Pick<Entry, 'key' | 'value' | 'version'>): FoundRecord<R> {
    return { key, source: 'store', record: this.kind.read(value), version }
  }

  protected ofConfiguration(key: string, configured: C): FoundRecord<R> {
    return { key, source: 'configuration', record: this.kind.asRecord(configured), version: undefined }
  }

  async #current(key: string) {
    this.refuseTaken(key)
    const entry = await this.#entry(key)
    const before = this.kind.read(entry.value)
    return { entry, before, written: writtenForm(this.#noun.schema, before) }
  }

  async #entry(key: string): Promise<Entry> {
    const entry = await this.parts.store.find(this.kind.kind, key)
    if (entry === undefined) throw new DirectoryRefusal(await this.missing(key), undefined, 'missing')
    return entry
  }

  async #planned({ key, version, value: stands }: Entry, change: RecordChange<R>): Promise<PlannedChange> {
    const { what, kind } = this.kind
    const { schema } = this.#noun
    const { before, after, warnings, had } = change
    const value = { ...(change.value ?? stands), record: await this.#kept(after, stands) }
    const losses = await this.losses(key, had, after)
    const end = (): Promise<readonly Ended[]> => this.end(losses, `change of the ${what}`)
    const written = { before: plain(writtenForm(schema, before)), after: plain(writtenForm(schema, after)) }
    return {
      records: { before: plain(before), after: plain(after) },
      written,
      warnings,
      version,
      keys: keysThatDiffer(written.before, written.after),
      commit: async (exactly = false) => {
        // Before the change: if the store fails in between, nothing is left that the change does not allow.
        const earlier = exactly ? [] : await end()
        if (!(await this.parts.store.replace(kind, key, version, value))) return undefined
        await this.announce(key)
        // After it, because a process that did not know of it issued further tokens. The rule follows the change on the feed.
        const later = await end()
        await this.untilInForce()
        return losses.map((loss, index) => ({ loss, ended: sum(earlier[index], later[index]) }))
      },
    }
  }

  async #kept(record: R, stands?: StoredValue): Promise<object> {
    return (await this.kind.keep?.(record, this.parts, stands)) ?? record
  }

  protected async end(losses: readonly Loss[], via: string): Promise<readonly Ended[]> {
    const ended: Ended[] = []
    for (const { tokens, consents } of losses)
      ended.push(await this.parts.tokenRevoker.end(tokens, { consents, cause: { via } }))
    return ended
  }

  /** Resolves when every process that can read the store uses the announced change. */
  protected async untilInForce(): Promise<void> {
    const { pause = delay } = this.parts
    await pause(SPREAD)
  }

  /** The record with its key. @throws DirectoryRefusal if the changes name another one */
  #keepKey(changed: object, before: R): object {
    const { what } = this.kind
    const fixed = Object.keys(memberFactsOf(this.#noun)).filter((member) => isFixed(this.#noun, member))
    const other = fixed.find((member) => memberOf(changed, member) !== memberOf(before, member))
    if (other === undefined) return changed
    throw new DirectoryRefusal(
      `The ${other} of a ${what} cannot change: add another ${what}, and remove this one.`,
    )
  }
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

const memberOf = (record: object, member: string): unknown =>
  (record as Readonly<Record<string, unknown>>)[member]

const merged = (before: WrittenRecord, changes: WrittenRecord): WrittenRecord =>
  Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined))

/** As JSON keeps it, so that a record that was read from the store can be compared with one that was just loaded. */
const plain = (record: object): WrittenRecord => JSON.parse(JSON.stringify(record)) as WrittenRecord

const keysThatDiffer = (before: WrittenRecord, after: WrittenRecord): readonly string[] =>
  Object.keys({ ...before, ...after }).filter((key) => !isDeepStrictEqual(before[key], after[key]))

const NOTHING: Ended = { sessions: 0, families: 0, codes: 0, consents: 0 }

/** How much was ended in two steps. */
export const sum = (one = NOTHING, other = NOTHING): Ended => ({
  sessions: one.sessions + other.sessions,
  families: one.families + other.families,
  codes: one.codes + other.codes,
  consents: one.consents + other.consents,
})

/** The keys of each map in order. A map of a configuration never changes. */
const sorted = new WeakMap<ReadonlyMap<string, unknown>, readonly string[]>()

function inOrder(configured: ReadonlyMap<string, unknown>): readonly string[] {
  const known = sorted.get(configured)
  if (known !== undefined) return known
  const keys = [...configured.keys()].sort(byKey)
  sorted.set(configured, keys)
  return keys
}

function entriesOn<C>(
  configured: ReadonlyMap<string, C>,
  { prefix = '', after, limit }: PageQuery,
): readonly (readonly [key: string, configured: C])[] {
  const entries: (readonly [string, C])[] = []
  for (const key of inOrder(configured)) {
    if (entries.length === limit) break
    const found = configured.get(key)
    const isOnPage = key.startsWith(prefix) && (after === undefined || byKey(key, after) > 0)
    if (isOnPage && found !== undefined) entries.push([key, found])
  }
  return entries
}

/** A map of one record; empty where there is none. */
export const only = <T>(key: string, value: T | false | undefined): ReadonlyMap<string, T> =>
  new Map(value === false || value === undefined ? [] : [[key, value]])
