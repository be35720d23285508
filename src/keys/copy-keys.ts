import type { FolderKeys } from './folder-keys.ts'
import { KeyError } from './key-error.ts'
import { keysOf } from './key-place.ts'
import type { SealedKeys } from './sealed-keys.ts'

/**
 * Copies the keys and the secret of a folder to a store that nodes share, and seals them there. What was copied before
 * stays as it is. Resolves with the names of the keys, and of the secret. Rejects with KeyError if a key cannot be read, or
 * if the store has keys of its own; then nothing is written.
 */
export async function copyKeys(from: FolderKeys, to: SealedKeys): Promise<readonly string[]> {
  const keys = await keysOf(from)
  const { text: secret } = await from.secret()
  await to.open()
  const known = new Set(keys.map(({ kid }) => kid))
  const there = await keysOf(to)
  const kept = await to.keptSecret()
  if (there.some(({ kid }) => !known.has(kid)) || (kept ?? secret) !== secret)
    throw new KeyError('The store has keys of its own. Copy to one that no service has used.')
  const missing = keys.filter(({ kid }) => !there.some((key) => key.kid === kid))
  for (const { name } of missing) await to.put(name, await from.textOf(name))
  if (kept === undefined) await to.putSecret(secret)
  return [...keys.map(({ name }) => name), to.secretTitle]
}
