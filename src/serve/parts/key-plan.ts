/** How the service's own keys are kept and rotated, by its configuration. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isShared, type Store } from '../../base/contracts/records/store.ts'
import { sealedValues } from '../../identity/directory/records/values.ts'
import { type Clock, systemClock } from '../../base/kernel/clock.ts'
import { StoreClock, TrustedOffset } from '../../base/kernel/store-clock.ts'
import { FolderKeys } from '../../identity/keys/signing/folder-keys.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { keysOf } from '../../identity/keys/signing/key-place.ts'
import { NOTICED_WITHIN } from '../../identity/keys/signing/schedule.ts'
import { planKeys } from '../../identity/keys/signing/schema.ts'
import type { KeysPlan } from '../../identity/keys/signing/service-keys.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { KeyStore, SharedStoreKinds } from '../../operate/settings/shared-stores.ts'
import { ANSWER_COMMAND_WITHIN, openStore } from '../../state/stores/open-store.ts'
import { openSqliteToRead } from '../../state/stores/read-store.ts'
import { sqliteFile } from '../../state/stores/schema.ts'

/** The parts of a configuration that tell where keys are kept, and how they follow each other. */
type KeysConfiguration = Pick<Configuration, 'data' | 'keys' | 'identity' | 'store'>

/** An open store that several nodes share, and its kind. */
interface SharedKeys {
  readonly kinds: SharedStoreKinds
  /** The store of the configuration; needed only if it is one that nodes share. */
  readonly store?: KeyStore & Pick<Store, 'shared'>
}

/**
 * Keys are in a store that several nodes share; otherwise in the data folder. Rejects with KeyError if they cannot be sealed and
 * opened there.
 */
export async function keysPlanOf(
  configuration: KeysConfiguration,
  { kinds, store: opened }: SharedKeys,
): Promise<KeysPlan> {
  const { data, keys, identity, store } = configuration
  const longestLife = identity.idToken.lifetime
  const shared = kinds.get(store.kind)
  if (shared === undefined && isShared(store)) throw new KeyError(`There is no kind of store ${store.kind}.`)
  if (shared === undefined) return planKeys(new FolderKeys(join(data, 'keys')), keys, longestLife)
  if (opened?.shared === undefined) throw new KeyError('The keys are in the store, which is not open.')
  // Beyond that, another node's key may have signed for so long that ours is retired before its last token expires.
  const tokens = Math.max(keys.rotation.announce, NOTICED_WITHIN * 1000)
  return {
    ...planKeys(await shared.openKeys(store, opened), keys, longestLife),
    unread: { tokens, calls: Math.max(tokens, opened.shared.maxAge) },
  }
}

/**
 * Why the seals of a configuration cannot be put in force; undefined if they can. Seals that do not open everything that is
 * sealed in the store would keep each process from starting again. Rejects with Fault `identity_unavailable`.
 */
export async function unfitSeals(
  before: KeysConfiguration,
  after: KeysConfiguration,
  shared: Required<SharedKeys>,
): Promise<string | undefined> {
  // A sidecar has its store in memory, whatever the section says.
  if (shared.store.shared === undefined || isDeepStrictEqual(before.store, after.store)) return undefined
  try {
    const { place } = await keysPlanOf(after, shared)
    await keysOf(place)
    await place.secret()
    const unopened = (await sealedValues(shared.store, place)).find(({ canBeOpened }) => !canBeOpened)
    return unopened && `The value ${unopened.title} of a business cannot be opened with it.`
  } catch (thrown) {
    if (thrown instanceof KeyError) return thrown.message
    throw thrown
  }
}

interface OpenedShared {
  readonly store: Store
  readonly clock: Clock
}

/** The keys of a configuration, as a command opens them that works on them itself. */
export class OpenedKeys implements AsyncDisposable {
  readonly plan: KeysPlan
  /** The clock of the store which has the keys, if there is one. */
  readonly clock: Clock
  readonly #configuration: Configuration
  readonly #reads: boolean
  #store: Promise<Store | undefined> | undefined

  private constructor(configuration: Configuration, reads: boolean, plan: KeysPlan, opened?: OpenedShared) {
    this.#configuration = configuration
    this.#reads = reads
    this.plan = plan
    this.clock = opened?.clock ?? systemClock
    if (opened !== undefined) this.#store = Promise.resolve(opened.store)
  }

  /**
   * Opens a store only if it has the keys, and makes no tables. Rejects with StoreError if that cannot be used, and with
   * KeyError if its seals cannot be.
   *
   * @param reads whether nothing is changed
   */
  static async open(
    configuration: Configuration,
    reads: boolean,
    kinds: SharedStoreKinds,
  ): Promise<OpenedKeys> {
    const { store: config } = configuration
    const kind = kinds.get(config.kind)
    if (kind === undefined)
      return new OpenedKeys(configuration, reads, await keysPlanOf(configuration, { kinds }))
    const offset = new TrustedOffset()
    const clock = new StoreClock(offset)
    const store = await kind.openToRead(config, clock, { offset })
    try {
      const plan = await keysPlanOf(configuration, { kinds, store })
      return new OpenedKeys(configuration, reads, plan, { store, clock })
    } catch (thrown) {
      await store.close()
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
