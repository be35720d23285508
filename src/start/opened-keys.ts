/** The keys of a configuration, as a command opens them that works on them itself. */
import { existsSync } from 'node:fs'
import type { Store } from '../contracts/store.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { StoreClock, TrustedOffset } from '../kernel/store-clock.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { Configuration } from '../settings/configuration.ts'
import { ANSWER_COMMAND_WITHIN, openStore } from '../stores/open-store.ts'
import { sqliteFile } from '../stores/schema.ts'
import { keysPlanOf } from './key-plan.ts'

export class OpenedKeys implements AsyncDisposable {
  readonly plan: KeysPlan
  /** That of the store which has the keys, if there is one. */
  readonly clock: Clock
  readonly #configuration: Configuration
  #store: Promise<Store | undefined> | undefined

  private constructor(configuration: Configuration, clock: Clock, shared?: Store) {
    this.#configuration = configuration
    this.clock = clock
    this.plan = keysPlanOf(configuration, shared)
    if (shared !== undefined) this.#store = Promise.resolve(shared)
  }

  /**
   * Opens a store only if it has the keys, and makes no tables. Rejects with StoreError if that cannot be used, and with
   * KeyError if its seals cannot be.
   */
  static async open(configuration: Configuration): Promise<OpenedKeys> {
    const { store: config } = configuration
    if (config.kind !== 'postgres') return new OpenedKeys(configuration, systemClock)
    const { openPostgresToRead } = await import('../stores/postgres/open.ts')
    const offset = new TrustedOffset()
    const clock = new StoreClock(offset)
    const shared = await openPostgresToRead(config, clock, { offset })
    try {
      return new OpenedKeys(configuration, clock, shared)
    } catch (thrown) {
      await shared.close()
      throw thrown
    }
  }

  /**
   * The store beside the keys, opened when it is asked for first; undefined if it has no file yet, or is in the memory of a
   * service. Rejects with StoreError if it cannot be opened.
   */
  store(): Promise<Store | undefined> {
    this.#store ??= this.#openStore()
    return this.#store
  }

  async #openStore(): Promise<Store | undefined> {
    const { data, store: config } = this.#configuration
    if (config.kind !== 'sqlite' || !existsSync(sqliteFile(data))) return undefined
    return openStore(config, data, systemClock, { answerWithin: ANSWER_COMMAND_WITHIN })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }
}
