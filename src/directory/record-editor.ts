/** Adds and changes the records of the store: one editor for all kinds, and of each kind a table of what differs. */
import { type Problem, Problems } from '../config/problems.ts'
import type { TSchema } from '../config/schema.ts'
import type { Access } from '../contracts/people.ts'
import type { ConfiguredBusiness } from '../contracts/places.ts'
import type { Entry, IndexValues, Page, StoredValue } from '../contracts/store.ts'
import { checkScopes } from './compile-records.ts'
import {
  alreadyThere,
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  type FoundRecord,
  foundUnlessConfigured,
  type ListedPage,
  merged,
  missingText,
  pageOf,
  planChange,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
  planRemoval,
} from './editing.ts'
import { type Holdings, holdingsOf, type Loss, lossesBetween } from './holdings.ts'
import type { NounName } from './nouns.ts'
import { problemsAt, readRecord, type RecordProblems, writtenForm } from './read-records.ts'
import {
  BUSINESS,
  type BusinessRecord,
  businessSchema,
  FUND,
  fundKey,
  type FundRecord,
  fundSchema,
  readBusiness,
  readFund,
  readRole,
  ROLE,
  type RoleRecord,
  roleSchema,
  stored,
} from './schema.ts'
import { announce } from './stored-directory.ts'

/** What an operator can switch off. */
interface Switchable {
  readonly disabled: boolean
}

/** What differs between the kinds of records. */
export interface RecordKind<R extends Switchable, C> {
  /** As people call it, and the member of the announcement that has its key. */
  readonly what: NounName
  readonly kind: string
  readonly schema: TSchema
  readonly read: (value: StoredValue) => R
  readonly keyOf: (record: R) => string
  /** Members that cannot change: those of the key above all. */
  readonly fixed: readonly (keyof R & string)[]
  readonly indexes?: (record: R) => IndexValues
  /** Those of the configuration, by key. */
  readonly configured: (parts: EditingParts) => ReadonlyMap<string, C>
  /** One of the configuration, as a record of the store would be. */
  readonly asRecord: (configured: C) => R
  /** Why a key cannot be changed here; undefined if it can. */
  readonly taken: (key: string, parts: EditingParts) => string | undefined
  /** Reports what the schema cannot say. */
  readonly check: (record: R, parts: EditingParts, problems: RecordProblems) => void | Promise<void>
  /** Rejects with DirectoryRefusal if such a record may not be added. */
  readonly admit?: (record: R, parts: EditingParts) => Promise<void>
  /** What others may hold because of it. Undefined: it was removed. */
  readonly holdings: (record: R | undefined, key: string, parts: EditingParts) => Holdings
  /** Removes what belongs to it. */
  readonly clear?: (key: string, parts: EditingParts) => Promise<unknown>
}

interface RecordChange<R> {
  readonly before: R
  readonly after: R
  readonly warnings: readonly Problem[]
  /** What counts as the record before, where it is asked what is lost. */
  readonly had: R
  /** What is written; undefined: what stands there, with the record after the change. */
  readonly value?: StoredValue
}

/**
 * Changes the records of one kind in the store. Those of the configuration are only shown and listed. All methods reject
 * with DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class RecordEditor<R extends Switchable, C> {
  protected readonly parts: EditingParts
  readonly #kind: RecordKind<R, C>

  constructor(kind: RecordKind<R, C>, parts: EditingParts) {
    this.#kind = kind
    this.parts = parts
  }

  /** Refuses a record that has problems, and a key that is taken. In force everywhere within a second. */
  async planAdd(written: object): Promise<PlannedAdd<R>> {
    const { kind, what, keyOf, admit, indexes } = this.#kind
    const { store } = this.parts
    const problems = new Problems()
    const record = await this.read(written, problems)
    const key = keyOf(record)
    this.refuseTaken(key)
    await admit?.(record, this.parts)
    if ((await store.find(kind, key)) !== undefined) throw alreadyThere(what, key)
    const entry = { value: stored(record), ...(indexes && { indexes: indexes(record) }) }
    return {
      record,
      warnings: problems.list,
      commit: async () => {
        if (!(await store.create(kind, key, entry))) throw alreadyThere(what, key)
        await announce(this.parts, { [what]: key })
        return undefined
      },
    }
  }

  /** Rejects with DirectoryRefusal if neither layer has it. */
  async show(key: string): Promise<FoundRecord<R>> {
    const configured = this.#kind.configured(this.parts).get(key)
    if (configured !== undefined) return this.ofConfiguration(key, configured)
    return this.ofStore(await this.#entry(key))
  }

  /** One page of both layers, in the order of keys. */
  async list(page: Page): Promise<ListedPage<FoundRecord<R>>> {
    const configured = this.#kind.configured(this.parts)
    const { items, next } = await pageOf({ configured, store: this.parts.store, kind: this.#kind.kind }, page)
    const found = items.map((item) =>
      item.source === 'store' ? this.ofStore(item.entry) : this.ofConfiguration(item.key, item.record),
    )
    return { items: found, next }
  }

  /** A change of what is written. Refuses one that `add` would refuse, and another key. */
  async plan(key: string, changes: ChangesOf): Promise<PlannedChange> {
    const { entry, before, written } = await this.#current(key)
    const problems = new Problems()
    const after = await this.read(this.#keepKey(merged(written, changes(written)), before), problems)
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
    const after = await this.read({ ...written, disabled }, problems)
    return this.#planned(entry, {
      before,
      after,
      warnings: problems.list,
      had: { ...before, disabled: false },
    })
  }

  /**
   * Removes it with what belongs to it, and ends what was issued for it, consents too. Where the configuration has one of
   * the same key, only the record goes, which was hidden.
   */
  async planRemoval(key: string): Promise<PlannedStep<true>> {
    const { kind, what, schema, read, clear } = this.#kind
    const refuse = (): void => this.refuseTaken(key)
    const entry = await foundUnlessConfigured(this.parts.store, this.#at(key), refuse)
    const { version, record } = await this.show(key)
    const had = read(entry.value)
    const losses = this.isHidden(had, key)
      ? []
      : await this.losses(key, { ...had, disabled: false }, undefined)
    return planRemoval(this.parts, {
      at: { kind, entry },
      announced: { [what]: key },
      via: `removal of the ${what}`,
      shown: { version, written: writtenForm(schema, record) },
      losses,
      ...(clear && { clear: () => clear(key, this.parts) }),
      free: () => this.free(had),
    })
  }

  /** A change of a record that is not checked anew: it may name what is gone from the configuration meanwhile. */
  protected async planUnchecked(
    key: string,
    change: (before: R, value: StoredValue) => { readonly record: R } & StoredValue,
  ): Promise<PlannedChange> {
    const { entry, before } = await this.#current(key)
    const value = change(before, entry.value)
    // Of one that is disabled already, everything ends again: it may be left of an attempt that failed half way.
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
  protected async read(written: object, problems: Problems): Promise<R> {
    const { schema, what, check } = this.#kind
    const record = readRecord(schema, written, problems) as R | undefined
    if (record) await check(record, this.parts, problemsAt(problems, []))
    if (record === undefined || problems.failed)
      throw new DirectoryRefusal(`The ${what} has problems.`, problems)
    return record
  }

  protected losses(key: string, before: R, after: R | undefined): readonly Loss[] | Promise<readonly Loss[]> {
    const holdings = (record: R | undefined): Holdings => this.#kind.holdings(record, key, this.parts)
    return lossesBetween(holdings(before), holdings(after))
  }

  /** Whether nothing is held because of a record, since the configuration's counts. */
  protected isHidden(_record: R, key: string): boolean {
    return this.#kind.configured(this.parts).has(key)
  }

  /** Frees what nobody else may get before everything has ended that was issued for a record. */
  protected async free(_record: R): Promise<unknown> {
    return undefined
  }

  protected refuseTaken(key: string): void {
    const taken = this.#kind.taken(key, this.parts)
    if (taken !== undefined) throw new DirectoryRefusal(taken)
  }

  /** What to say where there is no such record. */
  protected missing(key: string): Promise<string> {
    return missingText(this.parts, this.#kind.what, { kind: this.#kind.kind, key })
  }

  protected ofStore({ key, value, version }: Pick<Entry, 'key' | 'value' | 'version'>): FoundRecord<R> {
    return { key, source: 'store', record: this.#kind.read(value), version }
  }

  protected ofConfiguration(key: string, configured: C): FoundRecord<R> {
    return { key, source: 'configuration', record: this.#kind.asRecord(configured), version: undefined }
  }

  /** The record of the store, as it is now. */
  async #current(key: string) {
    this.refuseTaken(key)
    const entry = await this.#entry(key)
    const before = this.#kind.read(entry.value)
    return { entry, before, written: writtenForm(this.#kind.schema, before) }
  }

  async #planned(entry: Entry, change: RecordChange<R>): Promise<PlannedChange> {
    const { schema, what, kind } = this.#kind
    const { before, after, warnings, had, value = { ...entry.value, record: after } } = change
    return planChange(this.parts, {
      at: { kind, entry },
      value,
      announced: { [what]: entry.key },
      warnings,
      records: { before, after },
      written: { before: writtenForm(schema, before), after: writtenForm(schema, after) },
      losses: await this.losses(entry.key, had, after),
      via: `change of the ${what}`,
    })
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

  #at(key: string) {
    return { kind: this.#kind.kind, key, missing: () => this.missing(key) }
  }

  #entry(key: string): Promise<Entry> {
    return foundEntry(this.parts.store, this.#at(key))
  }
}

/** A map of one record; empty where there is none. */
export const only = <T>(key: string, value: T | false | undefined): ReadonlyMap<string, T> =>
  new Map(value === false || value === undefined ? [] : [[key, value]])

export const inConfiguration = (what: string, name: string): string =>
  `${what} "${name}" is in the configuration, which no command changes: edit it there.`

const BUSINESSES: RecordKind<BusinessRecord, ConfiguredBusiness> = {
  what: 'business',
  kind: BUSINESS,
  schema: businessSchema,
  read: readBusiness,
  keyOf: ({ code }) => code,
  fixed: ['code'],
  configured: ({ configured }) => configured.businesses,
  asRecord: ({ code, name, address, phoneNumber, funds }) => ({
    code,
    name,
    funds: funds === 'any' ? 'any' : 'listed',
    disabled: false,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
  }),
  taken: (code, { configured }) =>
    configured.businesses.has(code) ? inConfiguration('Business', code) : undefined,
  check: () => undefined,
  // Its funds have records of their own, so it loses none of them by a change of its own.
  holdings: (record, code, { catalogue }) =>
    holdingsOf({ businesses: only(code, record && { funds: 'any', disabled: record.disabled }) }, catalogue),
  clear: (business, { store }) => store.removeBy(FUND, { business }),
}

/** A fund of the configuration. */
interface ConfiguredFund {
  readonly business: string
  readonly code: string
}

/** The funds of the configuration, by key: made once for each configuration. */
const fundsOf = new WeakMap<EditingParts['configured'], ReadonlyMap<string, ConfiguredFund>>()

function configuredFunds({ configured }: EditingParts): ReadonlyMap<string, ConfiguredFund> {
  const known = fundsOf.get(configured)
  if (known !== undefined) return known
  const funds = [...configured.businesses.values()].flatMap(({ code: business, funds }) =>
    funds === 'any' ? [] : [...funds].map((code) => [fundKey(business, code), { business, code }] as const),
  )
  const byKey = new Map(funds)
  fundsOf.set(configured, byKey)
  return byKey
}

const FUNDS: RecordKind<FundRecord, ConfiguredFund> = {
  what: 'fund',
  kind: FUND,
  schema: fundSchema,
  read: readFund,
  keyOf: ({ business, code }) => fundKey(business, code),
  fixed: ['business', 'code'],
  indexes: ({ business }) => ({ business }),
  configured: configuredFunds,
  asRecord: (fund) => ({ ...fund, disabled: false }),
  taken: (key, { configured }) => {
    const [business = ''] = key.split('/')
    return configured.businesses.has(business)
      ? `Business "${business}" is in the configuration, and its funds with it: edit them there.`
      : undefined
  },
  check: () => undefined,
  admit: async ({ business }, { store }) => {
    const entry = await store.find(BUSINESS, business)
    if (entry === undefined)
      throw new DirectoryRefusal(`There is no business "${business}".`, undefined, 'missing')
    if (readBusiness(entry.value).funds === 'any')
      throw new DirectoryRefusal(
        `Business "${business}" has \`funds: any\`: only the backend knows which funds there are.`,
      )
  },
  holdings: (record, key, { catalogue }) => {
    const [business = '', code = ''] = key.split('/')
    const funds = new Set(record?.disabled === false ? [code] : [])
    return holdingsOf({ businesses: new Map([[business, { funds }]]) }, catalogue)
  },
}

const ROLES: RecordKind<RoleRecord, Access> = {
  what: 'role',
  kind: ROLE,
  schema: roleSchema,
  read: readRole,
  keyOf: ({ name }) => name,
  fixed: ['name'],
  configured: ({ configured }) => configured.roles,
  asRecord: ({ role, scopes }) => ({ name: role, scopes, disabled: false }),
  taken: (name, { configured }) => (configured.roles.has(name) ? inConfiguration('Role', name) : undefined),
  check: ({ scopes }, { catalogue }, problems) => checkScopes(scopes, catalogue, ['scopes'], problems),
  holdings: (record, name, { catalogue }) =>
    holdingsOf(
      { roles: only(name, record?.disabled === false && { role: name, scopes: record.scopes }) },
      catalogue,
    ),
}

/**
 * Businesses of the store, by code. `disable` ends the tokens for the business, `remove` its consents and funds too.
 */
export class BusinessEditor extends RecordEditor<BusinessRecord, ConfiguredBusiness> {
  constructor(parts: EditingParts) {
    super(BUSINESSES, parts)
  }
}

/**
 * Funds of the store's businesses, by `{business}/{fund}`. A fund that is disabled or removed is unknown at the next
 * call (C4.8), no token is issued for it, and the access tokens for it end.
 */
export class FundEditor extends RecordEditor<FundRecord, ConfiguredFund> {
  constructor(parts: EditingParts) {
    super(FUNDS, parts)
  }
}

/** Roles of the store, by name. What a change takes away ends the access tokens that were issued by the role (C6.3.6). */
export class RoleEditor extends RecordEditor<RoleRecord, Access> {
  constructor(parts: EditingParts) {
    super(ROLES, parts)
  }
}
