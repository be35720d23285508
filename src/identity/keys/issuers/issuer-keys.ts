import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { IssuerConfig } from './issuers-schema.ts'
import { ForeignKeys, type KeysState } from './foreign-keys.ts'
import { IssuerSource } from './issuer-source.ts'
import type { FindOpaqueTokens, OpaqueVerifier } from './opaque-tokens.ts'

export interface IssuerCondition {
  readonly issuer: string
  readonly state: KeysState
  /** Whether it has tokens that are verified without its keys and its metadata. */
  readonly worksWithout: boolean
}

type Source = Pick<IssuerConfig, 'issuer' | 'jwks'>

/** They outlive a configuration: a reload keeps unchanged ones, because an issuer may be down at that moment. */
export class IssuerKeys {
  readonly #clock: Clock
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #opened = new Map<string, ForeignKeys>()
  readonly #opaque = new Map<string, OpaqueVerifier>()
  readonly #findOpaque: FindOpaqueTokens
  #configured: readonly Source[] = []

  constructor(clock: Clock, recorder: Pick<Recorder, 'note'>, findOpaque: FindOpaqueTokens) {
    this.#clock = clock
    this.#recorder = recorder
    this.#findOpaque = findOpaque
  }

  /** Whether an address is not given, so that it is looked for in the issuer's metadata. */
  readsMetadata(source: Source): boolean {
    return source.jwks === undefined || this.#findOpaque(source)?.endpoint !== undefined
  }

  /** The keys of an issuer. The first call for an issuer starts reading them. */
  of(source: Source): ForeignKeys {
    const { issuer, jwks } = source
    const id = this.#idOf(source)
    const known = this.#opened.get(id)
    if (known !== undefined) return known
    const [clock, recorder] = [this.#clock, this.#recorder]
    const found = new IssuerSource({ issuer, jwks, endpoint: this.#findOpaque(source)?.endpoint, recorder })
    const opened = new ForeignKeys({
      issuer,
      fetchKeys: () => found.fetchKeys(),
      endpoint: () => found.endpoint,
      clock,
      recorder,
    })
    this.#opened.set(id, opened)
    opened.start()
    return opened
  }

  /** Undefined if its opaque tokens are refused. */
  opaqueVerifierOf(source: Source): OpaqueVerifier | undefined {
    const tokens = this.#findOpaque(source)
    if (tokens === undefined) return undefined
    const id = this.#opaqueIdOf(source)
    const known = this.#opaque.get(id)
    if (known !== undefined) return known
    const [clock, recorder] = [this.#clock, this.#recorder]
    const endpoint = (): Promise<string> => this.of(source).endpoint()
    const opened = tokens.open({ issuer: source.issuer, endpoint, clock, recorder })
    this.#opaque.set(id, opened)
    return opened
  }

  /** Closes the keys of all other issuers: tokens that they have verified are no longer accepted. */
  keepOnly(configured: readonly Source[]): void {
    this.#configured = configured
    closeOthers(this.#opened, new Set(configured.map((source) => this.#idOf(source))))
    closeOthers(this.#opaque, new Set(configured.map((source) => this.#opaqueIdOf(source))))
  }

  conditions(): readonly IssuerCondition[] {
    return this.#configured.map((source) => {
      const opaque = this.#findOpaque(source)
      return {
        issuer: source.issuer,
        state: this.#opened.get(this.#idOf(source))?.state ?? 'unknown',
        worksWithout: opaque !== undefined && opaque.endpoint === undefined,
      }
    })
  }

  close(): void {
    this.keepOnly([])
  }

  #idOf(source: Source): string {
    return JSON.stringify([
      source.issuer,
      source.jwks ?? '',
      this.#findOpaque(source)?.endpoint !== undefined,
    ])
  }

  #opaqueIdOf(source: Source): string {
    return JSON.stringify([this.#idOf(source), this.#findOpaque(source)?.id])
  }
}

function closeOthers(opened: Map<string, { close(): void }>, kept: ReadonlySet<string>): void {
  for (const [id, part] of opened) {
    if (kept.has(id)) continue
    part.close()
    opened.delete(id)
  }
}
