/** How the service's own keys are kept and rotated, by its configuration. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../base/contracts/records/store.ts'
import { sealedValues } from '../../identity/directory/records/values.ts'
import { type Clock, systemClock } from '../../base/kernel/clock.ts'
import { StoreClock, TrustedOffset } from '../../base/kernel/store-clock.ts'
import { FolderKeys } from '../../identity/keys/signing/folder-keys.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { type KeyPlace, keysOf } from '../../identity/keys/signing/key-place.ts'
import { NOTICED_WITHIN } from '../../identity/keys/signing/schedule.ts'
import { planKeys } from '../../identity/keys/signing/schema.ts'
import { Seals } from '../../identity/keys/signing/seal.ts'
import { type KeyStore, SealedKeys } from '../../identity/keys/signing/sealed-keys.ts'
import type { KeysPlan } from '../../identity/keys/signing/service-keys.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { ANSWER_COMMAND_WITHIN, openStore } from '../../state/stores/open-store.ts'
import { openSqliteToRead } from '../../state/stores/read-store.ts'
import { sqliteFile } from '../../state/stores/schema.ts'

/** The parts of a configuration that tell where keys are kept, and how they follow each other. */
type KeysConfiguration = Pick<Configuration, 'data' | 'keys' | 'identity' | 'store'>

/**
 * Keys are in a store that several nodes share; otherwise in the data folder.
 *
 * @param opened the store of the configuration; needed only if it is one that nodes share
 * @throws KeyError if the seals cannot be used
 */
export function keysPlanOf(configuration: KeysConfiguration, opened?: KeyStore): KeysPlan {
  const { data, keys, identity, store } = configuration
  const longestLife = identity.idToken.lifetime
  if (store.kind !== 'postgres') return planKeys(new FolderKeys(join(data, 'keys')), keys, longestLife)
  if (opened === undefined) throw new KeyError('The keys are in the store, which is not open.')
  // Beyond that, another node's key may have signed for so long that ours is retired before its last token expires.
  const tokens = Math.max(keys.rotation.announce, NOTICED_WITHIN * 1000)
  return {
    ...planKeys(new SealedKeys(opened, new Seals(store.seal)), keys, longestLife),
    unread: { tokens, calls: Math.max(tokens, store.maxAge) },
  }
}

/** The seals of a configuration that is put in force are used from now on. */
export function adoptSeals(place: KeyPlace, { store }: Pick<Configuration, 'store'>): void {
  if (store.kind === 'postgres') place.useSeals?.(new Seals(store.seal))
}

/**
 * Why the seals of a configuration cannot be put in force; undefined if they can. Seals that do not open everything that is
 * sealed in the store would keep each process from starting again. Rejects with Fault `identity_unavailable`.
 */
export async function unfitSeals(
  before: KeysConfiguration,
  after: KeysConfiguration,
  opened: KeyStore,
): Promise<string | undefined> {
  if (isDeepStrictEqual(sealsOf(before), sealsOf(after))) return undefined
  const { place } = keysPlanOf(after, opened)
  try {
    await keysOf(place)
    await place.secret()
    const unopened = (await sealedValues(opened, place)).find(({ canBeOpened }) => !canBeOpened)
    return unopened && `The value ${unopened.title} of a business cannot be opened with it.`
  } catch (thrown) {
    if (thrown instanceof KeyError) return thrown.message
    throw thrown
  }
}

const sealsOf = ({ store }: KeysConfiguration): unknown =>
  store.kind === 'postgres' ? store.seal : undefined

/** The keys of a configuration, as a command opens them that works on them itself. */
export class OpenedKeys implements AsyncDisposable {
  readonly plan: KeysPlan
  /** The clock of the store which has the keys, if there is one. */
  readonly clock: Clock
  readonly #configuration: Configuration
  readonly #reads: boolean
  #store: Promise<Store | undefined> | undefined

  private constructor(configuration: Configuration, reads: boolean, clock: Clock, shared?: Store) {
    this.#configuration = configuration
    this.#reads = reads
    this.clock = clock
    this.plan = keysPlanOf(configuration, shared)
    if (shared !== undefined) this.#store = Promise.resolve(shared)
  }

  /**
   * Opens a store only if it has the keys, and makes no tables. Rejects with StoreError if that cannot be used, and with
   * KeyError if its seals cannot be.
   *
   * @param reads whether nothing is changed
   */
  static async open(configuration: Configuration, reads: boolean): Promise<OpenedKeys> {
    const { store: config } = configuration
    if (config.kind !== 'postgres') return new OpenedKeys(configuration, reads, systemClock)
    const { openPostgresToRead } = await import('../../state/stores/postgres/open.ts')
    const offset = new TrustedOffset()
    const clock = new StoreClock(offset)
    const shared = await openPostgresToRead(config, clock, { offset })
    try {
      return new OpenedKeys(configuration, reads, clock, shared)
    } catch (thrown) {
      await shared.close()
      throw thrown
    }
  }

  /**
   * The store next to the keys, opened when it is asked for first; undefined if it has no file yet, or is in the memory of a
   * service. Rejects with StoreError if it cannot be opened.
   */
  store(): Promise<Store | undefined> {
    this.#store ??= this.#openStore()
    return this.#store
  }

  async #openStore(): Promise<Store | undefined> {
    const { data, store: config } = this.#configuration
    if (config.kind !== 'sqlite' || !existsSync(sqliteFile(data))) return undefined
    if (this.#reads) return openSqliteToRead(data)
    return openStore(config, data, systemClock, { answerWithin: ANSWER_COMMAND_WITHIN })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }
}
