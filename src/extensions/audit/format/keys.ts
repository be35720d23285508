/**
 * The keys of the audit trail, in `keys` in its folder: an Ed25519 key that signs the manifest (C12.4.4) and the key under
 * which bodies are hashed (C12.2.2). No token is signed with either. Both are in one file, so that they are made together,
 * by whichever process is first.
 */
import { Buffer } from 'node:buffer'
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
  type webcrypto,
} from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BodyHash } from '../../../base/contracts/records/audit.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import {
  claimPrivateFile,
  createPrivateFolder,
  type KeyPurpose,
  listPrivateFolder,
  readPrivateFile,
  replacePrivateFile,
} from '../../../base/files/private-folder.ts'

const FOLDER = 'keys'
const FILE = 'audit-keys.json'
/** The public half, next to the manifest: a copy of the trail can be verified without the private key. */
export const PUBLIC_KEY_FILE = 'manifest-key.pem'

const PURPOSE: KeyPurpose = { folder: 'folder of the audit keys', power: 'sign a forged audit trail' }
const BODY_KEY = /^[A-Za-z0-9_-]{43}$/

export interface AuditKeys {
  /** PEM (SPKI). */
  readonly publicPem: string
  /** base64url. Hashes bodies; a secret. */
  readonly bodyKey: string
  /** An Ed25519 signature of a text in UTF-8, base64url. */
  readonly sign: (text: string) => string
  /** The file that holds them; a secret. */
  readonly text: string
}

export const auditKeyFolder = (folder: string): string => join(folder, FOLDER)

/** Reads the keys of a trail's folder; makes them if there are none. Rejects with KeyError. */
export async function openAuditKeys(folder: string): Promise<AuditKeys> {
  const own = auditKeyFolder(folder)
  await createPrivateFolder(own, PURPOSE)
  const known = await readAuditKeys(folder)
  if (known !== undefined) return known
  await claimPrivateFile(own, FILE, newKeys(), PURPOSE)
  const made = await readAuditKeys(folder)
  if (made === undefined) throw new KeyError(`${join(own, FILE)} was removed right after it was made`)
  return made
}

/** The keys of a trail's folder. Rejects with KeyError if there are none or they cannot be used. */
export async function presentAuditKeys(folder: string): Promise<AuditKeys> {
  const keys = await readAuditKeys(folder)
  if (keys !== undefined) return keys
  throw new KeyError(`There are no audit keys in ${auditKeyFolder(folder)}: was the service started yet?`)
}

/**
 * Puts the keys back into the folder of a trail, if it lost them while its service was running: another start would make
 * new ones, which go with no signature of this trail. Rejects with KeyError.
 */
export async function restoreAuditKeys(folder: string, { text }: AuditKeys): Promise<void> {
  const own = auditKeyFolder(folder)
  await createPrivateFolder(own, PURPOSE)
  const found = await readFile(join(own, FILE), 'utf8').catch(() => undefined)
  if (found !== text) await replacePrivateFile(own, FILE, text)
}

async function readAuditKeys(folder: string): Promise<AuditKeys | undefined> {
  const own = auditKeyFolder(folder)
  const names = await listPrivateFolder(own, PURPOSE)
  const path = join(own, FILE)
  const text = names.includes(FILE) ? await readPrivateFile(path, 'audit key', PURPOSE) : undefined
  return text === undefined ? undefined : parseKeys(text, path)
}

interface KeyFile {
  readonly manifest: webcrypto.JsonWebKey
  readonly bodies: string
}

function newKeys(): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  const file: KeyFile = { manifest: privateKey.export({ format: 'jwk' }), bodies: newSecret() }
  return `${JSON.stringify(file, null, 2)}\n`
}

function parseKeys(text: string, path: string): AuditKeys {
  try {
    const { manifest, bodies } = JSON.parse(text) as KeyFile
    if (!BODY_KEY.test(bodies)) throw new TypeError('no key for bodies')
    const privateKey = createPrivateKey({ key: manifest, format: 'jwk' })
    if (privateKey.asymmetricKeyType !== 'ed25519') throw new TypeError('no Ed25519 key')
    return {
      publicPem: createPublicKey(privateKey).export({ format: 'pem', type: 'spki' }),
      bodyKey: bodies,
      text,
      sign: (signed) => sign(null, Buffer.from(signed), privateKey).toString('base64url'),
    }
  } catch {
    // The cause is not passed on: its message may quote the text, which holds private keys.
    throw new KeyError(
      `The audit key file ${path} is damaged. Restore it from a backup. Without it, set \`audit.folder\` to a new ` +
        'folder: a new trail begins there, and the old one can still be verified.',
    )
  }
}

/** Reads a public key (PEM). Rejects with an Error whose message says why it cannot. */
export async function readPublicKey(path: string): Promise<KeyObject> {
  try {
    const key = createPublicKey(await readFile(path, 'utf8'))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw new Error(`${path} cannot be read as a public key: ${(cause as Error).message}`, { cause })
  }
  throw new Error(`${path} holds no Ed25519 key`)
}

/** Whether a signature of `AuditKeys.sign` is of this key. */
export const isAuditSignature = (text: string, signature: string, key: KeyObject): boolean =>
  verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))

/** The key of `hashBody`. Made once: a hash under a text costs 0.3 µs more. */
export const bodyKeyOf = (bodyKey: string): KeyObject => createSecretKey(Buffer.from(bodyKey))

/** The hash of a body under the deployment's key (C12.2.2): HMAC-SHA-256, base64url. */
export function hashBody(bodyKey: KeyObject): BodyHash {
  const hmac = createHmac('sha256', bodyKey)
  return { update: (bytes) => void hmac.update(bytes), digest: () => hmac.digest('base64url') }
}
