import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { isFetchable } from '../../../base/kernel/listen-address.ts'
import { fetchJsonBytes, UnexpectedStatus } from '../remote/fetch-json.ts'
import { fetchJwks } from '../remote/key-set-reader.ts'
import type { Jwk } from '../../../base/kernel/jwk.ts'

interface IssuerSourceParts {
  readonly issuer: string
  /** The URL of its key set. Undefined: the metadata says it. */
  readonly jwks: string | undefined
  /** The member of the metadata that is read besides that of the keys; undefined: none. */
  readonly endpoint: string | undefined
  readonly recorder: Pick<Recorder, 'note'>
}

/** Where only the metadata says where the keys are, it is read each time: no rotation causes a wrong 401. */
export class IssuerSource {
  readonly #parts: IssuerSourceParts
  /** The one that had the metadata last comes first. */
  #urls: readonly string[]
  #jwksUri: string | undefined
  #endpoint: string | undefined
  /** The last reason why the metadata was refused. Each is logged once. */
  #refused: string | undefined

  constructor(parts: IssuerSourceParts) {
    this.#parts = parts
    this.#urls = metadataUrls(parts.issuer)
  }

  /** As the metadata says; undefined if it was never read, or says nothing. */
  get endpoint(): string | undefined {
    return this.#endpoint
  }

  /** Rejects with an Error if the metadata or the key set cannot be read. */
  async fetchKeys(): Promise<readonly Jwk[]> {
    const { jwks, endpoint } = this.#parts
    if (jwks !== undefined && endpoint === undefined) return fetchJwks(jwks)
    await this.#readMetadata()
    const url = jwks ?? this.#jwksUri
    if (url !== undefined) return fetchJwks(url)
    // An issuer whose tokens are all opaque has no keys (RFC 8414 §2).
    if (endpoint !== undefined) return []
    throw this.#refuse(new MetadataRefused('its metadata has no `jwks_uri`'))
  }

  async #readMetadata(): Promise<void> {
    const { issuer, recorder } = this.#parts
    const { url, jwksUri, endpoint } = await this.#fetchWanted().catch((thrown: unknown) => {
      throw thrown instanceof MetadataRefused ? this.#refuse(thrown) : thrown
    })
    this.#refused = undefined
    this.#urls = [url, ...this.#urls.filter((other) => other !== url)]
    if (this.#jwksUri !== undefined && jwksUri !== this.#jwksUri)
      recorder.note('info', 'issuer_keys_moved', { issuer })
    this.#jwksUri = jwksUri
    this.#endpoint = endpoint
  }

  /** Only the addresses that the configuration does not say. */
  async #fetchWanted() {
    const { issuer, jwks, endpoint } = this.#parts
    const { url, addressAt } = await fetchMetadata(issuer, this.#urls)
    return {
      url,
      jwksUri: jwks === undefined ? addressAt('jwks_uri') : undefined,
      endpoint: endpoint === undefined ? undefined : addressAt(endpoint),
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

/** How long both addresses together may take, in milliseconds. */
const TIMEOUT = 5_000
/** The largest metadata, in bytes. That of large issuers has some 10 KB. */
const LARGEST = 128 * 1024

/**
 * The part of an issuer's metadata that is used (OpenID Connect Discovery 1.0 §3, RFC 8414 §2). An address is judged when
 * it is wanted, so that one which nobody uses is no reason to refuse the others. Undefined: there is none.
 */
interface IssuerMetadata {
  /** @throws MetadataRefused */
  readonly addressAt: (member: string) => string | undefined
}

/** The metadata says something that this issuer may not say. The message says what; it holds nothing secret. */
export class MetadataRefused extends Error {
  override readonly name = 'MetadataRefused'
}

/** Where an issuer's metadata may be: OpenID Connect Discovery 1.0 §4, then RFC 8414 §3.1. */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/**
 * Reads an issuer's metadata. `urls` are tried in their order; the next one only if there is nothing at the one before.
 * Resolves with the URL that had it, too. Rejects with MetadataRefused, or with another Error if it cannot be read.
 */
export async function fetchMetadata(
  issuer: string,
  urls: readonly string[],
): Promise<IssuerMetadata & { readonly url: string }> {
  const signal = AbortSignal.timeout(TIMEOUT)
  let missing: unknown
  for (const url of urls) {
    try {
      const what = 'the metadata'
      const bytes = await fetchJsonBytes({ url, what, accept: 'application/json', largest: LARGEST, signal })
      return { ...readMetadata(bytes, issuer), url }
    } catch (thrown) {
      if (!(thrown instanceof UnexpectedStatus)) throw thrown
      missing ??= thrown
    }
  }
  throw missing
}

function readMetadata(bytes: Buffer, issuer: string): IssuerMetadata {
  const metadata: unknown = JSON.parse(bytes.toString())
  if (typeof metadata !== 'object' || metadata === null) throw new TypeError('the metadata is no JSON object')
  const members = metadata as Readonly<Record<string, unknown>>
  // Otherwise one issuer could name the keys for the tokens of another (RFC 8414 §3.3).
  if (members['issuer'] !== issuer)
    throw new MetadataRefused(`its metadata has another \`issuer\`: ${shortened(members['issuer'])}`)
  return { addressAt: (member) => addressIn(members, member, issuer) }
}

const MOST_SHOWN = 200
const shortened = (value: unknown): string =>
  value === undefined ? 'none' : JSON.stringify(value).slice(0, MOST_SHOWN)

/**
 * An address of the metadata. https to any host; http only on this machine, and only if the issuer is on this machine
 * too: no issuer elsewhere may make this service call what listens here (T3.5).
 */
function addressIn(
  members: Readonly<Record<string, unknown>>,
  name: string,
  issuer: string,
): string | undefined {
  const value = members[name]
  if (value === undefined) return undefined
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || url.username !== '' || url.password !== '')
    throw new MetadataRefused(`\`${name}\` of its metadata is no URL`)
  const isSafe = url.protocol === 'https:' || (isFetchable(url.href) && isHttp(issuer))
  if (!isSafe) throw new MetadataRefused(`\`${name}\` of its metadata is not https: ${shortened(value)}`)
  return url.href
}

/** Such an issuer is on this machine: the configuration allows no other. */
const isHttp = (issuer: string): boolean => issuer.startsWith('http:')
