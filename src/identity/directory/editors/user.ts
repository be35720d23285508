import { randomUUID } from 'node:crypto'
import { Problems } from '../../../base/config/problems.ts'
import type { Client } from '../../../base/contracts/people/people.ts'
import { isPassword, NO_PASSWORD, PASSWORD_LENGTH } from '../hashing/hasher.ts'
import { toClient } from '../records/client-rules.ts'
import { checkUser } from '../records/compile-records.ts'
import { type UserRecord, userRecordSchema } from '../records/schema.ts'
import {
  CLIENT,
  everyRecord,
  formerState,
  freeSubject,
  readStoredClient,
  readStoredUser,
  type StoredSubject,
  SUBJECT,
  USER,
} from '../records/stored-directory.ts'
import { claimedByConfiguration } from '../records/uniqueness.ts'
import { DirectoryRefusal, type EditingParts, type PlannedChange, referable } from './editing.ts'
import type { RecordEditor } from './record-editor.ts'
import { only, type RecordKind } from './record-kind.ts'

const subjectTaken = (subject: string): DirectoryRefusal =>
  new DirectoryRefusal(`Subject "${subject}" belongs to another user.`)

const subjectErased = (subject: string): DirectoryRefusal =>
  new DirectoryRefusal(
    `Subject "${subject}" was that of a person whose data was erased, and is never given again.`,
  )

/** Users of the store, by name. A subject has a record of its own, so that it is given only once. */
export const USER_RECORDS: RecordKind<UserRecord, UserRecord> = {
  noun: 'user',
  plural: 'users',
  kind: USER,
  schema: userRecordSchema,
  names: ['username'],
  columns: ['username', 'source', 'state', 'customers', 'access', 'subject'],
  texts: {
    add: 'Add a user. The password is typed or piped in; with --link the user sets it',
    disable:
      'Refuse all logins, and end tokens and sessions, in every process within a second. Also one of the configuration',
    samples: {
      name: 'dora',
      add: '--customer tally --access ACME=Read-only < password.txt',
      edit: '--access ACME=Administrator --claim email=dora@example.com',
      list: '--all --json',
    },
  },
  isPersonal: true,
  clearText: {
    password: {
      minLength: PASSWORD_LENGTH.least,
      maxLength: PASSWORD_LENGTH.most,
      description:
        'The password as it is. Only its hash is stored. Without one, none fits until a link sets one.',
    },
  },
  marking: {
    kind: 'user',
    subjects: ({ subject }) => [subject],
    // Users whom `directory.people` has found under this name and who have logged in: before a login, they hold nothing.
    elsewhere: async (username, { peopleElsewhere = false, store }) => {
      if (!peopleElsewhere) return undefined
      const subjects: string[] = []
      for await (const { key, value } of everyRecord(store, SUBJECT)) {
        const owner = value as StoredSubject
        if (owner.module === true && owner.username === username) subjects.push(key)
      }
      return subjects.length === 0 ? undefined : subjects
    },
  },
  // Drawn here, so that the trail has the subject before the user is made.
  defaults: () => ({ subject: randomUUID() }),
  object: () => ({ kind: 'user' }),
  read: (value) => readStoredUser(value).record,
  configured: ({ configured }) => configured.users,
  asRecord: (record) => record,
  whereElse: ({ peopleElsewhere = false }) =>
    peopleElsewhere
      ? ' People whom `directory.people` finds are changed in their own system; `postern user disable` knows those who have logged in, by the name that it gives them. `postern revoke --subject` ends what one holds.'
      : '',
  complete: async ({ password, ...written }, { hasher }, problems) => {
    // Without one no password fits, until a link sets one.
    const isGiven = password !== undefined && isPassword(password, problems)
    return { written: { ...written, password: isGiven ? await hasher.hash(password) : NO_PASSWORD } }
  },
  check: async (record, parts, problems) => {
    const clients = await clientsOf(record, parts)
    const named = { businesses: Object.keys(record.access), roles: Object.values(record.access) }
    const names = await referable(parts, named)
    checkUser(record, { ...parts.configured, ...names, catalogue: parts.catalogue, clients }, problems)
  },
  // A `user add` that died half way has taken the subject for this name: it can be repeated.
  admit: async ({ subject, username }, { configured, store }) => {
    const taken = claimedByConfiguration({ subject, username }, configured)
    if (taken !== undefined) throw new DirectoryRefusal(taken)
    const owner = await store.find(SUBJECT, subject)
    if (owner !== undefined && owner.value['username'] !== username) throw subjectTaken(subject)
    if ((await formerState(subject, store)) === 'erased') throw subjectErased(subject)
  },
  // The subject first: two users never get the same one. After a crash in between `user add` can be repeated.
  create: async ({ subject, username }, entry, { store }) => {
    const owner: StoredSubject = { username }
    if (!(await store.create(SUBJECT, subject, { value: owner }))) {
      const other = await store.find(SUBJECT, subject)
      if (other?.value['username'] !== username) throw subjectTaken(subject)
    }
    if (await store.create(USER, username, entry)) {
      if ((await formerState(subject, store)) !== 'erased') return true
      // An erasure that ran meanwhile has not seen these two records: they must not stay.
      await store.remove(USER, username)
      await store.remove(SUBJECT, subject)
      throw subjectErased(subject)
    }
    const other = await store.find(USER, username)
    if (other && readStoredUser(other.value).record.subject !== subject) await store.remove(SUBJECT, subject)
    return false
  },
  holdings: (record, name) => ({ users: only(name, record) }),
  roles: ({ access }) => Object.values(access),
  // The configuration has a user with the same subject: what belongs to that user stays.
  isHidden: ({ subject }, { configured }) => configured.usersBySubject.has(subject),
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
    if (entry) clients.set(id, toClient(readStoredClient(entry.value).record, configured.clientForm))
  }
  return clients
}

interface PlannedPassword extends PlannedChange {
  /** Its hash. */
  readonly password: string
}

/**
 * Also ends what the user holds: who logged in with the old password must log in again.
 *
 * @param admit throws if the user, as the store has them when the password is written, is to get none
 */
export async function planPassword(
  editor: RecordEditor<UserRecord>,
  username: string,
  given: unknown,
  admit?: (user: UserRecord) => void,
): Promise<PlannedPassword> {
  editor.refuseTaken(username)
  const problems = new Problems()
  if (!isPassword(given, problems)) throw new DirectoryRefusal('The password has a problem.', problems)
  const password = await editor.parts.hasher.hash(given)
  const planned = await editor.planUnchecked(username, (record) => {
    admit?.(record)
    return { record: { ...record, password } }
  })
  return { ...planned, password }
}

/** Whether the store has this user, and the configuration nobody of the name: then the password is Postern's. */
export async function isStoredUser(
  { kind, parts }: RecordEditor<UserRecord>,
  { subject, username }: Pick<UserRecord, 'subject' | 'username'>,
): Promise<boolean> {
  if (kind.configured(parts).has(username)) return false
  const entry = await parts.store.find(USER, username)
  return entry !== undefined && kind.read(entry.value).subject === subject
}

/**
 * The user of the store to whom a link may be given, by which they set a password.
 *
 * @throws DirectoryRefusal with the reason, where the password is not Postern's, or the user may not log in
 */
export async function linkableUser(editor: RecordEditor<UserRecord>, username: string): Promise<UserRecord> {
  editor.refuseTaken(username)
  const { parts, kind } = editor
  if ((await parts.store.find(USER, username)) === undefined) {
    const elsewhere = await kind.marking?.elsewhere(username, parts)
    if (elsewhere !== undefined)
      throw new DirectoryRefusal(
        `User "${username}" is found by \`directory.people\`: the password is changed in the system that has it.`,
      )
  }
  const { disabledByCommand = false, record } = await editor.show(username)
  const { disabled, locked } = record
  if (disabled || disabledByCommand)
    throw new DirectoryRefusal(`User "${username}" is disabled: \`postern user enable\` comes first.`)
  if (locked)
    throw new DirectoryRefusal(
      `User "${username}" is locked: \`postern user edit ${username} --no-locked\` comes first.`,
    )
  return record
}
