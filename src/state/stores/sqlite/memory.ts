import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../../base/kernel/clock.ts'
import { type SqliteRequests, SqliteStore } from './sqlite.ts'
import { migrate } from './sqlite-schema.ts'
import { prepareVerbs, type SqliteVerb } from './sqlite-verbs.ts'

/** Answers at once, in the thread that asks: nobody else has this database, and no disk is waited for. */
class InMemory implements SqliteRequests {
  readonly #db = new DatabaseSync(':memory:')
  readonly #verbs: ReturnType<typeof prepareVerbs>
  readonly trouble = undefined
  readonly refusesWrites = undefined
  readonly patience = undefined

  constructor() {
    migrate(this.#db, ':memory:')
    this.#verbs = prepareVerbs(this.#db)
  }

  readonly write: SqliteRequests['write'] = (verb, ...args) =>
    Promise.try(() => this.#ask(verb, args)) as never

  readonly read: SqliteRequests['read'] = (verb, ...args) => Promise.try(() => this.#ask(verb, args)) as never

  close(): Promise<void> {
    this.#db.close()
    return Promise.resolve()
  }

  #ask(verb: SqliteVerb, args: readonly unknown[]): unknown {
    // As in SqliteLink: the compiler does not see that verb and arguments belong together.
    return (this.#verbs[verb] as (...given: readonly unknown[]) => unknown)(...args)
  }
}

/** For tests, and for deployments that keep nothing (sidecar): a store that ends with its process. */
export class MemoryStore extends SqliteStore {
  constructor(clock: Clock) {
    super(new InMemory(), clock, 0)
  }
}
