/** A kind of record that operators manage, as one literal (C11.5.1): checks, changes, commands and routes are made from it. */
import { type MemberFacts, type SchemaView, type TSchema, viewOf } from '../../../base/config/schema.ts'
import type { AuditObject } from '../../../base/contracts/records/audit.ts'
import type { IndexValues, NewEntry, StoredValue } from '../../../base/contracts/records/store.ts'
import type { HoldingParts } from '../records/holdings.ts'
import type { Markable } from '../records/marks.ts'
import type { RecordProblems } from '../records/read-records.ts'
import type { EditingParts, SecretFacts, Written } from './editing.ts'

export type NounName = 'client' | 'user' | 'business' | 'fund' | 'role'

export interface Switchable {
  readonly disabled: boolean
}

/** The texts of its commands. */
interface CommandTexts {
  /** Summaries of `add` and `disable`. */
  readonly add: string
  readonly disable: string
  /** Examples: a name as it is typed, and the words that follow it. `list` stands alone. */
  readonly samples: Readonly<Record<'name' | 'add' | 'edit' | 'list', string>>
}

/** For kinds whose records a mark of the store can disable, where no command changes them (records/marks.ts). */
interface Marking<R> {
  readonly kind: Markable
  /** The subjects of a record, which the mark follows. */
  subjects(record: R): readonly string[]
  /** The subjects of somebody whom neither layer has; undefined if nobody is known. */
  elsewhere(key: string, parts: EditingParts): Promise<readonly string[] | undefined>
}

/** A new record with hashes in place of what was given in clear text. `secret`: one that was drawn, to be shown once. */
export interface CompletedRecord {
  readonly written: Written
  readonly secret?: string | undefined
}

/**
 * All that differs between the kinds of records, but for the facts about single members: those are in the schema (MemberFacts).
 *
 * @typeParam R a record of the store
 * @typeParam C one of the configuration
 */
export interface RecordKind<R extends Switchable = Switchable, C = unknown> {
  /** As people call it, and the member of an announcement that has its key. */
  readonly noun: NounName
  readonly plural: string
  /** The kind of its records in the store. */
  readonly kind: string
  readonly schema: TSchema
  /** The members that name a record, in the order of its address: of a fund its business and its code. They never change. */
  readonly names: readonly string[]
  /** The columns of a list: members, `state` and `secrets`. */
  readonly columns: readonly string[]
  readonly texts: CommandTexts
  /** It is about a person: only who may administer sees it, and the trail has its name as a personal value. */
  readonly isPersonal?: true
  /** The hidden member that a new record may give in clear text, with its JSON schema. */
  readonly clearText?: Readonly<
    Record<string, { readonly minLength: number; readonly maxLength: number; readonly description: string }>
  >
  readonly marking?: Marking<R>
  /** Members that the store keeps next to a new record. */
  readonly beside?: StoredValue
  /** Members that need not be written, and their values then, besides the defaults of the schema. */
  defaults?(written: Written): Written
  /** The record as the audit trail names it. */
  object(names: readonly string[]): AuditObject

  read(value: StoredValue): R
  indexes?(record: R): IndexValues
  configured(parts: EditingParts): ReadonlyMap<string, C>
  /** One of the configuration, as a record of the store would be. */
  asRecord(configured: C): R
  /** Why a key cannot be changed here; undefined if it can. Default: the configuration has it. */
  taken?(key: string, parts: EditingParts): string | undefined
  /** Ends the message to who switches one of the configuration. */
  insteadOfSwitch?(key: string): string
  /** Ends the message about a key that is missing. */
  whereElse?(parts: EditingParts): string
  /** @param drawn the secret to take, where one is needed */
  complete?(
    written: Written,
    parts: EditingParts,
    problems: RecordProblems,
    drawn: string | undefined,
  ): Promise<CompletedRecord>
  /** @param before undefined: it is to be added */
  check?(
    record: R,
    parts: EditingParts,
    problems: RecordProblems,
    before: R | undefined,
  ): void | Promise<void>
  /** Rejects with DirectoryRefusal if such a record may not be added. */
  admit?(record: R, parts: EditingParts): Promise<void>
  /**
   * The record as the store keeps it, where that is not as it is written.
   * @param stands the stored value that it replaces
   */
  keep?(record: R, parts: EditingParts, stands: StoredValue | undefined): Promise<object>
  /** Writes a new record, where another one belongs to it. Resolves with false if the name is taken. */
  create?(record: R, entry: NewEntry, parts: EditingParts): Promise<boolean>
  /** Everything that others may hold because of it. Undefined: it was removed. */
  holdings(record: R | undefined, key: string): HoldingParts
  /** The roles that it names: what they give decides what is lost. */
  roles?(record: R): readonly string[]
  /** Whether nothing is held because of a record, because the configuration's counts. Default: it has the key. */
  isHidden?(record: R, parts: EditingParts): boolean
  /** @param value undefined: of the configuration */
  secrets?(record: R, value: StoredValue | undefined, now: number): SecretFacts
  /** Removes the records that belong to it. */
  clear?(key: string, parts: EditingParts): Promise<unknown>
  /** Frees a name or id that others may get only after everything that was issued for it has ended. */
  free?(record: R, parts: EditingParts): Promise<unknown>
}

export type RecordKinds = Readonly<Record<NounName, RecordKind>>

type Described = Pick<RecordKind, 'schema' | 'names'>

export const memberFactsOf = ({ schema }: Pick<Described, 'schema'>): Readonly<Record<string, SchemaView>> =>
  viewOf(schema).properties ?? {}

/** Whether the schema says so of a member. */
export const isMember = (fact: keyof MemberFacts, kind: Pick<Described, 'schema'>, member: string): boolean =>
  (memberFactsOf(kind)[member]?.[fact] ?? false) !== false

/** Whether no change may name another value. */
export const isFixed = (kind: Described, member: string): boolean =>
  kind.names.includes(member) || isMember('fixed', kind, member)

/** The key of the record that is named so. No name of a record with several names has a slash. */
export const keyOfNames = (names: readonly string[]): string => names.join('/')

export const namesOf = ({ names }: Described, record: object): readonly string[] =>
  names.map((name) => String((record as Written)[name]))

/** A map of one record; empty where there is none. */
export const only = <T>(key: string, value: T | false | undefined): ReadonlyMap<string, T> =>
  new Map(value === false || value === undefined ? [] : [[key, value]])
