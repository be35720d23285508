/** How the service's own keys are kept and rotated, by its configuration. */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { planKeys } from '../keys/schema.ts'
import { FolderKeys } from '../keys/folder-keys.ts'
import { KeyError } from '../keys/key-error.ts'
import { type KeyPlace, keysOf } from '../keys/key-place.ts'
import { NOTICED_WITHIN } from '../keys/schedule.ts'
import { Seals } from '../keys/seal.ts'
import { type KeyStore, SealedKeys } from '../keys/sealed-keys.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { Configuration } from '../settings/configuration.ts'

/** What of a configuration tells where keys are kept, and how they follow each other. */
export type KeysConfiguration = Pick<Configuration, 'data' | 'keys' | 'identity' | 'store'>

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
    return undefined
  } catch (thrown) {
    if (thrown instanceof KeyError) return thrown.message
    throw thrown
  }
}

const sealsOf = ({ store }: KeysConfiguration): unknown =>
  store.kind === 'postgres' ? store.seal : undefined
