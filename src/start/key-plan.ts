/** How the service's own keys are kept and rotated, by its configuration. */
import { join } from 'node:path'
import { planKeys } from '../keys/config.ts'
import { FolderKeys } from '../keys/folder-keys.ts'
import { KeyError } from '../keys/key-error.ts'
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
