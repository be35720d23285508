import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Jwk, rsaWeakness } from '../../../src/base/kernel/jwk.ts'
import {
  accessTokenHash,
  fitsAlgorithm,
  generatePrivateJwk,
  importPrivateKey,
  importPublicKey,
  isSignedBy,
  publicPart,
} from '../../../src/identity/keys/verify/signatures.ts'

/** A number of so many bits, as RFC 7518 §2 writes it. */
function modulus(bits: number, zeros = 0): string {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff)
  bytes[0] = 0xff >> (bytes.length * 8 - bits)
  return Buffer.concat([Buffer.alloc(zeros), bytes]).toString('base64url')
}
const number = (...bytes: readonly number[]): string => Buffer.from(bytes).toString('base64url')
const F4 = number(1, 0, 1)

it('C6.1.8 at_hash is that of the example in OIDC Core, appendix A.3', () => {
  expect(accessTokenHash('jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y', 'RS256')).toBe(
    '77QmUPtjPfzWtF2AnpK9RQ',
  )
})

describe('T3.1 a weak RSA key', () => {
  it('T3.1 has less than 2048 bits, leading zeros not counted', () => {
    for (const n of [modulus(2048), modulus(2049), modulus(2048, 3), modulus(4096)])
      expect(rsaWeakness({ n, e: F4 })).toBeUndefined()
    for (const n of [
      modulus(2047),
      modulus(2041),
      modulus(2040),
      modulus(1024, 200),
      '',
      number(0, 0),
      7,
      undefined,
    ])
      expect(rsaWeakness({ n, e: F4 })).toMatch(/2048/)
  })

  it('T3.1 has an even exponent, or 1', () => {
    const n = modulus(2048)
    for (const e of [F4, number(3), number(0, 3), number(1, 1)]) expect(rsaWeakness({ n, e })).toBeUndefined()
    for (const e of [number(2), number(1, 0), number(0), '', undefined])
      expect(rsaWeakness({ n, e })).toMatch(/even/)
    for (const e of [number(1), number(0, 0, 1)]) expect(rsaWeakness({ n, e })).toMatch(/is 1/)
  })

  it('T5.19 an exponent that makes a verification slow is unfit too, leading zeros not counted', async () => {
    const n = modulus(2048)
    for (const e of [number(255, 255, 255, 255), number(0, 0, 1, 0, 1)])
      expect(rsaWeakness({ n, e })).toBeUndefined()
    for (const e of [number(1, 0, 0, 0, 1), n]) {
      expect(rsaWeakness({ n, e })).toMatch(/more than 32 bits/)
      await expect(importPublicKey({ kty: 'RSA', n, e }, 'RS256')).rejects.toThrow(/more than 32 bits/)
    }
  })

  it('T3.1 is not imported, however its numbers are written', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const jwk = publicKey.export({ format: 'jwk' }) as Jwk
    await expect(importPublicKey(jwk, 'RS256')).rejects.toThrow(/2048/)
  })
})

describe('the algorithm of a key', () => {
  const EC: Jwk = { kty: 'EC', crv: 'P-256' }

  it('T3.1 fits by type and curve, and by the algorithm and use that the key names', () => {
    expect(fitsAlgorithm(EC, 'ES256')).toBe(true)
    expect(fitsAlgorithm({ ...EC, alg: 'ES256', use: 'sig' }, 'ES256')).toBe(true)
    expect(fitsAlgorithm({ ...EC, alg: 'ES384' }, 'ES256')).toBe(false)
    expect(fitsAlgorithm({ ...EC, use: 'enc' }, 'ES256')).toBe(false)
    expect(fitsAlgorithm({ ...EC, crv: 'P-384' }, 'ES256')).toBe(false)
    expect(fitsAlgorithm({ ...EC, kty: 'RSA' }, 'ES256')).toBe(false)
    expect(fitsAlgorithm({ kty: 'RSA' }, 'PS512')).toBe(true)
    for (const algorithm of ['none', 'HS256', '']) expect(fitsAlgorithm(EC, algorithm)).toBe(false)
  })

  it('T3.1 that a key does not fit is not imported, neither half of it', async () => {
    const jwk = await generatePrivateJwk('ES256')
    await expect(importPublicKey(jwk, 'RS256')).rejects.toThrow(/RS256/)
    await expect(importPrivateKey({ ...jwk, use: 'enc' }, 'ES256')).rejects.toThrow(/ES256/)
    await expect(importPrivateKey(publicPart(jwk, 'ES256'), 'ES256')).rejects.toThrow(/private/)
  })

  it('T7 the private half cannot be read again, and the public half never has private members', async () => {
    const jwk = await generatePrivateJwk('ES256')
    expect((await importPrivateKey(jwk, 'ES256')).extractable).toBe(false)
    expect(Object.keys(publicPart(jwk, 'ES256'))).toEqual(['kty', 'crv', 'x', 'y'])
    expect((await importPublicKey(jwk, 'ES256')).input.key).toMatchObject({ type: 'public' })
  })

  it('C4.15 a key that cannot be used rejects, and says nothing about the signature', async () => {
    const jwk = await generatePrivateJwk('ES256')
    const key = await importPublicKey(jwk, 'ES256')
    expect(await isSignedBy(`e30.e30.${'A'.repeat(86)}`, key, 'ES256')).toBe(false)
    const token = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.AAAA`
    await expect(isSignedBy(token, key, 'RS256')).rejects.toThrow(TypeError)
  })
})
