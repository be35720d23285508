import type { Client, People, User } from '../contracts/people.ts'

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
