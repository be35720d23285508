import { sign as signBytes, createPrivateKey, type KeyObject } from 'node:crypto'
import type { TokenPolicy } from '../../src/base/contracts/people/keys.ts'
import type { SigningAlgorithm } from '../../src/base/contracts/people/people.ts'
import type { Clock } from '../../src/base/kernel/clock.ts'
import { KeyRing } from '../../src/identity/keys/signing/key-ring.ts'
import type { RotationPlan } from '../../src/identity/keys/signing/schedule.ts'
import type { Jwk } from '../../src/base/kernel/jwk.ts'
import { generatePrivateJwk } from '../../src/identity/keys/verify/signatures.ts'
import { toSigningKey } from '../../src/identity/keys/signing/stored-key.ts'

/** The time of these tests, in seconds since the epoch. */
export const NOW = 1_800_000_000

export const clockAt = (seconds: number): Clock => ({ now: () => seconds * 1000, monotonic: () => 0 })

export const ROTATION: RotationPlan = {
  automatic: true,
  every: 30 * 86_400,
  announce: 86_400,
  longestLife: 86_400,
}

export const POLICY: TokenPolicy = {
  issuer: 'https://id.example',
  audience: 'https://api.example',
  typ: ['at+jwt'],
  algorithms: ['ES256', 'RS256'],
  leeway: 0,
}

export const CLAIMS = {
  iss: POLICY.issuer,
  aud: POLICY.audience,
  sub: 'alice',
  iat: NOW - 10,
  exp: NOW + 890,
}

export const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** A key ring with its private keys, to sign by hand what the ring itself would never sign. */
export interface World {
  readonly ring: KeyRing
  readonly kid: Readonly<Record<SigningAlgorithm, string>>
  readonly privateKey: Readonly<Record<SigningAlgorithm, KeyObject>>
  readonly jwk: Readonly<Record<SigningAlgorithm, Jwk>>
}

export async function makeWorld(): Promise<World> {
  const jwk = { ES256: await generatePrivateJwk('ES256'), RS256: await generatePrivateJwk('RS256') }
  const [es, rs] = [await toSigningKey(jwk.ES256, 'ES256'), await toSigningKey(jwk.RS256, 'RS256')]
  const object = (key: Jwk): KeyObject => createPrivateKey({ key: { ...key }, format: 'jwk' })
  return {
    jwk,
    kid: { ES256: es.kid, RS256: rs.kid },
    privateKey: { ES256: object(jwk.ES256), RS256: object(jwk.RS256) },
    ring: new KeyRing({
      published: [es, rs],
      signing: new Map([
        ['ES256', es],
        ['RS256', rs],
      ]),
    }),
  }
}

/** A genuine signature for any header and payload: objects, or text that is used as it is. */
export function forge(
  world: World,
  header: unknown,
  payload: unknown,
  algorithm: SigningAlgorithm = 'ES256',
): string {
  const input = `${encode(header)}.${encode(payload)}`
  const key = { key: world.privateKey[algorithm], dsaEncoding: 'ieee-p1363' as const }
  return `${input}.${signBytes('sha256', Buffer.from(input), key).toString('base64url')}`
}
