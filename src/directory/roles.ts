import type { Access } from '../contracts/people.ts'
import type { Store } from '../contracts/store.ts'
import { readRole, ROLE, type RoleRecord } from './place-records.ts'

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
