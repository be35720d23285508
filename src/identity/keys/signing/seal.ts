import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { SealedText } from '../../../base/contracts/people/keys.ts'
import { KeyError, MissingSeal } from '../../../base/kernel/key-error.ts'

/** A key that seals others, as the configuration has it. */
export interface SealKey {
  /** Stands with everything that was sealed with it, unsealed. */
  readonly id: string
  /** 32 bytes in base64 or base64url. */
  readonly key: string
}

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
/** As NIST SP 800-38D §8.2.2 asks for drawn nonces: a seal is good for 2^32 sealings, and a key is sealed a few times. */
const NONCE_BYTES = 12
const TAG_BYTES = 16

const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/

/** Undefined if the text is no key: 32 bytes in base64 or base64url, as `openssl rand -base64 32` prints them. */
export function sealBytes(key: string): Buffer | undefined {
  const text = key.trim()
  const bytes = BASE64.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0)
  return bytes.length === KEY_BYTES ? bytes : undefined
}

const isSealed = (value: object): value is SealedText =>
  ['seal', 'nonce', 'text'].every((member) => typeof (value as Record<string, unknown>)[member] === 'string')

/** The id of the seal of a kept value; undefined if it is not sealed. */
export const sealOf = (value: object): string | undefined => (isSealed(value) ? value.seal : undefined)

/** AES-256-GCM; the tag covers the place too. The first of the seals seals, each opens what it has sealed. */
export class Seals {
  readonly #keys: ReadonlyMap<string, Buffer>
  /** The id of the seal that seals. */
  readonly first: string

  /** @throws KeyError if there is no seal, or one is no key */
  constructor(seals: readonly SealKey[]) {
    this.#keys = new Map(seals.map(({ id, key }) => [id, requireBytes(id, key)]))
    const [first] = seals
    if (first === undefined) throw new KeyError('There is no seal for the keys. Set `store.seal`.')
    this.first = first.id
  }

  /** @param place where the text will be stored: store, kind and key of its record */
  seal(text: string, place: readonly string[]): SealedText {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key(this.first, place), nonce, {
      authTagLength: TAG_BYTES,
    })
    cipher.setAAD(bytesOf(place))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { seal: this.first, nonce: nonce.toString('base64url'), text: sealed.toString('base64url') }
  }

  /** @throws KeyError that says which seal is missing, or that the value was changed */
  open(value: object, place: readonly string[]): string {
    if (!isSealed(value)) throw notOpened(place, 'the record is damaged')
    const key = this.#key(value.seal, place)
    const sealed = Buffer.from(value.text, 'base64url')
    try {
      const nonce = Buffer.from(value.nonce, 'base64url')
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(bytesOf(place))
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
      const text = decipher.update(sealed.subarray(0, -TAG_BYTES))
      return Buffer.concat([text, decipher.final()]).toString()
    } catch {
      throw notOpened(place, `the record was changed, or the seal ${value.seal} has another key here`)
    }
  }

  #key(id: string, place: readonly string[]): Buffer {
    const key = this.#keys.get(id)
    if (key !== undefined) return key
    const reason = `it is sealed with the seal ${id}, which \`store.seal\` does not have`
    throw new MissingSeal(notOpened(place, reason).message, id)
  }
}

/** As JSON, so that no two places give the same bytes. */
const bytesOf = (place: readonly string[]): Buffer => Buffer.from(JSON.stringify(place))

function requireBytes(id: string, key: string): Buffer {
  const bytes = sealBytes(key)
  if (bytes === undefined) throw new KeyError(`The seal ${id} of \`store.seal\` is no key: ${SEAL_ADVICE}.`)
  return bytes
}

export const SEAL_ADVICE = 'it must be 32 bytes, as `openssl rand -base64 32` prints them'

const notOpened = (place: readonly string[], reason: string): KeyError =>
  new KeyError(
    `${place.slice(1).join(' ')} of the store cannot be opened: ${reason}. Restore the seal. If it is lost for good, ` +
      '`postern keys rotate --compromised` makes new keys; then everything issued before is refused.',
  )
