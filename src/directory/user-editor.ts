import { randomUUID } from 'node:crypto'
import { Report } from '../config/report.ts'
import type { Client, PasswordHasher } from '../contracts/people.ts'
import { checkUser, toClient } from './compile-records.ts'
import { userRecordSchema, type UserRecord } from './config.ts'
import { holdingsOf, lossesBetween } from './holdings.ts'
import { type ChangesOf, merged, planChange, type PlannedChange } from './planned-change.ts'
import { problemsAt, readRecord, writtenForm } from './read-records.ts'
import { referable } from './references.ts'
import {
  CLIENT,
  readStoredClient,
  readStoredUser,
  SUBJECT,
  USER,
  type StoredSubject,
  type StoredUser,
} from './stored-directory.ts'
import {
  announce,
  changeRecord,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  missingText,
  recordsOf,
  refuseTaken,
  untilInForce,
} from './stored-editing.ts'

export interface UserEditingParts extends EditingParts {
  readonly hasher: PasswordHasher
  /** Whether `directory.people` finds further users. */
  readonly peopleElsewhere?: boolean
}

/** A user as an operator writes it. Without a subject, a random one is used. */
export interface WrittenUser {
  readonly username: string
  readonly [key: string]: unknown
}

/** A user in a list. */
export interface ListedUser {
  readonly username: string
  readonly subject: string
  readonly source: 'configuration' | 'store'
  readonly disabled: boolean
  readonly locked: boolean
  readonly customers: readonly string[]
  /** Role by business. */
  readonly access: Readonly<Record<string, string>>
}

/** Characters (OWASP ASVS 4.0 §2.1.1). */
export const SHORTEST_PASSWORD = 12

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
  async add(written: WrittenUser, password: string): Promise<UserRecord> {
    this.#refuseConfigured(written.username)
    const hash = await this.#hash(password)
    const record = await this.#read({ subject: randomUUID(), ...written, password: hash })
    await this.#create(record)
    await announce(this.#parts, { user: record.username })
    return record
  }

  /**
   * From now on every login is refused, and the user's access tokens, refresh tokens and sessions are ended. May be
   * called again.
   */
  async disable(username: string): Promise<void> {
    await this.#endAll(await this.#change(username, { disabled: true }))
  }

  /** Removes the user, and ends what the user holds, consents too. The name and the subject may be given again. */
  async remove(username: string): Promise<void> {
    this.#refuseConfigured(username)
    const { store, tokenRevoker } = this.#parts
    const entry = await foundEntry(store, this.#at(username))
    const { subject } = readStoredUser(entry.value).record
    await store.remove(USER, username)
    await announce(this.#parts, { user: username })
    await tokenRevoker.end({ subject }, { consents: true })
    await untilInForce(this.#parts)
    // Last, so that nobody else gets the subject before everything of it has ended.
    await store.remove(SUBJECT, subject)
  }

  async enable(username: string): Promise<void> {
    await this.#change(username, { disabled: false })
    await untilInForce(this.#parts)
  }

  /** Also ends what the user holds: who logged in with the old password must log in again. */
  async setPassword(username: string, password: string): Promise<void> {
    this.#refuseConfigured(username)
    await this.#endAll(await this.#change(username, { password: await this.#hash(password) }))
  }

  /** A change of what is written of the user. Refuses one that `add` would refuse. */
  async plan(username: string, changes: ChangesOf): Promise<PlannedChange> {
    this.#refuseConfigured(username)
    const entry = await foundEntry(this.#parts.store, this.#at(username))
    const { record: before } = readStoredUser(entry.value)
    const written = writtenForm(userRecordSchema, before)
    const report = new Report()
    const after = await this.#read(merged(written, changes(written)), report)
    const value: StoredUser = { record: after }
    const holdings = (record: UserRecord) => holdingsOf({ users: new Map([[username, record]]) })
    return planChange(this.#parts, {
      ...{ at: { kind: USER, entry }, value, announced: { user: username }, warnings: report.problems },
      records: { before, after },
      written: { before: written, after: writtenForm(userRecordSchema, after) },
      losses: lossesBetween(holdings(before), holdings(after)),
      via: 'change of the user',
    })
  }

  /** The users of the configuration come first. */
  async list(): Promise<readonly ListedUser[]> {
    const listed =
      (source: ListedUser['source']) =>
      ({ username, subject, disabled, locked, customers, access }: UserRecord): ListedUser => ({
        ...{ username, subject, source, disabled, locked, customers, access },
      })
    const configured = [...this.#parts.configured.users.values()].map(listed('configuration'))
    const inStore = listed('store')
    const stored = await Array.fromAsync(recordsOf(this.#parts, USER), ({ value }) =>
      inStore(readStoredUser(value).record),
    )
    return [...configured, ...stored]
  }

  /**
   * Writes the subject first, so that two users never get the same one. After a crash in between, `user add` can be
   * repeated.
   */
  async #create(record: UserRecord): Promise<void> {
    const { username, subject } = record
    const { store } = this.#parts
    refuseTaken(this.#parts, { subject, username })
    const taken = new DirectoryRefusal(`Subject "${subject}" belongs to another user.`)
    const owner: StoredSubject = { username }
    if (!(await store.create(SUBJECT, subject, { value: owner }))) {
      const other = await store.find(SUBJECT, subject)
      if (other?.value['username'] !== username) throw taken
    }
    const value: StoredUser = { record }
    if (await store.create(USER, username, { value })) return
    const other = await store.find(USER, username)
    if (other && readStoredUser(other.value).record.subject !== subject) await store.remove(SUBJECT, subject)
    throw new DirectoryRefusal(`There is a user "${username}" already.`)
  }

  async #hash(password: string): Promise<string> {
    if (password.length < SHORTEST_PASSWORD)
      throw new DirectoryRefusal(
        `The password is too short: expected at least ${SHORTEST_PASSWORD} characters.`,
      )
    return this.#parts.hasher.hash(password)
  }

  async #read(written: object, report = new Report()): Promise<UserRecord> {
    const { configured, catalogue } = this.#parts
    const record = readRecord(userRecordSchema, written, report)
    if (record) {
      const clients = await this.#customers(record)
      const named = { businesses: Object.keys(record.access), roles: Object.values(record.access) }
      const names = await referable(this.#parts, named)
      checkUser(record, { ...configured, ...names, catalogue, clients }, problemsAt(report, []))
    }
    if (record === undefined || report.failed) throw new DirectoryRefusal('The user has problems.', report)
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

  /** Resolves with the subject. */
  async #change(username: string, changes: Partial<UserRecord>): Promise<string> {
    this.#refuseConfigured(username)
    const { record } = await changeRecord(this.#parts, this.#at(username), (value): StoredUser => ({
      record: { ...readStoredUser(value).record, ...changes },
    }))
    await announce(this.#parts, { user: username })
    return record.subject
  }

  /**
   * To be called after the change is announced. A process that does not know the change does not know the rule
   * either, so the rule ends what that process begins meanwhile. When this resolves, both are in force everywhere.
   */
  async #endAll(subject: string): Promise<void> {
    await this.#parts.tokenRevoker.end({ subject }, { order: { via: 'change of the user' } })
    await untilInForce(this.#parts)
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
