import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../../base/kernel/clock.ts'
import { describeTrouble } from '../link/store-error.ts'
import { unavailable } from '../link/store-link.ts'
import { SqliteStore } from './sqlite.ts'
import type { SqliteRequests } from './sqlite-link.ts'
import { migrateSqlite } from './sqlite-schema.ts'
import { verbsOf, type SqliteVerb } from './sqlite-verbs.ts'

/** Answers at once, in the thread that asks: nobody else has this database, and no disk is waited for. */
class InMemory implements SqliteRequests {
  readonly #db = new DatabaseSync(':memory:')
  readonly #verbs: ReturnType<typeof verbsOf>
  readonly trouble = undefined
  readonly refusesWrites = undefined
  readonly patience = undefined

  constructor() {
    migrateSqlite(this.#db, ':memory:')
    this.#verbs = verbsOf(this.#db)
  }

  readonly write: SqliteRequests['write'] = (verb, ...args) =>
    Promise.try(() => this.#ask(verb, args)) as never

  readonly read: SqliteRequests['read'] = (verb, ...args) => Promise.try(() => this.#ask(verb, args)) as never

  close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close()
    return Promise.resolve()
  }

  #ask(verb: SqliteVerb, args: readonly unknown[]): unknown {
    if (!this.#db.isOpen) throw unavailable('it is closed')
    try {
      // As in SqliteLink: the compiler does not see that verb and arguments belong together.
      return (this.#verbs[verb] as (...given: readonly unknown[]) => unknown)(...args)
    } catch (thrown) {
      const trouble = describeTrouble(thrown)
      throw trouble === undefined ? thrown : unavailable(trouble)
    }
  }
}

/** For tests, and for deployments that keep nothing (sidecar): a store that ends with its process. */
export class MemoryStore extends SqliteStore {
  constructor(clock: Clock) {
    super(new InMemory(), clock, 0)
  }
}
