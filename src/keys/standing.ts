import type { KeyStanding } from '../contracts/keys.ts'

/**
 * The standing of one key, in the hands of whoever owns the key. It also remembers that somebody asked: a key set that
 * nobody uses need not be read again.
 */
export class Standing implements KeyStanding {
  #believed = true
  #asked = false

  isBelieved(): boolean {
    this.#asked = true
    return this.#believed
  }

  /** From now on nothing that this key has verified or signed is believed, wherever it is remembered. */
  end(): void {
    this.#believed = false
  }

  /** Whether somebody asked since the last time. */
  takeAsked(): boolean {
    const asked = this.#asked
    this.#asked = false
    return asked
  }
}
