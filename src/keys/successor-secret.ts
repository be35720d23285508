import { createHmac } from 'node:crypto'
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
 * The secret from which the successors of refresh tokens are derived (C6.1.7). It is kept beside the signing keys and
 * not in the store: so nobody who has the store and an old token can compute the token in use. If it is lost, little
 * breaks: a client that repeats a request at that moment gets another successor than in the answer it lost. If it is
 * stolen, `postern keys rotate --compromised` replaces it and ends all families.
 */
const FILE = 'successors.secret'
const SECRET = /^[A-Za-z0-9_-]{43}$/

/** Deterministic, one-way, 256 bits, base64url. */
export const createDeriver = (secret: string): SecretDeriver => ({
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
      `The refresh token secret file ${path} is damaged. Restore it from a backup. Or remove it, and a new one is made.`,
    )
  return secret
}
