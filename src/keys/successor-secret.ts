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
 * The secret that successors of refresh tokens are derived with (C6.1.7). It stands beside the signing keys and not in
 * the store: with the store's hashes and an old token from somewhere, nobody can work out the one that is in use.
 * Should it be lost, nothing breaks: only repeats that are under way get another successor than the answer they lost.
 * Should it be stolen, `postern keys rotate --compromised` replaces it, and ends all families with it.
 */
const FILE = 'successors.secret'
const SECRET = /^[A-Za-z0-9_-]{43}$/

/** Deterministic, one-way, 256 bits, base64url. */
export const createDeriver = (secret: string): SecretDeriver => ({
  derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
})

/** The secret as the folder has it: `look` takes one that was replaced. */
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

  /** Made on first start. Several processes that start at once agree on one. Rejects with KeyFolderError. */
  static async open(folder: string): Promise<SuccessorSecret> {
    const stamp = await stampOf(join(folder, FILE))
    return new SuccessorSecret(folder, await readSecret(folder), stamp)
  }

  derive(text: string): string {
    return this.#deriver.derive(text)
  }

  /**
   * Takes the secret that stands in the folder now; a lost one is followed by a new one. True if it was replaced by
   * another. Rejects with KeyFolderError; the one in memory goes on then.
   */
  async refresh(): Promise<boolean> {
    const stamp = await stampOf(join(this.#folder, FILE))
    // One that was made just now has no stamp yet: it is read again the next time.
    if (stamp === this.#stamp && stamp !== 'gone') return false
    const before = this.#secret
    this.#secret = await readSecret(this.#folder)
    this.#deriver = createDeriver(this.#secret)
    this.#stamp = stamp
    return this.#secret !== before
  }
}

/** Puts a new secret in the place of the one that stands in the folder; running processes take it by themselves. */
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
      `The refresh token secret file ${path} is damaged. Restore it from a backup, or remove it and a new one is made.`,
    )
  return secret
}
