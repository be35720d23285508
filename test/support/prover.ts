import { Buffer } from 'node:buffer'
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { type Clock, systemClock } from '../../src/base/kernel/clock.ts'
import { ALGORITHMS } from '../../src/identity/keys/verify/algorithms.ts'

type Members = Readonly<Record<string, unknown>>

/** Somebody who has a key and makes proofs with it (RFC 9449 §4.2). */
export interface Prover {
  readonly jwk: Members
  readonly jkt: string
  readonly privateKey: KeyObject
  /** @param header members in place of the usual ones; undefined takes one away */
  prove(claims: Members, header?: Members): string
}

const PAIRS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  Ed25519: () => generateKeyPairSync('ed25519'),
  EdDSA: () => generateKeyPairSync('ed25519'),
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Signs any header and any payload. */
export function signJwt(header: Members, payload: Members, key: KeyObject, algorithm = 'ES256'): string {
  const row = ALGORITHMS.get(algorithm)
  const input = `${part(header)}.${part(payload)}`
  const signature = sign(row?.hash ?? null, Buffer.from(input), { key, ...row?.options })
  return `${input}.${signature.toString('base64url')}`
}

export function prover(
  clock: Pick<Clock, 'now'> = systemClock,
  algorithm: keyof typeof PAIRS = 'ES256',
): Prover {
  const { privateKey, publicKey } = PAIRS[algorithm]()
  const jwk = publicKey.export({ format: 'jwk' }) as Members
  const sorted = Object.keys(jwk).sort()
  return {
    jwk,
    privateKey,
    jkt: hashOf(JSON.stringify(Object.fromEntries(sorted.map((name) => [name, jwk[name]])))),
    prove: (claims, header) =>
      signJwt(
        { typ: 'dpop+jwt', alg: algorithm, jwk, ...header },
        { jti: randomUUID(), iat: Math.floor(clock.now() / 1000), ...claims },
        privateKey,
        algorithm,
      ),
  }
}
