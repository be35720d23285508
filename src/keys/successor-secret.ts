import { createHash, createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { SecretDeriver } from '../contracts/keys.ts'
import { newSecret } from '../kernel/ids.ts'
import {
  claimPrivateFile,
  KeyFolderError,
  readPrivateFile,
  replacePrivateFile,
  stampOf,
} from './private-folder.ts'

/**
 * The secret that refresh tokens are made with (C6.1.7). It is kept beside the signing keys and not in the store: so
 * nobody who has the store alone can make a token. If it is lost, all refresh tokens are refused, and people log in
 * again. If it is stolen, `postern keys rotate --compromised` replaces it and ends all families.
 */
const FILE = 'successors.secret'
const SECRET = /^[A-Za-z0-9_-]{43}$/

const ID_LENGTH = 8

/** Deterministic, one-way, 256 bits, base64url. */
export const createDeriver = (secret: string): SecretDeriver => ({
  secretId: createHash('sha256').update(secret).digest('base64url').slice(0, ID_LENGTH),
  derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
})

/** The secret of the folder. `refresh` reads it again if it was replaced. */
export class SuccessorSecret implements SecretDeriver {
  readonly #folder: string
  #secret: string
  #deriver: SecretDeriver
  #stamp: string

  private constructor(folder: string, secret: string, stamp: string) {
    this.#folder = folder
    this.#secret = secret
    this.#deriver = createDeriver(secret)
    this.#stamp = stamp
  }

  /**
   * The first start makes the secret. Several processes that start at once agree on one. Rejects with KeyFolderError.
   */
  static async open(folder: string): Promise<SuccessorSecret> {
    const stamp = await stampOf(join(folder, FILE))
    return new SuccessorSecret(folder, await readSecret(folder), stamp)
  }

  get secretId(): string {
    return this.#deriver.secretId
  }

  derive(text: string): string {
    return this.#deriver.derive(text)
  }

  /**
   * Reads the secret of the folder again, and makes a new one if it is lost. Resolves with whether the secret
   * changed. Rejects with KeyFolderError; the secret in memory stays in use then.
   */
  async refresh(): Promise<boolean> {
    const stamp = await stampOf(join(this.#folder, FILE))
    // A secret made a moment ago has no stamp yet: it is read again the next time.
    if (stamp === this.#stamp && stamp !== 'gone') return false
    const before = this.#secret
    this.#secret = await readSecret(this.#folder)
    this.#deriver = createDeriver(this.#secret)
    this.#stamp = stamp
    return this.#secret !== before
  }
}

/** Replaces the secret of a folder. Running processes notice it. Rejects with KeyFolderError. */
export const replaceSuccessorSecret = (folder: string): Promise<void> =>
  replacePrivateFile(folder, FILE, `${newSecret()}\n`)

async function readSecret(folder: string): Promise<string> {
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
      `The refresh token secret file ${path} is damaged. Restore it from a backup. Or remove it, and a new one is made; then all refresh tokens made with it are refused.`,
    )
  return secret
}
