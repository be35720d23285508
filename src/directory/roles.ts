import type { Access } from '../contracts/people.ts'
import type { StoredDirectory } from './stored-directory.ts'

/** The roles of a configuration, then those of the store: where both have one of a name, the configuration's counts. */
export class Roles {
  readonly #configured: ReadonlyMap<string, Access>
  readonly #stored: Pick<StoredDirectory, 'findRole'>

  constructor(configured: ReadonlyMap<string, Access>, stored: Pick<StoredDirectory, 'findRole'>) {
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
