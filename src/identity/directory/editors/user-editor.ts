import { randomUUID } from 'node:crypto'
import { Problems } from '../../../base/config/problems.ts'
import type { Access, Client } from '../../../base/contracts/people/people.ts'
import { toClient } from '../records/client-rules.ts'
import { checkUser } from '../records/compile-records.ts'
import {
  alreadyThere,
  DirectoryRefusal,
  type EditingParts,
  type PlannedAdd,
  type PlannedChange,
  referable,
} from './editing.ts'
import { type Hasher, isPassword, NO_PASSWORD } from '../hashing/hasher.ts'
import { type Holdings, holdingsOf, type Loss, lossesBetween } from '../records/holdings.ts'
import { MarkableEditor } from './markable-editor.ts'
import { only, type RecordKind } from './record-editor.ts'
import type { UserRecord } from '../records/schema.ts'
import {
  CLIENT,
  everyRecord,
  freeSubject,
  readStoredClient,
  readStoredUser,
  Roles,
  storedRoles,
  type StoredSubject,
  type StoredUser,
  SUBJECT,
  USER,
} from '../records/stored-directory.ts'
import { claimedByConfiguration } from '../records/uniqueness.ts'

export interface UserEditingParts extends EditingParts {
  readonly hasher: Hasher
  /** Whether `directory.people` finds further users. */
  readonly peopleElsewhere?: boolean
}

/** A user as an operator writes it: the password as it is, not its hash. Without a subject, a random one is used. */
interface WrittenUser {
  readonly username: string
  readonly password: string
  readonly [key: string]: unknown
}

const subjectTaken = (subject: string): DirectoryRefusal =>
  new DirectoryRefusal(`Subject "${subject}" belongs to another user.`)

const USERS: RecordKind<UserRecord, UserRecord> & { readonly what: 'user' } = {
  what: 'user',
  kind: USER,
  read: (value) => readStoredUser(value).record,
  configured: ({ configured }) => configured.users,
  asRecord: (record) => record,
  check: async (record, parts, problems) => {
    const clients = await clientsOf(record, parts)
    const named = { businesses: Object.keys(record.access), roles: Object.values(record.access) }
    const names = await referable(parts, named)
    checkUser(record, { ...parts.configured, ...names, catalogue: parts.catalogue, clients }, problems)
  },
  holdings: (record, name, { catalogue }) => holdingsOf({ users: only(name, record) }, catalogue),
  free: ({ subject }, { store }) => freeSubject(subject, store),
}

/** The clients of the configuration, and from the store the user's customers and a client whose id is the subject. */
async function clientsOf(
  { customers, subject }: UserRecord,
  { configured, store }: EditingParts,
): Promise<ReadonlyMap<string, Client>> {
  const clients = new Map(configured.clients)
  for (const id of [...customers, subject]) {
    const entry = clients.has(id) ? undefined : await store.find(CLIENT, id)
    if (entry) clients.set(id, toClient(readStoredClient(entry.value).record))
  }
  return clients
}

/** Users of the store, by name. A subject has a record of its own, so that it is given only once. */
export class UserEditor extends MarkableEditor<UserRecord, UserRecord> {
  readonly #hasher: Hasher
  readonly #peopleElsewhere: boolean

  constructor({ hasher, peopleElsewhere = false, ...parts }: UserEditingParts) {
    super(USERS, parts)
    this.#hasher = hasher
    this.#peopleElsewhere = peopleElsewhere
  }

  override async planAdd({ password, ...written }: WrittenUser): Promise<PlannedAdd<UserRecord>> {
    this.refuseTaken(written.username)
    const problems = new Problems()
    const hash = isPassword(password, problems) ? await this.#hasher.hash(password) : NO_PASSWORD
    const record = await this.read({ subject: randomUUID(), ...written, password: hash }, problems)
    await this.#refuseOwned(record)
    return {
      record,
      warnings: problems.list,
      commit: async () => {
        await this.#create(record)
        await this.announce(record.username)
        return undefined
      },
    }
  }

  /** Also ends what the user holds: who logged in with the old password must log in again. */
  async planPassword(username: string, given: unknown): Promise<PlannedChange> {
    this.refuseTaken(username)
    const problems = new Problems()
    if (!isPassword(given, problems)) throw new DirectoryRefusal('The password has a problem.', problems)
    const password = await this.#hasher.hash(given)
    return this.planUnchecked(username, (record) => ({ record: { ...record, password } }))
  }

  protected override subjectsOf({ subject }: UserRecord): readonly string[] {
    return [subject]
  }

  /** The users whom `directory.people` has found under this name and who have logged in: before a login, they hold nothing. */
  protected override async elsewhere(username: string): Promise<readonly string[] | undefined> {
    if (!this.#peopleElsewhere) return undefined
    const subjects: string[] = []
    for await (const { key, value } of everyRecord(this.parts.store, SUBJECT)) {
      const owner = value as StoredSubject
      if (owner.module === true && owner.username === username) subjects.push(key)
    }
    return subjects.length === 0 ? undefined : subjects
  }

  /** With the roles of both records, as they are now. */
  protected override async losses(
    username: string,
    before: UserRecord,
    after: UserRecord | undefined,
  ): Promise<readonly Loss[]> {
    const { configured, store, catalogue } = this.parts
    const names = [before, after].flatMap((record) => Object.values(record?.access ?? {}))
    const roles: ReadonlyMap<string, Access> = await new Roles(configured.roles, storedRoles(store)).of(names)
    const holdings = (record: UserRecord | undefined): Holdings =>
      holdingsOf({ users: only(username, record), roles }, catalogue)
    return lossesBetween(holdings(before), holdings(after))
  }

  /** Whether the configuration has a user with the same subject: what belongs to that user stays. */
  protected override isHidden({ subject }: UserRecord): boolean {
    return this.parts.configured.usersBySubject.has(subject)
  }

  protected override async missing(username: string): Promise<string> {
    const missing = await super.missing(username)
    return this.#peopleElsewhere
      ? `${missing} People whom \`directory.people\` finds are changed in their own system; \`postern user disable\` knows those who have logged in, by the name that it gives them. \`postern revoke --subject\` ends what one holds.`
      : missing
  }

  /** Refuses a name or a subject that is taken. Of a `user add` that died half way, the subject is free for the same name. */
  async #refuseOwned({ username, subject }: UserRecord): Promise<void> {
    const { store } = this.parts
    const taken = claimedByConfiguration({ subject, username }, this.parts.configured)
    if (taken !== undefined) throw new DirectoryRefusal(taken)
    const owner = await store.find(SUBJECT, subject)
    if (owner !== undefined && owner.value['username'] !== username) throw subjectTaken(subject)
    if ((await store.find(USER, username)) !== undefined) throw alreadyThere('user', username)
  }

  /** The subject first: two users never get the same one. After a crash in between `user add` can be repeated. */
  async #create(record: UserRecord): Promise<void> {
    const { username, subject } = record
    const { store } = this.parts
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
}
