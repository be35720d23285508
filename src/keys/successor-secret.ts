import { createHash, createHmac } from 'node:crypto'
import type { SecretDeriver } from '../contracts/keys.ts'
import { Fault } from '../kernel/faults.ts'
import type { KeptSecret, KeyPlace } from './key-place.ts'

const ID_LENGTH = 8

/** Deterministic, one-way, 256 bits, base64url. */
export function createDeriver(secret: string): SecretDeriver {
  const secretId = createHash('sha256').update(secret).digest('base64url').slice(0, ID_LENGTH)
  return {
    secretId,
    isOf: (id) => id === secretId,
    derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
  }
}

/**
 * The secret that refresh tokens are made with (C6.1.7). It is kept as the signing keys are, and not as other records:
 * so nobody who has the store alone can make a token. If it is lost, all refresh tokens are refused, and people log in
 * again. If it is stolen, `postern keys rotate --compromised` replaces it and ends all families.
 */
export class SuccessorSecret implements SecretDeriver {
  readonly #place: KeyPlace
  #kept: KeptSecret
  #deriver: SecretDeriver
  /** Why it could not be read the last time. */
  #failure: unknown

  private constructor(place: KeyPlace, kept: KeptSecret) {
    this.#place = place
    this.#kept = kept
    this.#deriver = createDeriver(kept.text)
  }

  /** The first start makes the secret. Several processes that start at once agree on one. Rejects as KeyPlace does. */
  static async open(place: KeyPlace): Promise<SuccessorSecret> {
    return new SuccessorSecret(place, await place.secret())
  }

  get secretId(): string {
    return this.#deriver.secretId
  }

  isOf(secretId: string): boolean {
    if (this.#deriver.isOf(secretId)) return true
    if (this.#failure === undefined) return false
    throw new Fault('identity_unavailable', {
      detail: 'the secret of refresh tokens cannot be read, and this one is of another secret',
      cause: this.#failure,
    })
  }

  derive(text: string): string {
    return this.#deriver.derive(text)
  }

  /**
   * Reads the secret again, and makes a new one if it is lost. Resolves with whether the secret changed. Rejects as
   * KeyPlace does; the secret in memory stays in use then.
   */
  async refresh(): Promise<boolean> {
    const before = this.#kept
    this.#kept = await this.#place.secret(before).catch((thrown: unknown) => {
      this.#failure = thrown
      throw thrown
    })
    this.#failure = undefined
    if (this.#kept.text === before.text) return false
    this.#deriver = createDeriver(this.#kept.text)
    return true
  }
}
