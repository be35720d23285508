import type { Store } from '../contracts/store.ts'
import { Fault } from '../kernel/faults.ts'

/** How long a revocation rule must be kept, in milliseconds. */
export interface LongestLife {
  /** Of an access token. */
  readonly tokens: number
  /** Of anything that a rule may end: access tokens, families, sessions. May grow while the process runs. */
  readonly all: number
}

type Records = Pick<Store, 'find' | 'create' | 'replace'>

/** One record `{ms}`: the longest life that any configuration used with this store ever gave. */
const LONGEST_LIFE = 'longest_life'
const KEY = 'all'

/**
 * The longest life, recorded in the store. A configuration with shorter lives does not lower it, because what was
 * issued before keeps the life it was given.
 */
export class RecordedLife implements LongestLife {
  readonly tokens: number
  readonly #store: Records
  #all: number

  private constructor(store: Records, tokens: number) {
    this.#store = store
    this.tokens = tokens
    this.#all = tokens
  }

  /** If the store cannot record it now (it may be full), this process still uses it, and serves. */
  static async open(store: Records, lives: LongestLife): Promise<RecordedLife> {
    const recorded = new RecordedLife(store, lives.tokens)
    recorded.#all = lives.all
    await recorded.raise(lives.all).catch((thrown: unknown) => {
      if (!(thrown instanceof Fault)) throw thrown
    })
    return recorded
  }

  get all(): number {
    return this.#all
  }

  /**
   * Call it before anything gets a life of `ms`. Rejects with Fault `identity_unavailable` if the store cannot record
   * it.
   */
  async raise(ms: number): Promise<void> {
    for (;;) {
      const entry = await this.#store.find(LONGEST_LIFE, KEY)
      const kept = Number(entry?.value['ms'] ?? 0)
      const value = { ms: Math.max(kept, ms, this.#all) }
      this.#all = value.ms
      const done =
        entry === undefined
          ? await this.#store.create(LONGEST_LIFE, KEY, { value })
          : value.ms === kept || (await this.#store.replace(LONGEST_LIFE, KEY, entry.version, value))
      if (done) return
    }
  }
}
