import type { Access, Client, People, User } from '../contracts/people.ts'
import { compileUser, toClient } from './compile-records.ts'
import type { UserRecord } from './config.ts'
import type { Clock } from '../kernel/clock.ts'
import { liveSecrets, type StoredDirectory, type StoredUser } from './stored-directory.ts'

/**
 * A snapshot. Users are kept as the records they were read from and compiled when they are asked for, at a login or
 * for userinfo: a map per user would double the memory of a large directory.
 */
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
 * Clients and users of the store, in the roles of one configuration. A role, business or scope that the configuration
 * no longer knows gives nothing, as nobody can refuse a record at a reload for it.
 */
export class StoredPeople implements People {
  readonly #stored: StoredDirectory
  readonly #roles: ReadonlyMap<string, Access>
  readonly #clock: Clock

  constructor(stored: StoredDirectory, roles: ReadonlyMap<string, Access>, clock: Clock) {
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

  #user(found: StoredUser | undefined): User | undefined {
    return found && compileUser(found.record, this.#roles)
  }
}

/**
 * Who stands in the configuration, and who was added to the store. Of two with one name the configuration's is the
 * one: what it says cannot be changed by a command, and the store is not asked (so a store that is out of reach keeps
 * nobody out who is configured).
 */
export class LayeredPeople implements People {
  readonly #configured: People
  readonly #stored: People

  constructor(configured: People, stored: People) {
    this.#configured = configured
    this.#stored = stored
  }

  async findClient(id: string): Promise<Client | undefined> {
    return (await this.#configured.findClient(id)) ?? this.#stored.findClient(id)
  }

  async findUserByName(username: string): Promise<User | undefined> {
    return (await this.#configured.findUserByName(username)) ?? this.#stored.findUserByName(username)
  }

  async findUserBySubject(subject: string): Promise<User | undefined> {
    const configured = await this.#configured.findUserBySubject(subject)
    if (configured !== undefined) return configured
    const stored = await this.#stored.findUserBySubject(subject)
    // One whose name the configuration has given to another meanwhile is there under neither key.
    const taken = stored && (await this.#configured.findUserByName(stored.username))
    return taken === undefined ? stored : undefined
  }
}
