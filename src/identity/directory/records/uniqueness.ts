/**
 * A subject or client id is given only once, over both layers of the directory: a second owner would get what the
 * first one holds. The editors check this before they write. `check`, a start and a reload check it against the
 * store.
 *
 * There are two exceptions. A user of one name in both layers is one person. A client that is disabled in the store
 * holds nothing. The configuration may take over either.
 *
 * The store also knows the subjects of users of `directory.people` who have logged in: the same holds for them.
 */
import type { Problems } from '../../../base/config/problems.ts'
import type { Entry, Store } from '../../../base/contracts/records/store.ts'
import type { Directory } from './compile.ts'
import { mayHold } from './holdings.ts'
import {
  CLIENT,
  everyRecord,
  findAll,
  FORMER_SUBJECT,
  formerKey,
  isErased,
  isOfPerson,
  readStoredClient,
  readStoredUser,
  type StoredSubject,
  SUBJECT,
  USER,
} from './stored-directory.ts'

export type Claim = { readonly subject: string; readonly username: string } | { readonly client: string }

/** Why a claim contradicts the configuration; undefined if it does not. */
export function claimedByConfiguration(claim: Claim, configured: Directory): string | undefined {
  if ('client' in claim)
    return configured.clients.has(claim.client)
      ? `Client "${claim.client}" is in the configuration, which no command changes: edit it there.`
      : undefined
  const owner = configured.usersBySubject.get(claim.subject)?.username
  return owner === undefined || owner === claim.username
    ? undefined
    : `Subject "${claim.subject}" belongs to another user.`
}

export type StoredIdentities = Pick<Store, 'find' | 'list'>

/** Names of the configuration that are looked for one by one. With more, all records of the store are read. */
const FEW = 1000

/** The records of the store under these keys: as long as there are few, the size of the store does not matter. */
async function* recordsUnder(
  store: StoredIdentities,
  kind: string,
  keys: ReadonlyMap<string, unknown>,
): AsyncGenerator<Entry> {
  if (keys.size <= FEW) yield* await findAll(store, kind, keys.keys())
  else for await (const entry of everyRecord(store, kind)) if (keys.has(entry.key)) yield entry
}

async function reportSubjects(
  configured: Directory,
  store: StoredIdentities,
  problems: Problems,
): Promise<void> {
  for await (const { key: subject, value } of recordsUnder(store, SUBJECT, configured.usersBySubject)) {
    const { username, module } = value as StoredSubject
    if (claimedByConfiguration({ subject, username }, configured) === undefined) continue
    if (module !== true && !(await isOwned(subject, username, store))) continue
    const where = module === true ? 'who was found by `directory.people`' : 'who is in the store'
    problems.error(
      ['directory', 'users', configured.usersBySubject.get(subject)?.username ?? '', 'subject'],
      `belongs to "${username}", ${where}: the user here would get what that one holds`,
      'a subject is never given to another person; use a new one',
    )
  }
}

/** The subject of a person whose data was erased is never given again. */
async function reportErased(
  { usersBySubject }: Directory,
  store: StoredIdentities,
  problems: Problems,
): Promise<void> {
  const users = new Map([...usersBySubject].map(([subject, { username }]) => [formerKey(subject), username]))
  for await (const { key, value } of recordsUnder(store, FORMER_SUBJECT, users))
    if (isErased(value))
      problems.error(
        ['directory', 'users', users.get(key) ?? '', 'subject'],
        'was that of a person whose data was erased',
        'a subject is never given to another person; use a new one',
      )
}

/** A `user add` that died half way leaves a subject without an owner. */
async function isOwned(subject: string, username: string, store: StoredIdentities): Promise<boolean> {
  const user = await store.find(USER, username)
  return user !== undefined && readStoredUser(user.value).record.subject === subject
}

async function reportClients(
  configured: Directory,
  store: StoredIdentities,
  problems: Problems,
): Promise<void> {
  for await (const { value } of recordsUnder(store, CLIENT, configured.clients)) {
    const { record } = readStoredClient(value)
    if (!mayHold(record) || claimedByConfiguration({ client: record.id }, configured) === undefined) continue
    problems.error(
      ['directory', 'clients', record.id],
      'is in the store too: the client here would get what that one holds',
      `give it another id, or remove the other: \`postern client remove ${record.id}\``,
    )
  }
}

/** A machine of the configuration is no user of the store, nor was it one; and a user of the configuration no machine of the store. */
async function reportMachines(
  { clients, usersBySubject }: Directory,
  store: StoredIdentities,
  problems: Problems,
): Promise<void> {
  for (const { id, kind } of clients.values())
    if (kind === 'machine' && (await isOfPerson(id, store)))
      problems.error(
        ['directory', 'clients', id],
        'is, or was, the subject of a user: the tokens of this machine would be taken for theirs',
        'give it another id',
      )
  for await (const { key: id, value } of recordsUnder(store, CLIENT, usersBySubject))
    if (readStoredClient(value).record.kind === 'machine')
      problems.error(
        ['directory', 'users', usersBySubject.get(id)?.username ?? '', 'subject'],
        `is the id of the machine "${id}" of the store: its tokens would be taken for this user’s`,
        'a subject is nobody else’s: use another one',
      )
}

/** Reports ids that the store has given to another one. Rejects with Fault `identity_unavailable`. */
export async function reportTakenIds(
  configured: Directory,
  store: StoredIdentities,
  problems: Problems,
): Promise<void> {
  await reportSubjects(configured, store, problems)
  await reportErased(configured, store, problems)
  await reportClients(configured, store, problems)
  await reportMachines(configured, store, problems)
}
