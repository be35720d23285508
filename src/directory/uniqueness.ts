/**
 * Subjects and client ids are given once, over both layers of the directory: whoever got another's would get what the
 * other holds. Asked by the editors, before they write; and by `check`, a start and a reload, of what stands in the store.
 *
 * A user who stands in both under one name is one person, and a client that is disabled in the store holds nothing: the
 * configuration may take either over.
 */
import type { Report } from '../config/report.ts'
import type { Entry, Page, Store } from '../contracts/store.ts'
import type { Directory } from './compile.ts'
import { mayHold } from './holdings.ts'
import {
  CLIENT,
  readStoredClient,
  readStoredUser,
  SUBJECT,
  USER,
  type StoredSubject,
} from './stored-directory.ts'

/** Whoever wants an id. */
export type Claim = { readonly subject: string; readonly username: string } | { readonly client: string }

/** Why the configuration stands against a claim; undefined if it does not. */
export function claimedByConfiguration(claim: Claim, configured: Directory): string | undefined {
  if ('client' in claim)
    return configured.clients.has(claim.client)
      ? `Client "${claim.client}" stands in the configuration, which no command changes: edit it there.`
      : undefined
  const owner = configured.usersBySubject.get(claim.subject)?.username
  return owner === undefined || owner === claim.username
    ? undefined
    : `Subject "${claim.subject}" is another user’s.`
}

/** What is read of the store. */
export type StoredIdentities = Pick<Store, 'find' | 'list'>

/** Records at a time: some milliseconds each. */
const PAGE = 1000

/** Every record of a kind, however many. */
export async function* everyRecord(store: StoredIdentities, kind: string): AsyncGenerator<Entry> {
  let page: readonly Entry[] = []
  do {
    const part: Page = { after: page.at(-1)?.key, limit: PAGE }
    page = await store.list(kind, part)
    yield* page
  } while (page.length === PAGE)
}

async function reportSubjects(configured: Directory, store: StoredIdentities, report: Report): Promise<void> {
  for await (const { key: subject, value } of everyRecord(store, SUBJECT)) {
    const { username } = value as StoredSubject
    if (claimedByConfiguration({ subject, username }, configured) === undefined) continue
    // A `user add` that died half way leaves a subject of which nobody became the owner.
    const user = await store.find(USER, username)
    if (user === undefined || readStoredUser(user.value).record.subject !== subject) continue
    report.error(
      ['directory', 'users', configured.usersBySubject.get(subject)?.username ?? '', 'subject'],
      `is that of "${username}", who stands in the store: whoever got it would get what the other holds`,
      'a subject is never given to another person; draw a new one',
    )
  }
}

async function reportClients(configured: Directory, store: StoredIdentities, report: Report): Promise<void> {
  for await (const { value } of everyRecord(store, CLIENT)) {
    const { record } = readStoredClient(value)
    if (!mayHold(record) || claimedByConfiguration({ client: record.id }, configured) === undefined) continue
    report.error(
      ['directory', 'clients', record.id],
      'stands in the store too: whoever is meant here would get what the other holds',
      `give it another id, or end the other: \`postern client disable ${record.id}\``,
    )
  }
}

/** Reports every id of a configuration that the store has given to somebody else. Rejects if the store is out of reach. */
export async function reportTakenIds(
  configured: Directory,
  store: StoredIdentities,
  report: Report,
): Promise<void> {
  await reportSubjects(configured, store, report)
  await reportClients(configured, store, report)
}
