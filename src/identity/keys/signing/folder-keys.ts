import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../base/kernel/clock.ts'
import { type Diagnosis, warning } from '../../../base/kernel/diagnosis.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import type { SealedText } from '../../../base/contracts/people/keys.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import {
  foundKeys,
  type FoundKeys,
  type KeptSecret,
  type KeyPlace,
  openedOrNot,
  SECRET_FORM,
} from './key-place.ts'
import {
  claimPrivateFile,
  createPrivateFolder,
  identifyFolder,
  listPrivateFolder,
  readPrivateFile,
  removePrivateFile,
  replacePrivateFile,
  stampOf,
} from '../../../base/files/private-folder.ts'
import { Seals } from './seal.ts'
import {
  keyName,
  type NewKey,
  newPrivateJwk,
  parseKeyName,
  parseSigningKey,
  type StoredKey,
} from './stored-key.ts'

const EXTENSION = '.jwk'
const SECRET_FILE = 'successors.secret'
const SEAL_FILE = 'values.seal'

const ID_LENGTH = 8
/** For messages: what somebody who has read the seal can do. */
const VALUES = { folder: 'folder of the signing keys', power: 'read secret values of businesses' }

/** A draft that is left by a process that died while it wrote a file. */
const DRAFT = /^\..+\.[\w-]{12}$/

function nameOfFile(file: string): string | undefined {
  const name = file.endsWith(EXTENSION) ? file.slice(0, -EXTENSION.length) : undefined
  return name !== undefined && parseKeyName(name) !== undefined ? name : undefined
}

/**
 * Keys in a folder of one machine, readable by their owner only: a JWK per file, `ES256-1.jwk`, `ES256-2.jwk`, …, a new
 * number per rotation, the secret of refresh tokens, and the seal of what the store has sealed.
 *
 * If a key file is removed, its key is gone. But a folder that is gone, or replaced by an empty one (an unmounted volume
 * leaves one), is an error: then `read` rejects, and no new secret is made.
 */
export class FolderKeys implements KeyPlace {
  readonly #folder: string
  /** The identity of the folder when it was read last, see `identifyFolder`. */
  #identity: string | undefined
  #seals: { readonly stamp: string; readonly seals: Seals } | undefined

  /** A reading of an unchanged folder takes about 50 µs. */
  readonly every = 250
  readonly pause = 100
  readonly secretTitle = SECRET_FILE

  /** @param folder absolute path */
  constructor(folder: string) {
    this.#folder = folder
  }

  get name(): string {
    return `the folder ${this.#folder}`
  }

  open(): Promise<void> {
    return createPrivateFolder(this.#folder)
  }

  fileOf(name: string): string {
    return `${name}${EXTENSION}`
  }

  async names(): Promise<readonly string[]> {
    const files = await listPrivateFolder(this.#folder)
    return files
      .map(nameOfFile)
      .filter((name) => name !== undefined)
      .sort()
  }

  /** An unchanged file is not read again. */
  async read(known: readonly StoredKey[]): Promise<FoundKeys> {
    const before = await identifyFolder(this.#folder)
    const found = await this.#readAll(known)
    const after = await identifyFolder(this.#folder)
    const same = before === after && after === (this.#identity ?? after)
    if (found.keys.length === 0 && !same) throw emptied(this.#folder)
    this.#identity = after
    return found
  }

  async #readAll(known: readonly StoredKey[]): Promise<FoundKeys> {
    const byName = new Map(known.map((key) => [key.name, key]))
    const names = await this.names()
    const read = await Promise.allSettled(names.map((name) => this.#readKey(name, byName.get(name))))
    return foundKeys(names, read, byName)
  }

  async textOf(name: string): Promise<string> {
    const path = join(this.#folder, this.fileOf(name))
    const text = await readPrivateFile(path, 'signing key')
    if (text === undefined) throw new KeyError(`The signing key file ${path} is gone.`)
    return text
  }

  /** `known`: the key as read before; it is reused if the file is still the same. */
  async #readKey(name: string, known?: StoredKey): Promise<StoredKey | undefined> {
    const parsed = parseKeyName(name)
    if (parsed === undefined) return undefined
    const path = join(this.#folder, this.fileOf(name))
    const stamp = await stampOf(path)
    if (known?.stamp === stamp) return known
    const text = await readPrivateFile(path, 'signing key')
    if (text === undefined) return undefined
    try {
      return { ...(await parseSigningKey(text, parsed.algorithm)), ...parsed, name, stamp }
    } catch (thrown) {
      throw new KeyError(
        `The signing key file ${path} is damaged or no ${parsed.algorithm} key (${messageOf(thrown)}). Restore it from ` +
          'a backup. Or remove it, and a new key is made; then tokens signed with the old key are refused.',
      )
    }
  }

  async create(key: NewKey, clock: Clock): Promise<StoredKey> {
    const name = keyName(key)
    const jwk = await newPrivateJwk(key, clock)
    await claimPrivateFile(this.#folder, this.fileOf(name), `${JSON.stringify(jwk, null, 2)}\n`)
    const made = await this.#readKey(name)
    if (made === undefined)
      throw new KeyError(`The signing key file ${this.fileOf(name)} was removed right after it was created`)
    return made
  }

  /** Rejects as the file system does. */
  remove(name: string): Promise<void> {
    return removePrivateFile(join(this.#folder, this.fileOf(name)))
  }

  async secret(known?: KeptSecret): Promise<KeptSecret> {
    // Another folder in the place of ours has no secret, and must not get one.
    if (known !== undefined && (await this.#isReplaced())) return known
    const stamp = await stampOf(join(this.#folder, SECRET_FILE))
    // A secret made a moment ago has no stamp yet: it is read again the next time.
    if (known?.stamp === stamp && stamp !== 'gone') return known
    return { text: await this.#readSecret(), stamp }
  }

  async #isReplaced(): Promise<boolean> {
    return this.#identity !== undefined && (await identifyFolder(this.#folder)) !== this.#identity
  }

  async #readSecret(): Promise<string> {
    const path = join(this.#folder, SECRET_FILE)
    const read = (): Promise<string | undefined> => readPrivateFile(path, 'refresh token secret')
    let text = await read()
    if (text === undefined) {
      await claimPrivateFile(this.#folder, SECRET_FILE, `${newSecret()}\n`)
      text = await read()
    }
    const secret = text?.trim() ?? ''
    if (!SECRET_FORM.test(secret))
      throw new KeyError(
        `The refresh token secret file ${path} is damaged. Restore it from a backup. Or remove it, and a new one is made; then all refresh tokens made with it are refused.`,
      )
    return secret
  }

  replaceSecret(): Promise<void> {
    return replacePrivateFile(this.#folder, SECRET_FILE, `${newSecret()}\n`)
  }

  /** The first text makes the seal; of several processes that do it at once one wins. */
  async sealText(text: string, place: readonly string[]): Promise<SealedText> {
    if (await this.#isReplaced()) throw emptied(this.#folder)
    const known = await this.#readSeals()
    if (known !== undefined) return known.seal(text, place)
    await this.open()
    await claimPrivateFile(this.#folder, SEAL_FILE, `${newSecret()}\n`)
    const made = await this.#readSeals()
    if (made === undefined) throw new KeyError(`The file ${SEAL_FILE} was removed right after it was created`)
    return made.seal(text, place)
  }

  async openText(sealed: SealedText, place: readonly string[]): Promise<string | undefined> {
    const seals = await this.#readSeals()
    return seals && openedOrNot(seals, sealed, place)
  }

  /** Undefined if there is none. An unchanged file is not read again. */
  async #readSeals(): Promise<Seals | undefined> {
    const path = join(this.#folder, SEAL_FILE)
    const stamp = await stampOf(path)
    if (this.#seals?.stamp === stamp) return this.#seals.seals
    const key = (await readPrivateFile(path, 'seal', VALUES))?.trim()
    if (key === undefined) return undefined
    if (!SECRET_FORM.test(key))
      throw new KeyError(
        `The seal file ${path} is damaged. Restore it from a backup. Or remove it, and give the businesses their secret values again.`,
      )
    // The id tells a seal from the one that was there before.
    const id = createHash('sha256').update(key).digest('base64url').slice(0, ID_LENGTH)
    const seals = new Seals([{ id, key }])
    this.#seals = { stamp, seals }
    return seals
  }

  async examine(): Promise<{ readonly exists: boolean; readonly findings: readonly Diagnosis[] }> {
    const folder = this.#folder
    if ((await stat(folder).catch(() => undefined)) === undefined)
      return { exists: false, findings: [missing(folder)] }
    const drafts = (await listPrivateFolder(folder)).filter((file) => DRAFT.test(file))
    return { exists: true, findings: drafts.map(leftOver) }
  }
}

const missing = (folder: string): Diagnosis =>
  warning(`${folder} does not exist: the first start creates it, with keys.`)

const leftOver = (file: string): Diagnosis =>
  warning(`${file} was left by a process that died while it created a key: remove it.`)

const emptied = (folder: string): KeyError =>
  new KeyError(
    `The folder of the signing keys, ${folder}, was replaced by an empty one. Is its volume mounted? The keys in ` +
      'memory stay in use. To withdraw them, remove the key files from their folder, or restart.',
  )
