import type { Store } from '../contracts/store.ts'
import { Fault } from '../kernel/faults.ts'

/** How long a revocation rule must be kept, in milliseconds. */
export interface LongestLife {
  /** Of an access token. */
  readonly tokens: number
  /** Of anything that a rule may end: access tokens, families, sessions. Asked each time. */
  readonly all: number
}

type Records = Pick<Store, 'find' | 'create' | 'replace'>

/** One record: the longest life that a configuration served with this store ever gave to anything, `{ms}`. */
const LONGEST_LIFE = 'longest_life'
const KEY = 'all'

/**
 * The longest life as the store records it. A configuration that gives shorter ones does not lower it: what was begun
 * before lives as long as it was given then.
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

  /** Where it cannot be recorded now (the store is full, say), this process knows it all the same, and serves. */
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

  /** To be called before anything is given a life of that length. Rejects with Fault `identity_unavailable`. */
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
