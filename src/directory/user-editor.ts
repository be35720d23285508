import { randomUUID } from 'node:crypto'
import { Report } from '../config/report.ts'
import type { Access, Client, PasswordHasher } from '../contracts/people.ts'
import type { Entry, Page } from '../contracts/store.ts'
import { checkUser, toClient } from './compile-records.ts'
import { userRecordSchema, type UserRecord } from './config.ts'
import { type Holdings, holdingsOf } from './holdings.ts'
import { type ListedPage, pageOf } from './listing.ts'
import { lossesBetween } from './losses.ts'
import { type ChangesOf, type EndedLoss, merged, planChange, type PlannedChange } from './planned-change.ts'
import { problemsAt, readRecord, writtenForm } from './read-records.ts'
import type { AddedRecord, FoundRecord } from './record-editor.ts'
import { referable } from './references.ts'
import { Roles, storedRoles } from './roles.ts'
import { ARGON2_COST, formatArgon2 } from './secret-hash.ts'
import {
  announce,
  CLIENT,
  readStoredClient,
  readStoredUser,
  SUBJECT,
  USER,
  type StoredSubject,
  type StoredUser,
} from './stored-directory.ts'
import {
  changeRecord,
  DirectoryRefusal,
  type EditingParts,
  foundEntry,
  missingText,
  refuseTaken,
  untilInForce,
} from './stored-editing.ts'

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

/** Characters (OWASP ASVS 4.0 §2.1.1, §2.1.2). */
export const PASSWORD_LENGTH = { least: 12, most: 1024 } as const

/** In place of the hash of a password that was refused, so that the other problems of the record are told too. */
const NO_PASSWORD = formatArgon2({ ...ARGON2_COST, salt: Buffer.alloc(16), tag: Buffer.alloc(32) })

/** Reports what is wrong with a password, and never shows it. */
function isPassword(given: unknown, report: Report): given is string {
  const { least, most } = PASSWORD_LENGTH
  if (typeof given === 'string' && given.length >= least && given.length <= most) return true
  const expected = `expected a text of ${least} to ${most} characters`
  const trouble =
    given === undefined ? 'is missing' : typeof given === 'string' ? 'is too short or too long' : 'is no text'
  report.error(['password'], `${trouble}: ${expected}`)
  return false
}

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
  async add({ password, ...written }: WrittenUser): Promise<AddedRecord<UserRecord>> {
    this.#refuseConfigured(written['username'])
    const report = new Report()
    const hash = isPassword(password, report) ? await this.#parts.hasher.hash(password) : NO_PASSWORD
    const record = await this.#read({ subject: randomUUID(), ...written, password: hash }, report)
    await this.#create(record)
    await announce(this.#parts, { user: record.username })
    return { record, warnings: report.problems }
  }

  /**
   * From now on every login is refused, and the user's access tokens, refresh tokens and sessions are ended. May be
   * called again.
   */
  async disable(username: string): Promise<readonly EndedLoss[]> {
    return this.#endAll(await this.#change(username, { disabled: true }))
  }

  /**
   * Removes the user, and ends what the user holds, consents too. The name and the subject may be given again.
   *
   * @param version of the record that is meant; without it, the latest
   * @returns false if another version is the latest: nothing has changed then
   */
  async remove(username: string, version?: number): Promise<boolean> {
    this.#refuseConfigured(username)
    const { store, tokenRevoker } = this.#parts
    const entry = await foundEntry(store, this.#at(username))
    const { subject } = readStoredUser(entry.value).record
    if (!(await store.remove(USER, username, version)) && version !== undefined) return false
    await announce(this.#parts, { user: username })
    await tokenRevoker.end({ subject }, { consents: true })
    await untilInForce(this.#parts)
    // Last, so that nobody else gets the subject before everything of it has ended.
    await store.remove(SUBJECT, subject)
    return true
  }

  async enable(username: string): Promise<void> {
    await this.#change(username, { disabled: false })
    await untilInForce(this.#parts)
  }

  /** Also ends what the user holds: who logged in with the old password must log in again. */
  async setPassword(username: string, password: unknown): Promise<readonly EndedLoss[]> {
    this.#refuseConfigured(username)
    return this.#endAll(await this.#change(username, { password: await this.#hash(password) }))
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
    const roles = await this.#roles(before, after)
    const holdings = (record: UserRecord): Holdings =>
      holdingsOf({ users: new Map([[username, record]]), roles }, this.#parts.catalogue)
    return planChange(this.#parts, {
      ...{ at: { kind: USER, entry }, value, announced: { user: username }, warnings: report.problems },
      records: { before, after },
      written: { before: written, after: writtenForm(userRecordSchema, after) },
      losses: lossesBetween(holdings(before), holdings(after)),
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

  #hash(password: unknown): Promise<string> {
    const report = new Report()
    if (isPassword(password, report)) return this.#parts.hasher.hash(password)
    throw new DirectoryRefusal('The password has a problem.', report)
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

  /** The roles of a user before and after a change, as they are now. */
  #roles(before: UserRecord, after: UserRecord): Promise<ReadonlyMap<string, Access>> {
    const { configured, store } = this.#parts
    const names = [before, after].flatMap(({ access }) => Object.values(access))
    return new Roles(configured.roles, storedRoles(store)).of(names)
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
  async #endAll(subject: string): Promise<readonly EndedLoss[]> {
    const tokens = { subject }
    const ended = await this.#parts.tokenRevoker.end(tokens, { order: { via: 'change of the user' } })
    await untilInForce(this.#parts)
    return [{ loss: { tokens, consents: false }, ended }]
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
