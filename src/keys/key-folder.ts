import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { epochSeconds, type Clock } from '../kernel/clock.ts'
import {
  claimPrivateFile,
  KeyFolderError,
  listPrivateFolder,
  readPrivateFile,
  reasonOf,
  removePrivateFile,
} from './private-folder.ts'
import { generatePrivateJwk, type Jwk } from './signatures.ts'
import { toSigningKey, type SigningKey } from './signing-key.ts'

/**
 * The private keys on disk (C6.3.4): one JWK per file, `ES256-1.jwk`, `ES256-2.jwk`, …, a new number per rotation. What
 * a file says of itself (`iat` when it was made, `nbf` when it begins to sign) is all that the processes that share the
 * folder need to agree.
 */
export interface StoredKey extends SigningKey {
  /** Grows with each key of an algorithm. */
  readonly generation: number
  /** The file's name in the folder. */
  readonly file: string
  /** Another one where the file was replaced, by one restored from a backup, say. */
  readonly stamp: string
}

const KEY_FILE = /^(ES256|RS256)-([1-9][0-9]{0,8})\.jwk$/

async function parseKey(text: string, algorithm: SigningAlgorithm): Promise<SigningKey> {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // JSON.parse quotes the text in its message: a piece of the private key. It must not travel as a cause.
    throw new TypeError('not JSON')
  }
  if (typeof jwk !== 'object' || jwk === null) throw new TypeError('not a JSON object')
  return toSigningKey(jwk as Jwk, algorithm)
}

const stampOf = async (path: string): Promise<string> => {
  const found = await stat(path).catch(() => undefined)
  return found === undefined ? 'gone' : `${found.ino} ${found.mtimeMs}`
}

/** `known`: as it was read before, which is taken again if it is still the same file. */
async function readKey(folder: string, file: string, known?: StoredKey): Promise<StoredKey | undefined> {
  const [, algorithm, generation] = KEY_FILE.exec(file) ?? []
  if (algorithm === undefined) return undefined
  const path = join(folder, file)
  const stamp = await stampOf(path)
  if (known?.stamp === stamp) return known
  const text = await readPrivateFile(path, 'signing key')
  if (text === undefined) return undefined
  try {
    const key = await parseKey(text, algorithm as SigningAlgorithm)
    return { ...key, generation: Number(generation), file, stamp }
  } catch (thrown) {
    throw new KeyFolderError(
      `The signing key file ${path} is damaged or no ${algorithm} key (${reasonOf(thrown)}). Restore it from a ` +
        'backup; or remove it, and a new key is made: tokens signed with the old one are refused from then on.',
    )
  }
}

/** The names of the key files. */
export async function listKeyFiles(folder: string): Promise<readonly string[]> {
  return (await listPrivateFolder(folder)).filter((name) => KEY_FILE.test(name)).sort()
}

/** Every key of the folder, oldest generation first. `known` ones are not read again, if their files are the same. */
export async function readKeyFolder(
  folder: string,
  known: readonly StoredKey[] = [],
): Promise<readonly StoredKey[]> {
  const files = await listKeyFiles(folder)
  const byFile = new Map(known.map((key) => [key.file, key]))
  const keys = await Promise.all(files.map((file) => readKey(folder, file, byFile.get(file))))
  return keys.filter((key) => key !== undefined).sort((a, b) => a.generation - b.generation)
}

export interface NewKey {
  readonly algorithm: SigningAlgorithm
  readonly generation: number
  /** Seconds since the epoch; at once if left out. */
  readonly signsFrom?: number
}

/** Makes the key of a generation, or takes the one that another process has made meanwhile. */
export async function createKey(
  folder: string,
  { algorithm, generation, signsFrom }: NewKey,
  clock: Clock,
): Promise<StoredKey> {
  const file = `${algorithm}-${generation}.jwk`
  const iat = epochSeconds(clock)
  const jwk = {
    ...(await generatePrivateJwk(algorithm)),
    alg: algorithm,
    use: 'sig',
    iat,
    nbf: signsFrom ?? iat,
  }
  await claimPrivateFile(folder, file, `${JSON.stringify(jwk, null, 2)}\n`)
  const key = await readKey(folder, file)
  if (key === undefined) throw new KeyFolderError(`The signing key file ${file} was removed as it was made`)
  return key
}

/** Takes a key out of use for good, its private half with it. */
export const removeKey = (folder: string, { file }: StoredKey): Promise<void> =>
  removePrivateFile(join(folder, file))
