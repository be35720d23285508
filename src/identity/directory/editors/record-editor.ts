/** Shows, adds and changes the records of the store: one editor for all kinds of them. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { didYouMeanOfFew } from '../../../base/config/problem-text.ts'
import { type Problem, Problems } from '../../../base/config/problems.ts'
import type { Entry, PageQuery, StoredValue } from '../../../base/contracts/records/store.ts'
import type { Ended } from '../../../base/contracts/records/tokens.ts'
import { byKey } from '../../../base/kernel/key-order.ts'
import { type Holdings, holdingsOf, type Loss, lossesBetween } from '../records/holdings.ts'
import { markKindOf, marksAmong, type MarkValue } from '../records/marks.ts'
import { problemsAt, readRecord, writtenForm } from '../records/read-records.ts'
import { announceChange, Roles, storedRoles } from '../records/stored-directory.ts'
import {
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  type EndedLoss,
  type FoundRecord,
  type ListedPage,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
  type Written,
} from './editing.ts'
import {
  type CompletedRecord,
  isFixed,
  keyOfNames,
  memberFactsOf,
  namesOf,
  type RecordKind,
  type Switchable,
} from './record-kind.ts'

interface RecordChange<R> {
  readonly before: R
  readonly after: R
  readonly warnings?: readonly Problem[]
  /** The record that counts as the one before, to find out what is lost. Default: `before`. */
  readonly had?: R
  /** The value to write. Default: the stored value, with the record after the change. */
  readonly value?: StoredValue
  /** A mark to remove with it. */
  readonly mark?: Entry | undefined
}

/** A write, and what it ends that others hold. */
interface Write {
  readonly losses: readonly Loss[]
  /** The cause that the losses are recorded with. */
  readonly via: string
  /** Resolves with false if somebody else has changed it meanwhile. */
  readonly write: (exactly: boolean) => Promise<boolean>
  readonly announced?: StoredValue
  readonly clear?: () => Promise<unknown>
}

/** How long it takes until every process knows of a change, in milliseconds. */
const SPREAD = 1000
/** Names that are compared with one that is missing. */
const COMPARED = 500

/**
 * Changes the records of one kind in the store. Those of the configuration are only shown and listed, and disabled by a mark.
 * Each change is planned first: if it is refused, that happens then, before anybody records that it was begun. All methods
 * reject with DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class RecordEditor<R extends Switchable = Switchable> {
  readonly kind: RecordKind<R>
  readonly parts: EditingParts

  constructor(kind: RecordKind<R>, parts: EditingParts) {
    this.kind = kind
    this.parts = parts
  }

  /** In force everywhere within a second. @param drawn the secret of a client; without it one is drawn */
  async planAdd(given: object, drawn?: string): Promise<PlannedAdd<R>> {
    const { kind, parts } = this
    const written: Written = { ...kind.defaults?.(given as Written), ...given }
    const problems = new Problems()
    let whole: CompletedRecord = { written }
    if (kind.complete) {
      // Before the hash, which takes its time. Of other kinds, problems of the record are told first.
      const given = kind.names.map((name) => written[name])
      if (given.every((name) => typeof name === 'string')) this.refuseTaken(keyOfNames(given))
      whole = await kind.complete(written, parts, problemsAt(problems, []), drawn)
    }
    const { secret } = whole
    const record = await this.#read(whole.written, problems)
    const key = keyOfNames(namesOf(kind, record))
    this.refuseTaken(key)
    await kind.admit?.(record, parts)
    if ((await parts.store.find(kind.kind, key)) !== undefined) throw alreadyThere(kind.noun, key)
    const value = { record: await this.#kept(record), ...kind.beside }
    const entry = { value, ...(kind.indexes && { indexes: kind.indexes(record) }) }
    return {
      record,
      written,
      warnings: problems.list,
      ...(secret !== undefined && { unshown: { secret, client: this.ofStore({ key, value, version: 0 }) } }),
      commit: async () => {
        const isMade = await (kind.create?.(record, entry, parts) ??
          parts.store.create(kind.kind, key, entry))
        if (!isMade) throw alreadyThere(kind.noun, key)
        await announceChange(parts, { [kind.noun]: key })
        return secret
      },
    }
  }

  /** Rejects with DirectoryRefusal if neither layer has it, nor a mark. */
  async show(key: string): Promise<FoundRecord<R>> {
    const mark = await this.#mark(key)
    const configured = this.#configured(key)
    if (configured !== undefined) return withMark(configured, mark)
    const entry = await this.parts.store.find(this.kind.kind, key)
    if (entry !== undefined) return withMark(this.ofStore(entry), mark)
    if (mark === undefined) throw await this.#missing(key)
    return withMark(this.#foundElsewhere(key, subjectsOf(mark)), mark)
  }

  /** One page of both layers, in the order of keys: one look into the store, and one at the keys of the configuration. */
  async list(page: PageQuery): Promise<ListedPage<FoundRecord<R>>> {
    const { kind, parts } = this
    const configured = kind.configured(parts)
    // One more than the page has: it shows whether another page follows.
    const wanted: PageQuery = { ...page, limit: page.limit + 1 }
    const stored = await parts.store.list(kind.kind, wanted)
    const found = [
      ...keysOn(configured, wanted).flatMap((key) => this.#configured(key) ?? []),
      ...stored.filter(({ key }) => !configured.has(key)).map((entry) => this.ofStore(entry)),
    ]
    const items = found.sort((one, other) => byKey(one.key, other.key)).slice(0, page.limit)
    const names = items.map(({ key }) => key)
    const marks = kind.marking && (await marksAmong(parts.store, kind.marking.kind, names, page))
    return {
      items: items.map((each) => withMark(each, marks?.get(each.key))),
      next: found.length > items.length ? names.at(-1) : undefined,
    }
  }

  /** A change of what is written. Refuses one that `add` would refuse, and another key. */
  async plan(key: string, changes: ChangesOf): Promise<PlannedChange> {
    const { entry, before, written } = await this.#current(key)
    const problems = new Problems()
    const after = await this.#read(this.#keepKey(merged(written, changes(written)), before), problems, before)
    return this.#planned(entry, { before, after, warnings: problems.list })
  }

  /**
   * While it is disabled, it opens nothing; what was issued for it ends, consents stay. May be disabled again, also where
   * the record does not fit the configuration any more: that takes rights away. Enabling refuses such a record; clients and
   * users are enabled without a check. A mark disables those that no command changes, and enabling removes only that mark.
   */
  async planSwitch(key: string, disabled: boolean): Promise<PlannedChange> {
    const { kind, parts } = this
    const { marking } = kind
    const mark = await this.#mark(key)
    if (marking !== undefined) {
      const configured = this.#configured(key)
      if (configured !== undefined) return this.#planMark(configured, disabled, mark)
      if ((await parts.store.find(kind.kind, key)) === undefined) {
        const subjects = disabled ? await marking.elsewhere(key, parts) : mark && subjectsOf(mark)
        if (subjects !== undefined)
          return this.#planMark(this.#foundElsewhere(key, subjects), disabled, mark, subjects)
      }
    }
    this.refuseTaken(key, kind.insteadOfSwitch?.(key))
    if (disabled || marking !== undefined)
      return this.planUnchecked(
        key,
        (record) => ({ record: { ...record, disabled } }),
        disabled ? undefined : mark,
      )
    const { entry, before, written } = await this.#current(key)
    const problems = new Problems()
    const after = await this.#read({ ...written, disabled }, problems, before)
    return this.#planned(entry, {
      before,
      after,
      warnings: problems.list,
      had: { ...before, disabled: false },
    })
  }

  /** Ends everything that was issued for it, consents too. Where the configuration has the key, only the record is removed. */
  async planRemoval(key: string): Promise<PlannedStep<readonly EndedLoss[]>> {
    const { kind, parts } = this
    const entry = await parts.store.find(kind.kind, key)
    if (entry === undefined) this.refuseTaken(key)
    if (entry === undefined) throw await this.#missing(key)
    const { version, record } = await this.show(key)
    const had = kind.read(entry.value)
    const isHidden = kind.isHidden?.(had, parts) ?? kind.configured(parts).has(key)
    const commit = this.#committing(key, {
      losses: isHidden ? [] : await this.#losses(key, { ...had, disabled: false }, undefined),
      via: `removal of the ${kind.noun}`,
      clear: () => Promise.resolve(kind.clear?.(key, parts)),
      write: async (exactly) =>
        (await parts.store.remove(kind.kind, key, exactly ? entry.version : undefined)) || !exactly,
    })
    return {
      version,
      written: { before: writtenForm(kind.schema, record) },
      commit: async (exactly) => {
        const ended = await commit(exactly)
        if (ended !== undefined) await kind.free?.(had, parts)
        return ended
      },
    }
  }

  /**
   * A change of a record that is not checked anew: it may name something that the configuration no longer has.
   *
   * @param mark to be removed with it
   */
  async planUnchecked(
    key: string,
    change: (before: R, value: StoredValue) => { readonly record: R } & StoredValue,
    mark?: Entry,
  ): Promise<PlannedChange> {
    const { entry, before } = await this.#current(key)
    const value = change(before, entry.value)
    // If it is disabled already, everything ends again: an attempt that failed half way may have left something.
    const had = { ...before, disabled: false }
    return this.#planned(entry, {
      before,
      after: value.record,
      had,
      value: { ...entry.value, ...value },
      mark,
    })
  }

  /** @throws DirectoryRefusal if no command changes this key. @param instead how its message ends */
  refuseTaken(key: string, instead = ''): void {
    const { kind, parts } = this
    const why = kind.taken?.(key, parts)
    if (why !== undefined) throw new DirectoryRefusal(why)
    if (kind.taken === undefined && kind.configured(parts).has(key))
      throw new DirectoryRefusal(
        `${capital(kind.noun)} "${key}" is in the configuration, which no command changes: edit it there${instead}.`,
      )
  }

  ofStore({ key, value, version }: Pick<Entry, 'key' | 'value' | 'version'>): FoundRecord<R> {
    const record = this.kind.read(value)
    const secrets = this.kind.secrets?.(record, value, this.parts.clock.now())
    return { key, source: 'store', record, version, ...secrets }
  }

  #configured(key: string): FoundRecord<R> | undefined {
    const configured = this.kind.configured(this.parts).get(key)
    if (configured === undefined) return undefined
    const record = this.kind.asRecord(configured)
    const secrets = this.kind.secrets?.(record, undefined, this.parts.clock.now())
    return { key, source: 'configuration', record, version: undefined, ...secrets }
  }

  /** The facts known about a client or user that neither layer has: to be shown, and never stored. */
  #foundElsewhere(key: string, [subject]: readonly string[]): FoundRecord<R> {
    const [name = ''] = this.kind.names
    const known: Switchable = { [name]: key, ...(subject !== undefined && { subject }), disabled: false }
    return { key, source: 'mark', record: known as R, version: undefined }
  }

  /** The kind of the records that mark such a record. */
  get #markKind(): string {
    const { marking, noun } = this.kind
    if (marking === undefined) throw new TypeError(`no mark disables a ${noun}`)
    return markKindOf(marking.kind)
  }

  async #mark(key: string): Promise<Entry | undefined> {
    return this.kind.marking && this.parts.store.find(this.#markKind, key)
  }

  async #current(key: string) {
    this.refuseTaken(key)
    const entry = await this.parts.store.find(this.kind.kind, key)
    if (entry === undefined) throw await this.#missing(key)
    const before = this.kind.read(entry.value)
    return { entry, before, written: writtenForm(this.kind.schema, before) }
  }

  /**
   * The record that is written so. Members of a missing extension stay in it as they were: an edit must not lose them.
   * @throws DirectoryRefusal if it has problems
   */
  async #read(written: Written, problems: Problems, before?: R): Promise<R> {
    const { noun, schema } = this.kind
    const kept = before === undefined ? {} : unknownAndSame(memberFactsOf(this.kind), written, before)
    const own = Object.fromEntries(Object.entries(written).filter(([member]) => !Object.hasOwn(kept, member)))
    const record = readRecord(schema, own, problems) as R | undefined
    if (record) await this.kind.check?.(record, this.parts, problemsAt(problems, []), before)
    if (record === undefined || problems.failed)
      throw new DirectoryRefusal(`The ${noun} has problems.`, problems)
    return { ...record, ...kept }
  }

  /** The record with its key. @throws DirectoryRefusal if the changes name another one */
  #keepKey(changed: Written, before: R): Written {
    const { kind } = this
    const other = Object.keys(memberFactsOf(kind)).find(
      (member) => isFixed(kind, member) && changed[member] !== (before as Written)[member],
    )
    if (other === undefined) return changed
    throw new DirectoryRefusal(
      `The ${other} of a ${kind.noun} cannot change: add another ${kind.noun}, and remove this one.`,
    )
  }

  async #kept(record: R, stands?: StoredValue): Promise<object> {
    return (await this.kind.keep?.(record, this.parts, stands)) ?? record
  }

  async #planned(
    { key, version, value: stands }: Entry,
    { before, after, warnings = [], had = before, value = stands, mark }: RecordChange<R>,
  ): Promise<PlannedChange> {
    const { noun, kind, schema } = this.kind
    const { store } = this.parts
    const kept = { ...value, record: await this.#kept(after, stands) }
    const written = { before: plain(writtenForm(schema, before)), after: plain(writtenForm(schema, after)) }
    return {
      records: { before: plain(before), after: plain(after) },
      written,
      warnings,
      version,
      keys: keysThatDiffer(written.before, written.after),
      commit: this.#committing(key, {
        losses: await this.#losses(key, had, after),
        via: `change of the ${noun}`,
        ...(mark !== undefined && { announced: { mark: true } }),
        write: async () => {
          const isWritten = await store.replace(kind, key, version, kept)
          if (isWritten && mark !== undefined) await store.remove(this.#markKind, key)
          return isWritten
        },
      }),
    }
  }

  /** @param subjects of somebody whom neither layer has */
  async #planMark(
    found: FoundRecord<R>,
    disabled: boolean,
    mark: Entry | undefined,
    subjects = this.kind.marking?.subjects(found.record) ?? [],
  ): Promise<PlannedChange> {
    const { noun, schema } = this.kind
    const { key, record, source } = found
    if (!disabled && mark === undefined && record.disabled)
      throw new DirectoryRefusal(
        `The configuration itself disables ${noun} "${key}", which no command changes: enable it there.`,
      )
    const losses =
      source === 'mark'
        ? subjects.map((subject): Loss => ({ tokens: { subject }, consents: false }))
        : await this.#losses(key, { ...record, disabled: false }, { ...record, disabled: true })
    // The record itself stays as it is: its tag is that of the record as it is shown, with the version of the mark.
    const written = writtenForm(schema, record)
    return {
      records: {
        before: { ...record, disabled: record.disabled || mark !== undefined },
        after: { ...record, disabled: record.disabled || disabled },
      },
      written: { before: written, after: written },
      keys: [],
      warnings: [],
      version: mark?.version,
      mark: disabled ? 'set' : 'removed',
      ...(source === 'mark' && { shown: withMark(found, disabled) }),
      commit: this.#committing(key, {
        losses: disabled ? losses : [],
        via: `change of the ${noun}`,
        announced: { mark: true },
        write: () => this.#writeMark(key, subjects, disabled, mark),
      }),
    }
  }

  /** Resolves with false if somebody else has changed it meanwhile. */
  async #writeMark(
    key: string,
    subjects: readonly string[],
    disabled: boolean,
    mark: Entry | undefined,
  ): Promise<boolean> {
    const { store, clock } = this.parts
    const { since = clock.now() } = (mark?.value ?? {}) as Partial<MarkValue>
    const value: MarkValue = { name: key, subjects, since }
    if (mark === undefined) return !disabled || store.create(this.#markKind, key, { value })
    return disabled
      ? store.replace(this.#markKind, key, mark.version, value)
      : store.remove(this.#markKind, key, mark.version)
  }

  /** With the roles of both records, as they are now. */
  async #losses(key: string, before: R, after: R | undefined): Promise<readonly Loss[]> {
    const { configured, store, catalogue } = this.parts
    const named = [before, after].flatMap((record) => (record && this.kind.roles?.(record)) ?? [])
    const roles = await new Roles(configured.roles, storedRoles(store)).of(named)
    const holdings = (record: R | undefined): Holdings =>
      holdingsOf({ ...(named.length > 0 && { roles }), ...this.kind.holdings(record, key) }, catalogue)
    return lossesBetween(holdings(before), holdings(after))
  }

  /** The commit of everything that ends what others hold. It is in force in every process when it resolves. */
  #committing(
    key: string,
    { losses, via, write, announced, clear }: Write,
  ): PlannedStep<readonly EndedLoss[]>['commit'] {
    const { parts } = this
    const end = async (keepsLinks: boolean): Promise<readonly Ended[]> => {
      await clear?.()
      const ended: Ended[] = []
      for (const { tokens, consents } of losses)
        ended.push(await parts.tokenRevoker.end(tokens, { consents, keepsLinks, cause: { via } }))
      return ended
    }
    return async (exactly = false) => {
      // Before it is written: if the store fails in between, nothing is left that is no longer allowed.
      const earlier = exactly ? [] : await end(true)
      if (!(await write(exactly))) return undefined
      await announceChange(parts, { [this.kind.noun]: key, ...announced })
      // After it, because a process that did not know of it issued further tokens. The rule follows the change on the feed.
      const later = await end(false)
      await (parts.pause ?? delay)(SPREAD)
      return losses.map((loss, index) => ({ loss, ended: sum(earlier[index], later[index]) }))
    }
  }

  /** `There is no client "tlly" — did you mean "tally"?`. Of a store with more than 500, no name is suggested. */
  async #missing(key: string): Promise<DirectoryRefusal> {
    const { kind, noun } = this.kind
    const entries = await this.parts.store.list(kind, { after: undefined, limit: COMPARED + 1 })
    const hint = didYouMeanOfFew(
      key,
      entries.map((entry) => entry.key),
    )
    const missing = `There is no ${noun} "${key}"${hint === undefined ? '.' : ` — ${hint}`}`
    return new DirectoryRefusal(`${missing}${this.kind.whereElse?.(this.parts) ?? ''}`, undefined, 'missing')
  }
}

const alreadyThere = (noun: string, key: string): DirectoryRefusal =>
  new DirectoryRefusal(`There is a ${noun} "${key}" already.`)

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

const subjectsOf = ({ value }: Entry): readonly string[] => (value as MarkValue).subjects

/** @param mark `true`: one that was just made */
function withMark<R>(found: FoundRecord<R>, mark: Entry | boolean | undefined): FoundRecord<R> {
  if (mark === undefined || mark === false) return found
  const version = found.source === 'store' || mark === true ? found.version : mark.version
  return { ...found, version, disabledByCommand: true }
}

const merged = (before: Written, changes: Written): Written =>
  Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined))

/** The members that a schema lacks, and that a change has left as they were. */
const unknownAndSame = (known: object, written: Written, before: object): Written =>
  Object.fromEntries(
    Object.entries(written).filter(
      ([member, value]) =>
        !Object.hasOwn(known, member) && isDeepStrictEqual(value, (before as Written)[member]),
    ),
  )

/** As JSON keeps it, so that a record that was read from the store can be compared with one that was just loaded. */
const plain = (record: object): Written => JSON.parse(JSON.stringify(record)) as Written

const keysThatDiffer = (before: Written, after: Written): readonly string[] =>
  Object.keys({ ...before, ...after }).filter((key) => !isDeepStrictEqual(before[key], after[key]))

const NOTHING: Ended = { sessions: 0, families: 0, codes: 0, consents: 0 }

/** How much was ended in two steps. */
const sum = (one = NOTHING, other = NOTHING): Ended => ({
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

function keysOn(
  configured: ReadonlyMap<string, unknown>,
  { prefix = '', after, limit }: PageQuery,
): readonly string[] {
  const keys: string[] = []
  for (const key of inOrder(configured)) {
    if (keys.length === limit) break
    if (key.startsWith(prefix) && (after === undefined || byKey(key, after) > 0)) keys.push(key)
  }
  return keys
}
