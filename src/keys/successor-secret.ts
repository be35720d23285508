import { createHash, createHmac } from 'node:crypto'
import type { SecretDeriver } from '../contracts/keys.ts'
import type { KeptSecret, KeyPlace } from './key-place.ts'

const ID_LENGTH = 8

/** Deterministic, one-way, 256 bits, base64url. */
export const createDeriver = (secret: string): SecretDeriver => ({
  secretId: createHash('sha256').update(secret).digest('base64url').slice(0, ID_LENGTH),
  derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
})

/**
 * The secret that refresh tokens are made with (C6.1.7). It is kept as the signing keys are, and not as other records:
 * so nobody who has the store alone can make a token. If it is lost, all refresh tokens are refused, and people log in
 * again. If it is stolen, `postern keys rotate --compromised` replaces it and ends all families.
 */
export class SuccessorSecret implements SecretDeriver {
  readonly #place: KeyPlace
  #kept: KeptSecret
  #deriver: SecretDeriver

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

  derive(text: string): string {
    return this.#deriver.derive(text)
  }

  /**
   * Reads the secret again, and makes a new one if it is lost. Resolves with whether the secret changed. Rejects as
   * KeyPlace does; the secret in memory stays in use then.
   */
  async refresh(): Promise<boolean> {
    const before = this.#kept
    this.#kept = await this.#place.secret(before)
    if (this.#kept.text === before.text) return false
    this.#deriver = createDeriver(this.#kept.text)
    return true
  }
}
