/**
 * The directory's records in the store. Those of clients, users and subjects have no index values: `removeBy` of a subject
 * or client ends its sessions and tokens, and must not remove the subject or client itself.
 *
 * `directory_client`, by client id: a StoredClient.
 * `directory_user`, by user name: a StoredUser.
 * `directory_subject`, by subject: a StoredSubject. Written first and never changed, because a subject is given only once:
 * to a user of the store, to one whom code of the operator's has found, or to a machine, whose id it is (C6.1.5a).
 * `former_subject`, by the SHA-256 of a subject whose user was removed: a FormerSubject. No machine gets it, and nobody at all
 * where the user's data was erased.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { viewOf } from '../../../base/config/schema.ts'
import type { Access } from '../../../base/contracts/people/people.ts'
import {
  type Change,
  changeRecord,
  type Entry,
  type Feed,
  type NewRecord,
  type Store,
  type StoredValue,
} from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { unmetDemands, withoutSecretPost } from './client-rules.ts'
import { defaultsOf } from './read-records.ts'
import {
  BUSINESS,
  type ClientForm,
  type ClientRecord,
  clientRecordSchema,
  FUND,
  readRole,
  ROLE,
  type RoleRecord,
  type UserRecord,
  userRecordSchema,
} from './schema.ts'

export const CLIENT = 'directory_client'
export const USER = 'directory_user'
export const SUBJECT = 'directory_subject'
export const FORMER_SUBJECT = 'former_subject'

/** Topic of the change feed: `{client}`, `{user}`, `{business}`, `{fund}` or `{role}` with the record's key. */
export const DIRECTORY_TOPIC = 'directory'

/** How long an announcement is kept, in milliseconds: far longer than any process caches a record. */
const ANNOUNCED_FOR = 60 * 60 * 1000

/** Announces to every process that a record has changed. Rejects with Fault `identity_unavailable`. */
export const announceChange = (
  { feed, clock }: { readonly feed: Pick<Feed, 'append'>; readonly clock: Clock },
  changed: StoredValue,
): Promise<void> => feed.append(DIRECTORY_TOPIC, changed, clock.now() + ANNOUNCED_FOR)

/** A type alias, because an interface is not assignable to StoredValue. */
export type StoredClient = {
  readonly record: ClientRecord
  /** When a secret ends, by its hash, in milliseconds since the epoch. Only for the old secret after a rotation. */
  readonly ends: Readonly<Record<string, number>>
}

export type StoredUser = {
  readonly record: UserRecord
}

export type StoredSubject = {
  readonly username: string
  /** True for a user of `directory.people`, who has no record of their own here. */
  readonly module?: true
  /** True for a machine, which is no user: `username` is empty. */
  readonly machine?: true
}

/** A type alias, because an interface is not assignable to StoredValue. */
type FormerSubject = {
  /** Its data was erased: the subject is never given again. */
  readonly erased?: true
}

export const formerKey = (subject: string): string => hash('sha256', subject, 'base64url')

/** Frees the subject of a user who was removed, for another user. Rejects with Fault `identity_unavailable`. */
export async function freeSubject(subject: string, store: Pick<Store, 'create' | 'remove'>): Promise<void> {
  await store.create(FORMER_SUBJECT, formerKey(subject), { value: {} })
  await store.remove(SUBJECT, subject)
}

/** From now on nobody gets the subject: its data is being erased. Rejects with Fault `identity_unavailable`. */
export async function closeSubject(
  subject: string,
  store: Pick<Store, 'find' | 'create' | 'replace'>,
): Promise<void> {
  const closed: FormerSubject = { erased: true }
  await changeRecord(store, FORMER_SUBJECT, formerKey(subject), (former) =>
    isErased(former) ? undefined : closed,
  )
}

export const isErased = (former: StoredValue | undefined): boolean =>
  (former as FormerSubject | undefined)?.erased === true

/** The state of a subject whose user was removed; undefined if none was. Rejects with Fault `identity_unavailable`. */
export async function formerState(
  subject: string,
  store: Pick<Store, 'find'>,
): Promise<'free' | 'erased' | undefined> {
  const former = await store.find(FORMER_SUBJECT, formerKey(subject))
  if (former === undefined) return undefined
  return isErased(former.value) ? 'erased' : 'free'
}

/**
 * Stores a record of a person. The record is looked at after it is written, and an erasure closes the subject before it removes
 * records: so nothing stays of a call that was under way, on any node.
 *
 * @param write in place of `store.create`
 * @returns false if there is a record of this key. Rejects with Fault `invalid_grant` if the data of the person was erased, and
 *   with `identity_unavailable`
 */
export async function createOf(
  subject: string,
  record: NewRecord,
  store: Pick<Store, 'create' | 'find' | 'remove'>,
  write?: (record: NewRecord) => Promise<boolean>,
): Promise<boolean> {
  const { kind, key, ...entry } = record
  if (!(await (write?.(record) ?? store.create(kind, key, entry)))) return false
  if ((await formerState(subject, store)) !== 'erased') return true
  await store.remove(kind, key)
  throw new Fault('invalid_grant', { detail: 'the data of the user was erased since the call began' })
}

/** Whether a subject is a person's, or was one's. Rejects with Fault `identity_unavailable`. */
export async function isOfPerson(subject: string, store: Pick<Store, 'find'>): Promise<boolean> {
  const owner = (await store.find(SUBJECT, subject))?.value as StoredSubject | undefined
  if (owner !== undefined) return owner.machine !== true
  return (await formerState(subject, store)) !== undefined
}

const CLIENT_DEFAULTS = defaultsOf(clientRecordSchema)
const USER_DEFAULTS = defaultsOf(userRecordSchema)

/**
 * An earlier version stored `secretPost`, also `false` where nobody had chosen it. So it says nothing, and the default of
 * `authentication` counts.
 */
export function readStoredClient(value: StoredValue, defaults = CLIENT_DEFAULTS): StoredClient {
  const { record, ends } = value as StoredClient
  return { record: { ...defaults, ...withoutSecretPost(record) }, ends }
}

export function readStoredUser(value: StoredValue): StoredUser {
  return { record: { ...USER_DEFAULTS, ...(value as StoredUser).record } }
}

/** The hashes of secrets that are valid at `now` (milliseconds since the epoch). */
export const liveSecrets = ({ record, ends }: StoredClient, now: number): readonly string[] =>
  record.secrets.filter((hash) => (ends[hash] ?? Number.POSITIVE_INFINITY) > now)

/** Looks into the store at once: enough to keep its thread busy, and far from what may wait for it. */
const AT_ONCE = 64

/** The records with these keys, as far as there are any. Rejects with Fault `identity_unavailable`. */
export async function findAll(
  store: Pick<Store, 'find'>,
  kind: string,
  keys: Iterable<string>,
): Promise<readonly Entry[]> {
  const found: Entry[] = []
  const rest = [...new Set(keys)]
  while (rest.length > 0) {
    const entries = await Promise.all(rest.splice(0, AT_ONCE).map((key) => store.find(kind, key)))
    found.push(...entries.filter((entry) => entry !== undefined))
  }
  return found
}

/** Records in one page: some milliseconds of the store's time. */
const PAGE = 1000

/** All records of a kind, page by page. Rejects with Fault `identity_unavailable`. */
export async function* everyPage(store: Pick<Store, 'list'>, kind: string): AsyncGenerator<readonly Entry[]> {
  let page: readonly Entry[] = []
  do {
    page = await store.list(kind, { after: page.at(-1)?.key, limit: PAGE })
    yield page
  } while (page.length === PAGE)
}

/** As `everyPage`, one by one: for few records, or those after which nobody waits. */
export async function* everyRecord(store: Pick<Store, 'list'>, kind: string): AsyncGenerator<Entry> {
  for await (const page of everyPage(store, kind)) yield* page
}

/** Traces of missing extensions in the records of clients. */
export interface UnknownMembers {
  /** Members that the schema does not have. They have no effect. */
  readonly members: readonly string[]
  /** Clients that may hold nothing because of what their record demands. */
  readonly refused: readonly string[]
}

export async function unknownMembers(store: Pick<Store, 'list'>, form: ClientForm): Promise<UnknownMembers> {
  const found = new Set<string>()
  const refused: string[] = []
  for await (const { key, value } of everyRecord(store, CLIENT)) {
    const { record } = readStoredClient(value)
    for (const member of Object.keys(record)) found.add(member)
    if (unmetDemands(record, form).length > 0) refused.push(key)
  }
  const known = new Set(Object.keys(viewOf(form.schema).properties ?? {}))
  return { members: [...found.difference(known)], refused }
}

/**
 * A bounded cache whose entries expire by our clock. `ttlResolution: 0` reads it each time; by default lru-cache uses a timer
 * of its own. `+ 1`, because lru-cache takes time 0 for "no time", and such an entry would never expire.
 */
export const timedCache = <T extends object | true>(
  max: number,
  ttl: number,
  clock: Clock,
): LRUCache<string, T> =>
  new LRUCache({ max, ttl, ttlResolution: 0, perf: { now: () => clock.monotonic() + 1 } })

/** Records, about 2 KiB each. */
const CACHED = 10_000
/** How long a record is cached, in milliseconds. The feed announces changes; this limits the harm while it cannot be read. */
const KEPT_FOR = 30_000

/** The kind of record that each member of an announcement names. Businesses and funds are cached in stored-places.ts. */
const KINDS: Readonly<Record<string, string>> = {
  client: CLIENT,
  user: USER,
  role: ROLE,
  business: BUSINESS,
  fund: FUND,
}

const addressOf = (kind: string, key: string): string => `${kind}\0${key}`

/**
 * Reads the directory's records in the store by key, with a cache. A record that the change feed announces is read
 * again, so a change is in force here within a second. Names that do not exist are not cached: guessed names must not
 * push out real ones. Methods reject with Fault `identity_unavailable` if the store cannot be reached.
 */
export class StoredDirectory {
  readonly #store: Pick<Store, 'find'>
  readonly #cache: LRUCache<string, object>
  /** Counts announced changes. A record read while one was announced may be the old version, and is not cached. */
  #generation = 0

  constructor(of: {
    readonly store: Pick<Store, 'find'>
    readonly feed: Pick<Feed, 'subscribe'>
    readonly clock: Clock
  }) {
    this.#store = of.store
    this.#cache = timedCache(CACHED, KEPT_FOR, of.clock)
    of.feed.subscribe(DIRECTORY_TOPIC, {
      apply: (change) => this.#forget(change),
      reset: () => this.#forgetAll(),
    })
  }

  findClient(id: string): Promise<StoredClient | undefined> {
    return this.#find(CLIENT, id, readStoredClient)
  }

  findUser(username: string): Promise<StoredUser | undefined> {
    return this.#find(USER, username, readStoredUser)
  }

  findSubject(subject: string): Promise<StoredSubject | undefined> {
    return this.#find(SUBJECT, subject, (value) => value as StoredSubject)
  }

  findRole(name: string): Promise<RoleRecord | undefined> {
    return this.#find(ROLE, name, readRole)
  }

  async findUserBySubject(subject: string): Promise<StoredUser | undefined> {
    const named = await this.findSubject(subject)
    const user = named && (await this.findUser(named.username))
    // `user add` writes twice; in between, somebody else may have taken the name.
    return user?.record.subject === subject ? user : undefined
  }

  async #find<T extends object>(
    kind: string,
    key: string,
    read: (value: StoredValue) => T,
  ): Promise<T | undefined> {
    const address = addressOf(kind, key)
    const known = this.#cache.get(address) as T | undefined
    if (known !== undefined) return known
    const generation = this.#generation
    const entry = await this.#store.find(kind, key)
    if (entry === undefined) return undefined
    const found = read(entry.value)
    if (generation === this.#generation) this.#cache.set(address, found)
    return found
  }

  #forgetAll(): void {
    this.#generation += 1
    this.#cache.clear()
  }

  #forget({ value }: Change): void {
    this.#generation += 1
    const kind = Object.keys(KINDS).find((name) => typeof value[name] === 'string')
    const key = kind === undefined ? undefined : value[kind]
    if (kind === undefined || typeof key !== 'string') this.#cache.clear()
    else this.#cache.delete(addressOf(KINDS[kind] ?? '', key))
  }
}

/** Where roles of the store are found by name. Rejects with Fault `identity_unavailable`. */
interface StoredRoles {
  findRole(name: string): Promise<RoleRecord | undefined>
}

/** The roles that the store has now, without a cache. */
export const storedRoles = (store: Pick<Store, 'find'>): StoredRoles => ({
  async findRole(name) {
    const entry = await store.find(ROLE, name)
    return entry && readRole(entry.value)
  },
})

/** The roles of a configuration, then those of the store: where both have one of a name, the configuration's counts. */
export class Roles {
  readonly #configured: ReadonlyMap<string, Access>
  readonly #stored: StoredRoles

  constructor(configured: ReadonlyMap<string, Access>, stored: StoredRoles) {
    this.#configured = configured
    this.#stored = stored
  }

  /** At least those of these that exist and are not disabled. Rejects with Fault `identity_unavailable`. */
  async of(names: Iterable<string>): Promise<ReadonlyMap<string, Access>> {
    const unknown = [...new Set(names)].filter((name) => !this.#configured.has(name))
    if (unknown.length === 0) return this.#configured
    const roles = new Map(this.#configured)
    for (const name of unknown) {
      const found = await this.#stored.findRole(name)
      if (found?.disabled === false) roles.set(name, { role: name, scopes: found.scopes })
    }
    return roles
  }
}
