import {
  type Access,
  type Client,
  type People,
  SECRET_AUTH_METHODS,
  type User,
} from '../../../base/contracts/people/people.ts'
import type { Store } from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { toClient } from './client-rules.ts'
import { compileUser } from './compile-records.ts'
import type { ClientForm, UserRecord } from './schema.ts'
import {
  CLIENT,
  everyRecord,
  liveSecrets,
  readStoredClient,
  type Roles,
  type StoredDirectory,
  type StoredUser,
} from './stored-directory.ts'

/** Users are kept as records and compiled when needed: a map per user would double a large directory's memory. */
export class SnapshotPeople implements People {
  readonly #clients: ReadonlyMap<string, Client>
  readonly #byName: ReadonlyMap<string, UserRecord>
  readonly #bySubject: ReadonlyMap<string, UserRecord>
  readonly #roles: ReadonlyMap<string, Access>

  constructor(
    clients: ReadonlyMap<string, Client>,
    users: {
      readonly byName: ReadonlyMap<string, UserRecord>
      readonly bySubject: ReadonlyMap<string, UserRecord>
    },
    roles: ReadonlyMap<string, Access>,
  ) {
    this.#clients = clients
    this.#byName = users.byName
    this.#bySubject = users.bySubject
    this.#roles = roles
  }

  findClient(id: string): Promise<Client | undefined> {
    return Promise.resolve(this.#clients.get(id))
  }

  findUserByName(username: string): Promise<User | undefined> {
    return Promise.resolve(this.#user(this.#byName.get(username)))
  }

  findUserBySubject(subject: string): Promise<User | undefined> {
    return Promise.resolve(this.#user(this.#bySubject.get(subject)))
  }

  #user(record: UserRecord | undefined): User | undefined {
    return record === undefined ? undefined : compileUser(record, this.#roles)
  }
}

/**
 * Clients and users of the store, with the roles of one configuration and of the store. If a role, business or scope that a
 * record names is gone, the record gets nothing for it: a reload can't refuse records of the store. Methods reject with
 * Fault `identity_unavailable` if the store cannot be reached.
 */
export class StoredPeople implements People {
  readonly #stored: StoredDirectory
  readonly #roles: Roles
  readonly #clock: Clock
  readonly #form: ClientForm

  constructor(stored: StoredDirectory, roles: Roles, clock: Clock, form: ClientForm) {
    this.#stored = stored
    this.#roles = roles
    this.#clock = clock
    this.#form = form
  }

  async findClient(id: string): Promise<Client | undefined> {
    const found = await this.#stored.findClient(id)
    return found && toClient({ ...found.record, secrets: liveSecrets(found, this.#clock.now()) }, this.#form)
  }

  async findUserByName(username: string): Promise<User | undefined> {
    return this.#user(await this.#stored.findUser(username))
  }

  async findUserBySubject(subject: string): Promise<User | undefined> {
    return this.#user(await this.#stored.findUserBySubject(subject))
  }

  async #user(found: StoredUser | undefined): Promise<User | undefined> {
    return found && compileUser(found.record, await this.#roles.of(Object.values(found.record.access)))
  }
}

/**
 * The people of two layers as one, such as those of the configuration and of the store. If both have one of the same
 * name, the first layer's counts, because no command may change what the configuration says. The second is not asked
 * then, so people of the configuration can log in while the store cannot be reached.
 */
export class LayeredPeople implements People {
  readonly #first: People
  readonly #second: People

  constructor(first: People, second: People) {
    this.#first = first
    this.#second = second
  }

  async findClient(id: string): Promise<Client | undefined> {
    return (await this.#first.findClient(id)) ?? this.#second.findClient(id)
  }

  async findUserByName(username: string): Promise<User | undefined> {
    return (await this.#first.findUserByName(username)) ?? this.#second.findUserByName(username)
  }

  async findUserBySubject(subject: string): Promise<User | undefined> {
    const first = await this.#first.findUserBySubject(subject)
    if (first !== undefined) return first
    const second = await this.#second.findUserBySubject(subject)
    // The first layer has given the name to somebody else meanwhile: then the user of the second does not count.
    const taken = second && (await this.#first.findUserByName(second.username))
    return taken === undefined ? second : undefined
  }
}

type KnownClient = Pick<Client, 'authentication' | 'disabled' | 'grants'>

/** Features of identity that discovery announces only if some client uses them. */
export interface AddedUses {
  /** Once these are found, nothing more can be learned. */
  readonly all: readonly string[]
  readonly of: (client: KnownClient) => readonly string[]
}

/** Stands for the clients of the store while it cannot be read. */
export const UNREAD_CLIENTS = 'unread_clients'

const usesOf = (client: KnownClient, { added, isNotified }: ClientMethodsParts): readonly string[] =>
  client.disabled
    ? []
    : [
        ...client.authentication,
        ...(isNotified(client) ? ['logout_notices'] : []),
        ...client.grants.filter((grant) => grant === 'client_credentials'),
        ...added.of(client),
      ]

interface ClientMethodsParts {
  readonly configured: Iterable<KnownClient>
  /** Whether a client is told when a login ends. */
  readonly isNotified: (client: object) => boolean
  /** Features that an extension adds. */
  readonly added: AddedUses
  readonly form: ClientForm
  readonly store: Pick<Store, 'list'>
  readonly clock: Clock
}

/** How long a reading counts, in milliseconds. Clients of the store come and go while the service runs. */
const KEPT_FOR = 60_000

/**
 * The features that clients of the configuration and of the store use, as discovery announces them (C6.3.2): how they
 * authenticate, the grant of machines, notices of logouts, and what extensions add. The store is read when somebody asks, once a minute at
 * most, and only until everything was found. If it cannot be read to its end, earlier findings count too.
 */
export class DirectoryMethods {
  readonly #parts: ClientMethodsParts
  readonly #all: ReadonlySet<string>
  readonly #configured: ReadonlySet<string>
  #known: ReadonlySet<string>
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(parts: ClientMethodsParts) {
    this.#parts = parts
    const ofSecrets = [...SECRET_AUTH_METHODS, 'none', 'logout_notices', 'client_credentials']
    this.#all = new Set([...ofSecrets, ...parts.added.all])
    this.#configured = new Set([...parts.configured].flatMap((client) => usesOf(client, parts)))
    this.#known = this.#configured
  }

  /** The features that some client uses. Never rejects. */
  async current(): Promise<ReadonlySet<string>> {
    const isFresh = this.#parts.clock.monotonic() - this.#readAt < KEPT_FOR
    if (!isFresh && !this.#all.isSubsetOf(this.#configured))
      await (this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined
      }))
    return this.#known
  }

  async #read(): Promise<void> {
    const found = new Set(this.#configured)
    try {
      for await (const { value } of everyRecord(this.#parts.store, CLIENT)) {
        const client = toClient(readStoredClient(value).record, this.#parts.form)
        for (const use of usesOf(client, this.#parts)) found.add(use)
        if (this.#all.isSubsetOf(found)) break
      }
      this.#known = found
    } catch {
      // Discovery is answered also while the store cannot be reached, or has more clients than there is time for.
      this.#known = found.union(this.#known).add(UNREAD_CLIENTS)
    }
    this.#readAt = this.#parts.clock.monotonic()
  }
}
