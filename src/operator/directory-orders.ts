/** What operators can do to the records of the directory (C11.5.1), by the admin API and by commands alike. */
import type { Problem } from '../config/problems.ts'
import type { Page } from '../contracts/store.ts'
import type { NounName, ShownRecord, Written } from '../directory/nouns.ts'
import type { ChangesOf, EndedLoss, ListedPage } from '../directory/editing.ts'

/** A record, by what it is and its names: of a fund its business and its code. */
export interface RecordAt {
  readonly noun: NounName
  readonly names: readonly string[]
}

export interface AddedRecord extends ShownRecord {
  /** Of a client: to be shown once, since only its hash is stored. */
  readonly secret: string | undefined
  readonly warnings: readonly Problem[]
}

export interface EditedRecord extends ShownRecord {
  /** The members that have changed. */
  readonly changed: readonly string[]
  /** What the change has ended. */
  readonly ended: readonly EndedLoss[]
  readonly warnings: readonly Problem[]
}

/** A record whose state was switched. */
export type SwitchedRecord = Pick<EditedRecord, 'record' | 'tag' | 'ended'>

/** Another version than the one that was meant is the latest. Nothing has changed. */
export class OvertakenError extends Error {
  override readonly name = 'OvertakenError'
  /** Of the latest version. */
  readonly tag: string

  constructor(tag: string) {
    super('another version is the latest')
    this.tag = tag
  }
}

/** A secret that is to be in force, and whether it is to be stored, or only what would be: it can be shown before. */
export interface SecretOptions {
  /** Default: another one is drawn. */
  readonly secret?: string | undefined
  readonly preview?: boolean
}

/** Whether a version, by its tag, is the one that is meant. */
export type IsMeant = (tag: string) => boolean

/**
 * Every method rejects with DirectoryRefusal if the order is not allowed, with Fault `identity_unavailable` if the store
 * cannot be reached, with Fault `audit_unavailable` if what gives something cannot be recorded, and with OvertakenError.
 * A change is in force everywhere when its promise resolves; what is added, within a second.
 */
export interface DirectoryOrders {
  /** A page of the records of both layers. `within` are the names before the last one: of funds their business. */
  list(noun: NounName, within: readonly string[], page: Page): Promise<ListedPage<Written>>
  show(at: RecordAt): Promise<ShownRecord>
  /** With `preview`, the record has no tag. */
  add(noun: NounName, written: Written, options?: SecretOptions): Promise<AddedRecord>
  edit(at: RecordAt, changes: ChangesOf, isMeant?: IsMeant): Promise<EditedRecord>
  disable(at: RecordAt, isMeant?: IsMeant): Promise<SwitchedRecord>
  enable(at: RecordAt, isMeant?: IsMeant): Promise<SwitchedRecord>
  remove(at: RecordAt, isMeant?: IsMeant): Promise<void>
  /** The old secret stays valid for so many milliseconds. */
  rotateSecret(
    client: string,
    overlap: number,
    isMeant?: IsMeant,
    options?: SecretOptions,
  ): Promise<ShownRecord & { readonly secret: string }>
  setPassword(username: string, password: unknown, isMeant?: IsMeant): Promise<SwitchedRecord>
}
