import type { Recorder } from '../contracts/recorder.ts'
import { fetchMetadata, MetadataRefused, metadataUrls } from './issuer-metadata.ts'
import { fetchJwks } from './key-set-reader.ts'
import type { Jwk } from './signatures.ts'

export interface IssuerSourceParts {
  /** Its `iss`. */
  readonly issuer: string
  /** The URL of its key set. Undefined: the metadata says it. */
  readonly jwks: string | undefined
  /** Whether the metadata must be read for the address of introspection. */
  readonly introspects: boolean
  readonly recorder: Pick<Recorder, 'note'>
}

/**
 * Reads the keys of an issuer. Where the configuration does not say where they are, the metadata is read first, each
 * time: a key set that has moved is found at once, so no rotation causes a wrong 401.
 */
export class IssuerSource {
  readonly #parts: IssuerSourceParts
  /** The one that had the metadata last comes first. */
  #urls: readonly string[]
  #jwksUri: string | undefined
  #introspectionEndpoint: string | undefined
  /** The last reason why the metadata was refused. Each is logged once. */
  #refused: string | undefined

  constructor(parts: IssuerSourceParts) {
    this.#parts = parts
    this.#urls = metadataUrls(parts.issuer)
  }

  /** As the metadata says; undefined if it was never read, or says nothing. */
  get introspectionEndpoint(): string | undefined {
    return this.#introspectionEndpoint
  }

  /** Rejects with an Error if the metadata or the key set cannot be read. */
  async fetchKeys(): Promise<readonly Jwk[]> {
    const { jwks, introspects } = this.#parts
    if (jwks !== undefined && !introspects) return fetchJwks(jwks)
    await this.#readMetadata()
    const url = jwks ?? this.#jwksUri
    if (url !== undefined) return fetchJwks(url)
    // An issuer whose tokens are all opaque has no keys (RFC 8414 §2).
    if (introspects) return []
    throw this.#refuse(new MetadataRefused('its metadata has no `jwks_uri`'))
  }

  async #readMetadata(): Promise<void> {
    const { issuer, recorder } = this.#parts
    const { url, jwksUri, introspectionEndpoint } = await this.#fetchWanted().catch((thrown: unknown) => {
      throw thrown instanceof MetadataRefused ? this.#refuse(thrown) : thrown
    })
    this.#refused = undefined
    this.#urls = [url, ...this.#urls.filter((other) => other !== url)]
    if (this.#jwksUri !== undefined && jwksUri !== this.#jwksUri)
      recorder.note('info', 'issuer_keys_moved', { issuer })
    this.#jwksUri = jwksUri
    this.#introspectionEndpoint = introspectionEndpoint
  }

  /** Only the addresses that the configuration does not say. */
  async #fetchWanted() {
    const { issuer, jwks, introspects } = this.#parts
    const { url, ...metadata } = await fetchMetadata(issuer, this.#urls)
    return {
      url,
      jwksUri: jwks === undefined ? metadata.jwksUri() : undefined,
      introspectionEndpoint: introspects ? metadata.introspectionEndpoint() : undefined,
    }
  }

  #refuse(refusal: MetadataRefused): MetadataRefused {
    const { issuer, recorder } = this.#parts
    const reason = refusal.message
    if (reason !== this.#refused) recorder.note('error', 'issuer_metadata_refused', { issuer, reason })
    this.#refused = reason
    return refusal
  }
}
