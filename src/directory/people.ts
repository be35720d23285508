import type { Access, Client, People, User } from '../contracts/people.ts'
import { compileUser } from './compile-user.ts'
import type { UserRecord } from './config.ts'

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
