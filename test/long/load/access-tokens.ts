import { createPrivateKey, randomUUID, sign, type webcrypto } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = ''): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>

const HASHES = { ES256: 'sha256', RS256: 'sha256' } as const

interface Issuer {
  readonly origin: string
  /** The folder of its private keys. */
  readonly keys: string
  /** A token of its own. */
  readonly headers: Readonly<Record<string, string>>
}

async function kidOf({ origin }: Issuer, algorithm: string): Promise<string | undefined> {
  const response = await fetch(`${origin}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as {
    keys: readonly { readonly alg: string; readonly kid: string }[]
  }
  return keys.find(({ alg }) => alg === algorithm)?.kid
}

/**
 * Tokens that say what the issuer's own says and differ in their `jti`, signed with the service's own key: asking for as
 * many would measure the hashing of passwords.
 */
export async function forgeTokens(
  issuer: Issuer,
  algorithm: keyof typeof HASHES,
  count: number,
): Promise<readonly string[]> {
  const [header, claims] = (issuer.headers['Authorization'] ?? '').slice(7).split('.', 2).map(decode)
  const text = await readFile(join(issuer.keys, `${algorithm}-1.jwk`), 'utf8')
  const jwk = JSON.parse(text) as webcrypto.JsonWebKey
  const key = { key: createPrivateKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' as const }
  const head = encode({ ...header, alg: algorithm, kid: await kidOf(issuer, algorithm) })
  return Array.from({ length: count }, () => {
    const signed = `${head}.${encode({ ...claims, jti: randomUUID() })}`
    return `${signed}.${sign(HASHES[algorithm], Buffer.from(signed), key).toString('base64url')}`
  })
}
