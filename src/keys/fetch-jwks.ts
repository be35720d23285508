import type { Jwk } from './signatures.ts'

const TIMEOUT_MS = 5_000
/** Bytes: some hundreds of RSA keys. */
const LARGEST = 256 * 1024

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > LARGEST) throw new RangeError('the key set is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const isKey = (value: unknown): value is Jwk =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a JWK Set (RFC 7517 §5) from an address. Redirects are not followed: who else may serve keys is not theirs to say. */
export async function fetchJwks(url: string): Promise<readonly Jwk[]> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (response.status !== 200) throw new Error(`the key set answered ${response.status}`)
  const { keys } = JSON.parse(await readBounded(response)) as { keys?: unknown }
  if (!Array.isArray(keys)) throw new TypeError('the key set has no keys')
  return keys.filter(isKey)
}
