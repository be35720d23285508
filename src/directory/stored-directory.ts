/**
 * The directory's records in the store: kinds, keys and shapes. They carry no index, since whoever ends what a subject
 * or a client left in the store (`removeBy`) must not remove the subject or the client with it.
 *
 * `directory_client`, by client id: a StoredClient.
 * `directory_user`, by user name: a StoredUser.
 * `directory_subject`, by subject: the user's name. Written first, and never changed: a subject is given once.
 */
import type { TSchema } from '../config/schema.ts'
import { viewOf } from '../config/schema-view.ts'
import type { Change, Feed, Store, StoredValue } from '../contracts/store.ts'
import { clientRecordSchema, userRecordSchema, type ClientRecord, type UserRecord } from './config.ts'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'

export const CLIENT = 'directory_client'
export const USER = 'directory_user'
export const SUBJECT = 'directory_subject'

/** Each change of a record is told on this topic of the change feed: `{client}` or `{user}`, its key. */
export const DIRECTORY_TOPIC = 'directory'

/** A type alias, since an interface has no index signature and so is no StoredValue. */
export type StoredClient = {
  readonly record: ClientRecord
  /** When a secret ends, by its hash, in milliseconds since the epoch: of the old one after a rotation. */
  readonly ends: Readonly<Record<string, number>>
}

export type StoredUser = {
  readonly record: UserRecord
}

export type StoredSubject = {
  readonly username: string
}

/** What a record written by an older version does not say. */
function defaultsOf(schema: TSchema): object {
  const properties = Object.entries(viewOf(schema).properties ?? {})
  return Object.fromEntries(
    properties.flatMap(([key, { default: value }]) => (value === undefined ? [] : [[key, value]])),
  )
}

const CLIENT_DEFAULTS = defaultsOf(clientRecordSchema)
const USER_DEFAULTS = defaultsOf(userRecordSchema)

export function readStoredClient(value: StoredValue): StoredClient {
  const { record, ends } = value as StoredClient
  return { record: { ...CLIENT_DEFAULTS, ...record }, ends }
}

export function readStoredUser(value: StoredValue): StoredUser {
  return { record: { ...USER_DEFAULTS, ...(value as StoredUser).record } }
}

/** The hashes that are good now. */
export const liveSecrets = ({ record, ends }: StoredClient, now: number): readonly string[] =>
  record.secrets.filter((hash) => (ends[hash] ?? Number.POSITIVE_INFINITY) > now)

export interface StoredDirectoryParts {
  readonly store: Pick<Store, 'find'>
  readonly feed: Pick<Feed, 'subscribe'>
  readonly clock: Clock
}

/** Records; some 2 KiB each. */
const CACHED = 10_000
/** Milliseconds. The feed tells every change at once; this bounds what a feed that cannot be read may cost. */
const KEPT_FOR = 30_000

const addressOf = (kind: string, key: string): string => `${kind}\0${key}`

/**
 * The records that stand in the store, as this process reads them: one look by key each, however many there are, and
 * none for those asked for lately. What the change feed tells of is read anew, so that a change is in force here as
 * soon as the feed has come by (within a second). Who is absent is not remembered: guessed names must not push out
 * real ones.
 */
export class StoredDirectory {
  readonly #store: StoredDirectoryParts['store']
  readonly #cache: LRUCache<string, object>
  /** Grows with every change told: a record that was read before one may be the old one, and is not kept. */
  #generation = 0

  constructor({ store, feed, clock }: StoredDirectoryParts) {
    this.#store = store
    // `ttlResolution: 0` asks our clock each time; the default would keep the time by a timer of its own. A record
    // kept at time 0 would never grow old: that is lru-cache's word for no time.
    this.#cache = new LRUCache({
      max: CACHED,
      ttl: KEPT_FOR,
      ttlResolution: 0,
      perf: { now: () => clock.monotonic() + 1 },
    })
    feed.subscribe(DIRECTORY_TOPIC, { apply: (change) => this.#forget(change) })
  }

  findClient(id: string): Promise<StoredClient | undefined> {
    return this.#find(CLIENT, id, readStoredClient)
  }

  findUser(username: string): Promise<StoredUser | undefined> {
    return this.#find(USER, username, readStoredUser)
  }

  async findUserBySubject(subject: string): Promise<StoredUser | undefined> {
    const named = await this.#find(SUBJECT, subject, (value) => value as StoredSubject)
    const user = named && (await this.findUser(named.username))
    // The name was taken by another in between the two writes of `user add`.
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

  #forget({ value: { client, user } }: Change): void {
    this.#generation += 1
    if (typeof client === 'string') this.#cache.delete(addressOf(CLIENT, client))
    else if (typeof user === 'string') this.#cache.delete(addressOf(USER, user))
    else this.#cache.clear()
  }
}
