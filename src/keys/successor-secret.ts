import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { SecretDeriver } from '../contracts/keys.ts'
import { newSecret } from '../kernel/ids.ts'
import { claimPrivateFile, KeyFolderError, readPrivateFile } from './private-folder.ts'

/**
 * The secret that successors of refresh tokens are derived with (C6.1.7). It stands beside the signing keys and not in
 * the store: with the store's hashes and an old token from somewhere, nobody can work out the one that is in use.
 * Should it be lost, nothing breaks: only repeats that are under way get another successor than the answer they lost.
 */
const FILE = 'successors.secret'
const SECRET = /^[A-Za-z0-9_-]{43}$/

/** Deterministic, one-way, 256 bits, base64url. */
export const derivedBy = (secret: string): SecretDeriver => ({
  derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
})

/** Made on first start. Several processes that start at once agree on one. */
export async function openSuccessorSecret(folder: string): Promise<SecretDeriver> {
  const path = join(folder, FILE)
  const read = (): Promise<string | undefined> => readPrivateFile(path, 'refresh token secret')
  let text = await read()
  if (text === undefined) {
    await claimPrivateFile(folder, FILE, `${newSecret()}\n`)
    text = await read()
  }
  const secret = text?.trim() ?? ''
  if (!SECRET.test(secret))
    throw new KeyFolderError(
      `The refresh token secret file ${path} is damaged. Restore it from a backup, or remove it and a new one is made.`,
    )
  return derivedBy(secret)
}
