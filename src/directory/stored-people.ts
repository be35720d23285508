import type { Access, Client, People, User } from '../contracts/people.ts'
import type { Clock } from '../kernel/clock.ts'
import { toClient } from './compile-client.ts'
import { compileUser } from './compile-user.ts'
import type { StoredDirectory } from './stored-directory.ts'
import { liveSecrets, type StoredUser } from './stored-records.ts'

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
