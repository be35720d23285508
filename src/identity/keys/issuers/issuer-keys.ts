import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { IssuerConfig } from './issuers-schema.ts'
import { ForeignKeys, type KeysState } from './foreign-keys.ts'
import { IssuerSource } from './issuer-source.ts'
import { Introspector } from './introspection.ts'

export interface IssuerCondition {
  readonly issuer: string
  readonly state: KeysState
  /** Whether its opaque tokens can be judged without its keys and its metadata. */
  readonly introspects: boolean
}

type Source = Pick<IssuerConfig, 'issuer' | 'jwks' | 'introspection'>

/** They outlive a configuration: a reload keeps what is the same, since an issuer may be down at that moment. */
export class IssuerKeys {
  readonly #clock: Clock
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #opened = new Map<string, ForeignKeys>()
  readonly #introspectors = new Map<string, Introspector>()
  #configured: readonly Source[] = []

  constructor(clock: Clock, recorder: Pick<Recorder, 'note'>) {
    this.#clock = clock
    this.#recorder = recorder
  }

  /** The keys of an issuer. The first call for an issuer starts reading them. */
  of(source: Source): ForeignKeys {
    const { issuer, jwks } = source
    const id = idOf(source)
    const known = this.#opened.get(id)
    if (known !== undefined) return known
    const [clock, recorder] = [this.#clock, this.#recorder]
    const found = new IssuerSource({ issuer, jwks, introspects: asksForEndpoint(source), recorder })
    const opened = new ForeignKeys({
      issuer,
      fetchKeys: () => found.fetchKeys(),
      introspectionEndpoint: () => found.introspectionEndpoint,
      clock,
      recorder,
    })
    this.#opened.set(id, opened)
    opened.start()
    return opened
  }

  introspectorOf(source: Source): Introspector | undefined {
    const { issuer, introspection } = source
    if (introspection === undefined) return undefined
    const id = introspectionIdOf(source)
    const known = this.#introspectors.get(id)
    if (known !== undefined) return known
    const { url, clientId, clientSecret } = introspection
    const [clock, recorder] = [this.#clock, this.#recorder]
    const endpoint = (): Promise<string> =>
      url === undefined ? this.of(source).introspectionEndpoint() : Promise.resolve(url)
    const opened = new Introspector({ issuer, endpoint, clientId, clientSecret, clock, recorder })
    this.#introspectors.set(id, opened)
    return opened
  }

  /** Closes the keys of all other issuers: tokens that they have verified are no longer accepted. */
  keepOnly(configured: readonly Source[]): void {
    this.#configured = configured
    closeOthers(this.#opened, new Set(configured.map(idOf)))
    closeOthers(this.#introspectors, new Set(configured.map(introspectionIdOf)))
  }

  conditions(): readonly IssuerCondition[] {
    return this.#configured.map((source) => ({
      issuer: source.issuer,
      state: this.#opened.get(idOf(source))?.state ?? 'unknown',
      introspects: source.introspection?.url !== undefined,
    }))
  }

  close(): void {
    this.keepOnly([])
  }
}

function closeOthers(opened: Map<string, { close(): void }>, kept: ReadonlySet<string>): void {
  for (const [id, part] of opened) {
    if (kept.has(id)) continue
    part.close()
    opened.delete(id)
  }
}

/** Whether the metadata must say where tokens are introspected. */
const asksForEndpoint = ({ introspection }: Source): boolean =>
  introspection !== undefined && introspection.url === undefined

const idOf = (source: Source): string =>
  JSON.stringify([source.issuer, source.jwks ?? '', asksForEndpoint(source)])

const introspectionIdOf = (source: Source): string =>
  JSON.stringify([idOf(source), source.introspection ?? {}])
