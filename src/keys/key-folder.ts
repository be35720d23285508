import { join } from 'node:path'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { epochSeconds, type Clock } from '../kernel/clock.ts'
import {
  claimPrivateFile,
  KeyFolderError,
  listPrivateFolder,
  readPrivateFile,
  removePrivateFile,
  stampOf,
} from './private-folder.ts'
import {
  generatePrivateJwk,
  importPrivateKey,
  importPublicKey,
  isSignedBy,
  type Jwk,
  publicPart,
  signCompact,
  thumbprint,
} from './signatures.ts'
import { messageOf } from '../kernel/thrown.ts'

/** A key pair that can sign. The private half is a CryptoKey that cannot be exported, so it cannot get into a log. */
export interface SigningKey {
  /** The thumbprint (RFC 7638). */
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
  /** As published: public members, `kid`, `use`, `alg`. */
  readonly publicJwk: Jwk
  /** Seconds since the epoch. */
  readonly createdAt: number
  /** Seconds since the epoch. */
  readonly signsFrom: number
}

/**
 * The two halves of a damaged file may not belong together. Then no token signed with it could be verified. Rejects
 * with TypeError.
 */
async function provePair(key: SigningKey): Promise<void> {
  const header = { alg: key.algorithm, typ: 'JWT', kid: key.kid }
  const proof = await signCompact({}, header, key.privateKey)
  if (!(await isSignedBy(proof, key.publicKey, key.algorithm)))
    throw new TypeError('a private and a public half that do not belong together')
}

const secondsOf = (jwk: Jwk, member: string): number | undefined =>
  typeof jwk[member] === 'number' ? jwk[member] : undefined

/**
 * From a private JWK: `iat` says when it was made, `nbf` when it begins to sign. Rejects with an Error if others
 * could not verify its signatures.
 */
export async function toSigningKey(jwk: Jwk, algorithm: SigningAlgorithm): Promise<SigningKey> {
  const kid = await thumbprint(jwk, algorithm)
  const key: SigningKey = {
    kid,
    algorithm,
    privateKey: await importPrivateKey(jwk, algorithm),
    publicKey: await importPublicKey(jwk, algorithm),
    publicJwk: Object.freeze({ ...publicPart(jwk, algorithm), kid, use: 'sig', alg: algorithm }),
    createdAt: secondsOf(jwk, 'iat') ?? 0,
    signsFrom: secondsOf(jwk, 'nbf') ?? secondsOf(jwk, 'iat') ?? 0,
  }
  await provePair(key)
  return key
}

/**
 * The private keys on disk (C6.3.4): one JWK per file, `ES256-1.jwk`, `ES256-2.jwk`, …, a new number per rotation.
 * The times in a file (`iat`, `nbf`) are all that the processes that share the folder need to agree.
 */
export interface StoredKey extends SigningKey {
  /** Grows with each key of an algorithm. */
  readonly generation: number
  /** The file's name in the folder. */
  readonly file: string
  /** Differs if the file was replaced, for example by one from a backup. */
  readonly stamp: string
}

const KEY_FILE = /^(ES256|RS256)-([1-9][0-9]{0,8})\.jwk$/

async function parseKey(text: string, algorithm: SigningAlgorithm): Promise<SigningKey> {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the text, which is a private key: don't pass it on as the cause.
    throw new TypeError('not JSON')
  }
  if (typeof jwk !== 'object' || jwk === null) throw new TypeError('not a JSON object')
  return toSigningKey(jwk as Jwk, algorithm)
}

/** `known`: the key as read before; it is reused if the file is still the same. */
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
      `The signing key file ${path} is damaged or no ${algorithm} key (${messageOf(thrown)}). Restore it from a ` +
        'backup. Or remove it, and a new key is made; then tokens signed with the old key are refused.',
    )
  }
}

/** The names of the key files, sorted. Rejects with KeyFolderError. */
export async function listKeyFiles(folder: string): Promise<readonly string[]> {
  return (await listPrivateFolder(folder)).filter((name) => KEY_FILE.test(name)).sort()
}

/** Every key of the folder, oldest generation first. Rejects with KeyFolderError if one cannot be used. */
export async function readKeyFolder(folder: string): Promise<readonly StoredKey[]> {
  const { keys, trouble } = await followKeyFolder(folder, [])
  if (trouble !== undefined) throw trouble
  return keys
}

/** What a key folder contains. */
export interface FoundKeys {
  /** Oldest generation first. */
  readonly keys: readonly StoredKey[]
  /** Why a file cannot be read; undefined if all can. */
  readonly trouble: Error | undefined
}

/**
 * Reads a folder again. An unchanged file is not read again. If a file is gone, its key is gone, even if other files
 * are damaged. If a file cannot be read, its key stays as it was. Rejects with KeyFolderError if the folder cannot be
 * used.
 */
export async function followKeyFolder(folder: string, known: readonly StoredKey[]): Promise<FoundKeys> {
  const byFile = new Map(known.map((key) => [key.file, key]))
  const files = await listKeyFiles(folder)
  const read = await Promise.allSettled(files.map((file) => readKey(folder, file, byFile.get(file))))
  const keys = read.map((result, at) =>
    result.status === 'fulfilled' ? result.value : byFile.get(files[at] ?? ''),
  )
  return {
    keys: keys.filter((key) => key !== undefined).sort((a, b) => a.generation - b.generation),
    trouble: troubleOf(read.find((result) => result.status === 'rejected')),
  }
}

const troubleOf = (failed: PromiseRejectedResult | undefined): Error | undefined =>
  failed && (failed.reason instanceof Error ? failed.reason : new KeyFolderError(messageOf(failed.reason)))

/**
 * The highest generation of an algorithm, by the names of the files; 0 if there is none. Rejects with KeyFolderError.
 */
export async function newestGeneration(folder: string, algorithm: SigningAlgorithm): Promise<number> {
  const names = (await listKeyFiles(folder)).map((name) => KEY_FILE.exec(name))
  return Math.max(0, ...names.map((name) => (name?.[1] === algorithm ? Number(name[2]) : 0)))
}

export interface NewKey {
  readonly algorithm: SigningAlgorithm
  readonly generation: number
  /** Seconds since the epoch; default: now. */
  readonly signsFrom?: number
}

/**
 * Makes the key of a generation, or reads the one that another process made at the same time. Rejects with
 * KeyFolderError.
 */
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
  if (key === undefined)
    throw new KeyFolderError(`The signing key file ${file} was removed right after it was created`)
  return key
}

/** Deletes a key file. Rejects as the file system does, but not if the file is gone already. */
export const removeKey = (folder: string, file: string): Promise<void> =>
  removePrivateFile(join(folder, file))
