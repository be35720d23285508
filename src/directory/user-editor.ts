import { randomUUID } from 'node:crypto'
import { type Problem, Problems } from '../config/problems.ts'
import type { Access, Client, PasswordHasher } from '../contracts/people.ts'
import type { Entry, Page } from '../contracts/store.ts'
import { checkUser, toClient } from './compile-records.ts'
import { isPassword, NO_PASSWORD } from './hasher.ts'
import { type Holdings, holdingsOf, type Loss, lossesBetween } from './holdings.ts'
import {
  alreadyThere,
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
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
  refuseTaken,
} from './editing.ts'
import { problemsAt, readRecord, writtenForm } from './read-records.ts'
import type { FoundRecord } from './record-editor.ts'
import { referable } from './references.ts'
import { type UserRecord, userRecordSchema } from './schema.ts'
import {
  announce,
  CLIENT,
  readStoredClient,
  readStoredUser,
  Roles,
  storedRoles,
  type StoredSubject,
  type StoredUser,
  SUBJECT,
  USER,
} from './stored-directory.ts'

export interface UserEditingParts extends EditingParts {
  readonly hasher: PasswordHasher
  /** Whether `directory.people` finds further users. */
  readonly peopleElsewhere?: boolean
}

/** A user as an operator writes it: the password as it is, not its hash. Without a subject, a random one is used. */
export interface WrittenUser {
  readonly username: string
  readonly password: string
  readonly [key: string]: unknown
}

interface UserChange {
  readonly before: UserRecord
  readonly after: UserRecord
  readonly losses: readonly Loss[]
  readonly warnings?: readonly Problem[]
}

const subjectTaken = (subject: string): DirectoryRefusal =>
  new DirectoryRefusal(`Subject "${subject}" belongs to another user.`)

/**
 * Adds and changes users of the store. Users of the configuration are only listed. All methods reject with
 * DirectoryRefusal if the change is not allowed, and with Fault `identity_unavailable` if the store cannot be
 * reached.
 */
export class UserEditor {
  readonly #parts: UserEditingParts

  constructor(parts: UserEditingParts) {
    this.#parts = parts
  }

  /** Refuses a user or password that has problems, and a name or subject that is taken. */
  async planAdd({ password, ...written }: WrittenUser): Promise<PlannedAdd<UserRecord>> {
    this.#refuseConfigured(written['username'])
    const problems = new Problems()
    const hash = isPassword(password, problems) ? await this.#parts.hasher.hash(password) : NO_PASSWORD
    const record = await this.#read({ subject: randomUUID(), ...written, password: hash }, problems)
    await this.#refuseOwned(record)
    return {
      ...{ record, warnings: problems.list },
      commit: async () => {
        await this.#create(record)
        await announce(this.#parts, { user: record.username })
        return undefined
      },
    }
  }

  /**
   * While the user is disabled, every login is refused; access tokens, refresh tokens and sessions end. May be disabled
   * again.
   */
  planSwitch(username: string, disabled: boolean): Promise<PlannedChange> {
    return this.#planStep(username, { disabled })
  }

  /**
   * Removes the user, and ends what the user holds, consents too. The name and the subject may be given again. What belongs
   * to a user of the configuration with the same subject stays.
   */
  async planRemoval(username: string): Promise<PlannedStep<true>> {
    const { store, configured } = this.#parts
    const refuse = (): void => this.#refuseConfigured(username)
    const entry = await foundUnlessConfigured(store, this.#at(username), refuse)
    const { subject } = readStoredUser(entry.value).record
    const { version, record } = await this.show(username)
    return planRemoval(this.#parts, {
      ...{ at: { kind: USER, entry }, announced: { user: username }, via: 'removal of the user' },
      shown: { version, written: writtenForm(userRecordSchema, record) },
      losses: configured.usersBySubject.has(subject) ? [] : [{ tokens: { subject }, consents: true }],
      free: () => store.remove(SUBJECT, subject),
    })
  }

  /** Also ends what the user holds: who logged in with the old password must log in again. */
  async planPassword(username: string, password: unknown): Promise<PlannedChange> {
    this.#refuseConfigured(username)
    return this.#planStep(username, { password: await this.#hash(password) })
  }

  /** A change of what is written of the user. Refuses one that `add` would refuse. */
  async plan(username: string, changes: ChangesOf): Promise<PlannedChange> {
    this.#refuseConfigured(username)
    const entry = await foundEntry(this.#parts.store, this.#at(username))
    const { record: before } = readStoredUser(entry.value)
    const written = writtenForm(userRecordSchema, before)
    const problems = new Problems()
    const after = await this.#read(merged(written, changes(written)), problems)
    const losses = await this.#losses(before, after)
    return this.#planned(entry, { before, after, losses, warnings: problems.list })
  }

  /** A change of a user that is not checked anew: the record may name what is gone from the configuration meanwhile. */
  async #planStep(username: string, changes: Partial<UserRecord>): Promise<PlannedChange> {
    this.#refuseConfigured(username)
    const entry = await foundEntry(this.#parts.store, this.#at(username))
    const { record: before } = readStoredUser(entry.value)
    const after = { ...before, ...changes }
    // Of one who is disabled already, everything ends again: it may be left of an attempt that failed half way.
    const losses = await this.#losses({ ...before, disabled: false }, after)
    return this.#planned(entry, { before, after, losses })
  }

  async #losses(before: UserRecord, after: UserRecord): Promise<readonly Loss[]> {
    const roles = await this.#roles(before, after)
    const holdings = (record: UserRecord): Holdings =>
      holdingsOf({ users: new Map([[record.username, record]]), roles }, this.#parts.catalogue)
    return lossesBetween(holdings(before), holdings(after))
  }

  #planned(entry: Entry, { before, after, losses, warnings = [] }: UserChange): PlannedChange {
    const value: StoredUser = { record: after }
    return planChange(this.#parts, {
      ...{ at: { kind: USER, entry }, value, announced: { user: entry.key }, warnings, losses },
      records: { before, after },
      written: {
        before: writtenForm(userRecordSchema, before),
        after: writtenForm(userRecordSchema, after),
      },
      via: 'change of the user',
    })
  }

  /** Rejects with DirectoryRefusal if neither layer has the user. */
  async show(username: string): Promise<FoundRecord<UserRecord>> {
    const configured = this.#parts.configured.users.get(username)
    if (configured !== undefined) return ofConfiguration(configured)
    return ofStore(await foundEntry(this.#parts.store, this.#at(username)))
  }

  /** One page of both layers, in the order of names. */
  async list(page: Page): Promise<ListedPage<FoundRecord<UserRecord>>> {
    const { configured, store } = this.#parts
    const { items, next } = await pageOf({ configured: configured.users, store, kind: USER }, page)
    const found = items.map((item) =>
      item.source === 'store' ? ofStore(item.entry) : ofConfiguration(item.record),
    )
    return { items: found, next }
  }

  /** Refuses a name or a subject that is taken. Of a `user add` that died half way, the subject is free for the same name. */
  async #refuseOwned({ username, subject }: UserRecord): Promise<void> {
    const { store } = this.#parts
    refuseTaken(this.#parts, { subject, username })
    const owner = await store.find(SUBJECT, subject)
    if (owner !== undefined && owner.value['username'] !== username) throw subjectTaken(subject)
    if ((await store.find(USER, username)) !== undefined) throw alreadyThere('user', username)
  }

  /**
   * Writes the subject first, so that two users never get the same one. After a crash in between, `user add` can be
   * repeated.
   */
  async #create(record: UserRecord): Promise<void> {
    const { username, subject } = record
    const { store } = this.#parts
    const owner: StoredSubject = { username }
    if (!(await store.create(SUBJECT, subject, { value: owner }))) {
      const other = await store.find(SUBJECT, subject)
      if (other?.value['username'] !== username) throw subjectTaken(subject)
    }
    const value: StoredUser = { record }
    if (await store.create(USER, username, { value })) return
    const other = await store.find(USER, username)
    if (other && readStoredUser(other.value).record.subject !== subject) await store.remove(SUBJECT, subject)
    throw alreadyThere('user', username)
  }

  #hash(password: unknown): Promise<string> {
    const problems = new Problems()
    if (isPassword(password, problems)) return this.#parts.hasher.hash(password)
    throw new DirectoryRefusal('The password has a problem.', problems)
  }

  async #read(written: object, problems = new Problems()): Promise<UserRecord> {
    const { configured, catalogue } = this.#parts
    const record = readRecord(userRecordSchema, written, problems)
    if (record) {
      const clients = await this.#customers(record)
      const named = { businesses: Object.keys(record.access), roles: Object.values(record.access) }
      const names = await referable(this.#parts, named)
      checkUser(record, { ...configured, ...names, catalogue, clients }, problemsAt(problems, []))
    }
    if (record === undefined || problems.failed)
      throw new DirectoryRefusal('The user has problems.', problems)
    return record
  }

  /**
   * The clients that the user may name as customers: all of the configuration, and those of the store that the user
   * names.
   */
  async #customers({ customers }: UserRecord): Promise<ReadonlyMap<string, Client>> {
    const clients = new Map(this.#parts.configured.clients)
    for (const id of customers) {
      const entry = clients.has(id) ? undefined : await this.#parts.store.find(CLIENT, id)
      if (entry) clients.set(id, toClient(readStoredClient(entry.value).record))
    }
    return clients
  }

  /** The roles of a user before and after a change, as they are now. */
  #roles(before: UserRecord, after: UserRecord): Promise<ReadonlyMap<string, Access>> {
    const { configured, store } = this.#parts
    const names = [before, after].flatMap(({ access }) => Object.values(access))
    return new Roles(configured.roles, storedRoles(store)).of(names)
  }

  #at(username: string) {
    return { kind: USER, key: username, missing: () => this.#missing(username) }
  }

  async #missing(username: string): Promise<string> {
    const missing = await missingText(this.#parts, 'user', { kind: USER, key: username })
    return this.#parts.peopleElsewhere === true
      ? `${missing} People whom \`directory.people\` finds are changed in their own system. \`postern revoke --subject\` ends what one holds.`
      : missing
  }

  #refuseConfigured(username: string): void {
    if (this.#parts.configured.users.has(username))
      throw new DirectoryRefusal(
        `User "${username}" is in the configuration, which no command changes: edit it there.`,
      )
  }
}

const ofStore = ({ key, value, version }: Entry): FoundRecord<UserRecord> => ({
  ...{ key, source: 'store', version },
  record: readStoredUser(value).record,
})

const ofConfiguration = (record: UserRecord): FoundRecord<UserRecord> => ({
  ...{ key: record.username, source: 'configuration', version: undefined },
  record,
})
