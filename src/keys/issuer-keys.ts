import type { Recorder } from '../contracts/recorder.ts'
import type { Clock } from '../kernel/clock.ts'
import type { IssuerConfig } from './issuers-config.ts'
import { ForeignKeys, type KeysState } from './foreign-keys.ts'
import { fetchJwks } from './key-set-reader.ts'

export interface IssuerCondition {
  readonly issuer: string
  readonly state: KeysState
}

/** What the keys depend on: the issuer, and where its key set is. */
type Source = Pick<IssuerConfig, 'issuer' | 'jwks'>

/**
 * The keys of all foreign issuers. They outlive a configuration: if `issuer` and `jwks` stay the same, a reload keeps
 * the keys, so that tokens are accepted even if the issuer is down at that moment.
 */
export class IssuerKeys {
  readonly #clock: Clock
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #opened = new Map<string, ForeignKeys>()
  #configured: readonly Source[] = []

  constructor(clock: Clock, recorder: Pick<Recorder, 'note'>) {
    this.#clock = clock
    this.#recorder = recorder
  }

  /** The keys of an issuer. The first call for an issuer starts reading them. */
  of({ issuer, jwks }: Source): ForeignKeys {
    const id = idOf({ issuer, jwks })
    const known = this.#opened.get(id)
    if (known !== undefined) return known
    const [clock, recorder] = [this.#clock, this.#recorder]
    const opened = new ForeignKeys({ issuer, fetchKeys: () => fetchJwks(jwks), clock, recorder })
    this.#opened.set(id, opened)
    opened.start()
    return opened
  }

  /** Closes the keys of all other issuers: tokens that they have verified are no longer accepted. */
  keepOnly(configured: readonly Source[]): void {
    this.#configured = configured
    const kept = new Set(configured.map(idOf))
    for (const [id, keys] of this.#opened) {
      if (kept.has(id)) continue
      keys.close()
      this.#opened.delete(id)
    }
  }

  /** The state of each issuer of the configuration in force. */
  conditions(): readonly IssuerCondition[] {
    return this.#configured.map((source) => ({
      issuer: source.issuer,
      state: this.#opened.get(idOf(source))?.state ?? 'unknown',
    }))
  }

  close(): void {
    this.keepOnly([])
  }
}

const idOf = ({ issuer, jwks }: Source): string => JSON.stringify([issuer, jwks])
