import {
  type Access,
  type Client,
  CLIENT_AUTH_METHODS,
  type ClientAuthMethod,
  type People,
  type User,
} from '../../../base/contracts/people/people.ts'
import type { Store } from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { toClient } from './client-rules.ts'
import { compileUser } from './compile-records.ts'
import type { UserRecord } from './schema.ts'
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

  constructor(stored: StoredDirectory, roles: Roles, clock: Clock) {
    this.#stored = stored
    this.#roles = roles
    this.#clock = clock
  }

  async findClient(id: string): Promise<Client | undefined> {
    const found = await this.#stored.findClient(id)
    return found && toClient({ ...found.record, secrets: liveSecrets(found, this.#clock.now()) })
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

type KnownClient = Pick<Client, 'authentication' | 'disabled' | 'dpop' | 'grants' | 'requirePar'>

/** A feature of identity that a client uses, and that discovery announces only if some client does. */
export type ClientUse =
  ClientAuthMethod | 'logout_notices' | 'client_credentials' | 'dpop' | 'pushed_requests' | 'plain_requests'

/** Once these are found, nothing more can be learned: `pushed_requests` only matters if there are no plain ones. */
const ALL_USES: ReadonlySet<ClientUse> = new Set([
  ...CLIENT_AUTH_METHODS,
  'logout_notices',
  'client_credentials',
  'dpop',
  'plain_requests',
])

function inUse(client: KnownClient, { isNotified }: ClientMethodsParts): readonly ClientUse[] {
  const { authentication, disabled, dpop, grants, requirePar } = client
  if (disabled) return []
  return [
    ...authentication,
    ...(dpop === 'off' ? [] : ['dpop' as const]),
    ...(isNotified(client) ? ['logout_notices' as const] : []),
    ...grants.filter((grant) => grant === 'client_credentials'),
    ...(grants.includes('authorization_code')
      ? ([requirePar ? 'pushed_requests' : 'plain_requests'] as const)
      : []),
  ]
}

interface ClientMethodsParts {
  readonly configured: Iterable<KnownClient>
  /** Whether a client is told when a login ends. */
  readonly isNotified: (client: object) => boolean
  readonly store: Pick<Store, 'list'>
  readonly clock: Clock
}

/** How long a reading counts, in milliseconds. Clients of the store come and go while the service runs. */
const KEPT_FOR = 60_000

/**
 * The features that clients of the configuration and of the store use, as discovery announces them (C6.3.2): how they
 * authenticate, the grant of machines, proofs, notices of logouts. The store is read when somebody asks, once a minute at
 * most, and only until everything was found. If it cannot be read to its end, earlier findings count too.
 */
export class DirectoryMethods {
  readonly #parts: ClientMethodsParts
  readonly #configured: ReadonlySet<ClientUse>
  #known: ReadonlySet<ClientUse>
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(parts: ClientMethodsParts) {
    this.#parts = parts
    this.#configured = new Set([...parts.configured].flatMap((client) => inUse(client, parts)))
    this.#known = this.#configured
  }

  /** The features that some client uses. Never rejects. */
  async current(): Promise<ReadonlySet<ClientUse>> {
    const isFresh = this.#parts.clock.monotonic() - this.#readAt < KEPT_FOR
    if (!isFresh && !ALL_USES.isSubsetOf(this.#configured))
      await (this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined
      }))
    return this.#known
  }

  async #read(): Promise<void> {
    const found = new Set(this.#configured)
    try {
      for await (const { value } of everyRecord(this.#parts.store, CLIENT)) {
        for (const method of inUse(toClient(readStoredClient(value).record), this.#parts)) found.add(method)
        if (ALL_USES.isSubsetOf(found)) break
      }
      this.#known = found
    } catch {
      // Discovery is answered also while the store cannot be reached, or has more clients than there is time for.
      // Nobody knows then that all of them must push.
      this.#known = found.union(this.#known).add('plain_requests')
    }
    this.#readAt = this.#parts.clock.monotonic()
  }
}
