/** The places that have data of a person, by the subject: for its export and its erasure (C11.5.8). */
import { causeOf, type Operator } from '../../base/contracts/records/audited-change.ts'
import type { FoundPerson } from '../../base/contracts/people/people.ts'
import type { Entry } from '../../base/contracts/records/store.ts'
import type { RevocableKind, RevocableRecord } from '../../base/contracts/records/tokens.ts'
import { hasCode } from '../../base/kernel/thrown.ts'
import { instantText } from '../../base/kernel/units.ts'
import type { Editors } from '../../identity/directory/editors/editors.ts'
import { shownForm } from '../../identity/directory/editors/record-forms.ts'
import { everyMark, type Mark, markKindOf, type MarkValue } from '../../identity/directory/records/marks.ts'
import {
  announceChange,
  formerState,
  freeSubject,
  readStoredUser,
  type StoredSubject,
  SUBJECT,
  USER,
} from '../../identity/directory/records/stored-directory.ts'
import { LOGIN_NETWORKS, networksIn } from '../../identity/guessing/familiar-networks.ts'
import { CODE } from '../../identity/stored/codes.ts'
import { CONSENT } from '../../identity/stored/consents.ts'
import { FAMILY, OLDER_TOKEN } from '../../identity/stored/families.ts'
import { PASSWORD_LINK } from '../../identity/stored/password-links.ts'
import { StoredRevocableRecords } from '../../identity/stored/revocable-records.ts'
import { SESSION, type SessionRecord } from '../../identity/stored/sessions.ts'
import { orNoProcess } from '../explain/explain-call.ts'
import { AdminError, NO_STORE_NOW } from '../operation/errors.ts'
import type { ServiceContext } from '../operation/context.ts'
import type { Right } from '../operation/operators.ts'
import { unknownIds } from '../revoke/unknown-ids.ts'

/** A person, and the service that has their data. */
export interface Person {
  readonly subject: string
  readonly service: ServiceContext
  readonly editors: Editors
  readonly operator: Operator
}

type Held = Pick<Person, 'service' | 'subject'>

/** How many records were removed, by what they are. */
export type Removed = Readonly<Record<string, number>>

interface PersonalPlace {
  /** The member of the export. */
  readonly name: string
  /** Absent: it has nothing to read. Undefined: nothing of this person. An AsyncIterable: the items of a list, as JSON. */
  readonly read?: (person: Person) => Promise<unknown>
  /** The right that reading needs beside `administer`. */
  readonly needs?: Right
  /** Why it cannot be read in this service. */
  readonly unreadable?: (service: ServiceContext) => string | undefined
  /** Removes what it has. It is called again until nothing is left. Absent: another place removes it. */
  readonly erase?: (person: Person) => Promise<Removed>
}

/** The person's name in the store, if they are a user there, or code of the operator's has found them. */
async function ownerOf({ service, subject }: Held): Promise<StoredSubject | undefined> {
  return (await service.store.find(SUBJECT, subject))?.value as StoredSubject | undefined
}

/** The name of the user of the store with this subject. */
async function storedName(person: Person): Promise<string | undefined> {
  const { username } = (await ownerOf(person)) ?? {}
  const entry = username === undefined ? undefined : await person.service.store.find(USER, username)
  const isTheirs = entry !== undefined && readStoredUser(entry.value).record.subject === person.subject
  return isTheirs ? username : undefined
}

const configuredName = ({ editors, subject }: Person): string | undefined =>
  editors.user.parts.configured.usersBySubject.get(subject)?.username

/**
 * Whom code of the operator's finds by this subject now, as a serving process asks it. An error that crosses from that process is no
 * Fault any more, and has its code.
 *
 * @throws AdminError 503
 */
async function findElsewhere({ service, subject }: Held): Promise<FoundPerson | undefined> {
  try {
    return await orNoProcess(service.pool.findPerson(subject))
  } catch (thrown) {
    if (hasCode(thrown, 'identity_unavailable')) throw new AdminError(503, NO_STORE_NOW)
    if (!hasCode(thrown, 'people_unavailable')) throw thrown
    throw new AdminError(503, '`directory.people` cannot be asked whether it has the person: try again')
  }
}

async function readUser(person: Person): Promise<unknown> {
  const { editors, subject } = person
  const username = configuredName(person) ?? (await storedName(person))
  if (username !== undefined) return shownForm(editors.user.kind, await editors.user.show(username))
  const found = await findElsewhere(person)
  return found && { username: found.username, subject, claims: found.claims, source: 'module' }
}

/** The rule first, as every end of access; then the record. Afterwards nobody can sign in, and nobody gets the subject. */
async function removeUser(person: Person): Promise<Removed> {
  const { editors, operator, service, subject } = person
  const { sessions, families, codes, consents } = await service.tokenRevoker.end(
    { subject },
    { consents: true, cause: causeOf(operator) },
  )
  const username = await storedName(person)
  if (username !== undefined) await (await editors.user.planRemoval(username)).commit()
  else await freeSubject(subject, service.store)
  return { user: username === undefined ? 0 : 1, sessions, families, codes, consents }
}

const listed =
  (kind: RevocableKind, shown: (record: RevocableRecord) => object) =>
  async ({ service, subject }: Person): Promise<unknown> => {
    const all: object[] = []
    const records = new StoredRevocableRecords(service)
    let after: string | undefined
    do {
      const { found, next } = await records.list(kind, { subject }, { after, limit: PAGE })
      all.push(...found.map(shown))
      after = next
    } while (after !== undefined)
    return all
  }

/** Records that are read at once. */
const PAGE = 100

/** Without ids: that of a session or a consent is a hash. */
const granted = ({
  client,
  business,
  fund,
  scopes,
  begunAt,
  lastUsedAt,
  endsAt,
}: RevocableRecord): object => ({
  client,
  business,
  fund,
  scopes,
  begunAt: instantText(begunAt),
  lastUsedAt: instantText(lastUsedAt),
  endsAt: instantText(endsAt),
})

/** With the address, which lists of sessions do not show. */
function sessionOf({ value, expiresAt }: Entry): object {
  const { address, authTime, browser, lastUsedAt } = value as SessionRecord
  return {
    browser,
    address,
    begunAt: instantText(authTime * 1000),
    lastUsedAt: instantText(lastUsedAt),
    endsAt: instantText(expiresAt),
  }
}

const removing =
  (name: string, ...kinds: readonly string[]) =>
  async ({ service, subject }: Person): Promise<Removed> => {
    let removed = 0
    for (const kind of kinds) removed += await service.store.removeBy(kind, { subject })
    return { [name]: removed }
  }

/** The addresses themselves are not stored: only when somebody has signed in from each. */
async function readNetworks({ service, subject }: Person): Promise<unknown> {
  const networks = networksIn((await service.store.find(LOGIN_NETWORKS, subject))?.value)
  return networks.map(({ at }) => instantText(at))
}

/** A mark disables somebody whom the configuration or code of the operator's had, and others who had the name before or after. */
async function* marksOf({ service: { store }, subject }: Held): AsyncGenerator<Mark> {
  for await (const mark of everyMark(store))
    if (mark.what === 'user' && mark.subjects.includes(subject)) yield mark
}

/** Others whom it disables stay so: of another subject, or whom the configuration has by that name. Every process learns of it. */
async function removeMarks(person: Person): Promise<Removed> {
  const {
    editors,
    service: { store },
    subject,
  } = person
  let marks = 0
  for await (const { name, what } of marksOf(person)) {
    const kind = markKindOf(what)
    const entry = await store.find(kind, name)
    if (entry === undefined) continue
    const value = entry.value as MarkValue
    const others = value.subjects.filter((each) => each !== subject)
    const isDone =
      others.length > 0 || editors.user.parts.configured.users.has(name)
        ? await store.replace(kind, name, entry.version, { ...value, subjects: others })
        : await store.remove(kind, name, entry.version)
    if (isDone) await announceChange(editors.user.parts, { [what]: name, mark: true })
    // Where somebody else was faster, the next round finds it again.
    marks += 1
  }
  return { marks }
}

/** Of a person of the configuration nothing else may be left, once they are taken out of it. */
async function hasTraces(person: Held): Promise<boolean> {
  const { service, subject } = person
  if ((await service.store.find(LOGIN_NETWORKS, subject)) !== undefined) return true
  return (await marksOf(person).next()).done !== true
}

const NO_TRAIL = 'no audit trail is kept'

/** The rows of the trail of this node about the person, or of what they did, as JSON. */
async function* recordsOf({ service: { trail }, subject }: Person): AsyncGenerator<string> {
  const found = trail?.query({ query: { user: subject, singly: true } }) ?? []
  for await (const step of found) if (step.kind === 'rows') yield* step.lines
}

/** Access ends first: the user's place removes it. */
export const PLACES: readonly PersonalPlace[] = [
  { name: 'user', read: readUser, erase: removeUser },
  {
    name: 'sessions',
    read: async ({ service, subject }) =>
      (await service.store.listBy(SESSION, 'subject', subject)).map(sessionOf),
    erase: removing('sessions', SESSION),
  },
  {
    name: 'families',
    read: listed('families', granted),
    erase: removing('families', CODE, FAMILY, OLDER_TOKEN),
  },
  { name: 'consents', read: listed('consents', granted), erase: removing('consents', CONSENT) },
  {
    name: 'networks',
    read: readNetworks,
    erase: async ({ service, subject }) => ({
      networks: Number(await service.store.remove(LOGIN_NETWORKS, subject)),
    }),
  },
  { name: 'links', erase: removing('links', PASSWORD_LINK) },
  { name: 'marks', erase: removeMarks },
  {
    name: 'records',
    read: (person) => Promise.resolve(recordsOf(person)),
    needs: 'audit',
    unreadable: ({ trail }) => (trail === undefined ? NO_TRAIL : undefined),
  },
]

/** @throws AdminError 404 if nobody of the subject is, or was, known; 409 for a machine, or a person who is not the store's */
export async function requireErasable(person: Person): Promise<void> {
  await requirePerson(person)
  const name = configuredName(person)
  if (name !== undefined)
    throw new AdminError(409, `user "${name}" is in the configuration: take them out of it first, and reload`)
  if ((await storedName(person)) !== undefined) return
  const found = await findElsewhere(person)
  if (found !== undefined)
    throw new AdminError(
      409,
      `"${found.username}" is found by \`directory.people\`: remove them in the system that has them first`,
    )
}

/** @throws AdminError 404, or 409 for a machine */
export async function requirePerson({ service, subject }: Person): Promise<void> {
  const owner = await ownerOf({ service, subject })
  if (owner?.machine === true)
    throw new AdminError(409, `"${subject}" is a machine, and no person: \`postern client\` has it`)
  const isKnown =
    (await unknownIds({ subject }, service)).length === 0 ||
    (await formerState(subject, service.store)) !== undefined ||
    (await hasTraces({ service, subject }))
  if (!isKnown)
    throw new AdminError(
      404,
      'nobody of this subject is, or was, known here: `postern audit redact` erases what a trail still has',
    )
}
