/** Signatures are verified by node:crypto. jose, by Web Crypto, is what its verdicts are compared with. */
import { constants, generateKeyPairSync, hash, type KeyObject, privateEncrypt, sign } from 'node:crypto'
import fc from 'fast-check'
import { compactVerify, importJWK } from 'jose'
import { describe, expect, it } from 'vitest'
import { ALGORITHMS } from '../../../src/identity/keys/verify/algorithms.ts'
import type { Jwk } from '../../../src/base/kernel/jwk.ts'
import { importPublicKey, isSignedBy, type PublicKey } from '../../../src/identity/keys/verify/signatures.ts'
import { parseCompactToken } from '../../../src/identity/keys/verify/token-verifier.ts'
import { sized } from '../../support/long.ts'
import { encode } from '../../support/keys-for-tests.ts'
import wycheproof from './wycheproof.json' with { type: 'json' }

interface Signer {
  readonly algorithm: string
  readonly privateKey: KeyObject
  readonly publicKey: PublicKey
  readonly reference: Awaited<ReturnType<typeof importJWK>>
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pairOf = (algorithm: string): { privateKey: KeyObject; publicKey: KeyObject } => {
  const { kty, crv = '' } = ALGORITHMS.get(algorithm) ?? {}
  if (kty === 'RSA') return rsa
  return kty === 'EC' ? generateKeyPairSync('ec', { namedCurve: crv }) : generateKeyPairSync('ed25519')
}

async function makeSigner(algorithm: string): Promise<Signer> {
  const { privateKey, publicKey } = pairOf(algorithm)
  const jwk = publicKey.export({ format: 'jwk' }) as Jwk
  return {
    algorithm,
    privateKey,
    publicKey: await importPublicKey(jwk, algorithm),
    reference: await importJWK(jwk, algorithm),
  }
}

const signers = await Promise.all([...ALGORITHMS.keys()].map(makeSigner))

function signerOf(algorithm: string): Signer {
  const signer = signers.find((each) => each.algorithm === algorithm)
  if (signer === undefined) throw new Error(algorithm)
  return signer
}

function signatureOf(input: string, { algorithm, privateKey }: Signer): Buffer {
  const row = ALGORITHMS.get(algorithm)
  return sign(row?.hash ?? null, Buffer.from(input), { key: privateKey, ...row?.options })
}

function tokenOf(signer: Signer, payload: unknown): string {
  const input = `${encode({ alg: signer.algorithm, typ: 'at+jwt' })}.${encode(payload)}`
  return `${input}.${signatureOf(input, signer).toString('base64url')}`
}

/** `malformed`: refused before its signature is looked at, as it is in token-verifier.ts. */
async function verdictOf(token: string, { algorithm, publicKey }: Signer): Promise<boolean | 'malformed'> {
  try {
    const { header } = parseCompactToken(token)
    if (header['alg'] !== algorithm || 'crit' in header || 'b64' in header) return 'malformed'
  } catch {
    return 'malformed'
  }
  return isSignedBy(token, publicKey, algorithm)
}

const referenceOf = (token: string, { algorithm, reference }: Signer): Promise<boolean> =>
  compactVerify(token, reference, { algorithms: [algorithm] }).then(
    () => true,
    () => false,
  )

async function expectSame(token: string, signer: Signer): Promise<boolean | 'malformed'> {
  const [verdict, reference] = await Promise.all([verdictOf(token, signer), referenceOf(token, signer)])
  if (verdict !== 'malformed') expect([token, verdict]).toEqual([token, reference])
  return verdict
}

/** The orders of the curves: SEC 2, §2.4.2, §2.5.1, §2.6.1. */
const ORDERS: Readonly<Record<string, bigint>> = {
  'P-256': BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551'),
  'P-384': BigInt(`0x${'f'.repeat(48)}c7634d81f4372ddf581a0db248b0a77aecec196accc52973`),
  'P-521': BigInt(`0x1${'f'.repeat(64)}fa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`),
}
/** RFC 8032 §5.1. */
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

const numberOf = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex') || '0'}`)
const bytesOf = (value: bigint, length: number): Buffer =>
  Buffer.from(
    value
      .toString(16)
      .padStart(length * 2, '0')
      .slice(-length * 2),
    'hex',
  )

type Mutation = (signature: Buffer, random: number) => Buffer

const MUTATIONS: readonly Mutation[] = [
  (signature) => signature,
  (signature, random) => {
    const copy = Buffer.from(signature)
    const at = random % copy.length
    copy[at] = (copy[at] ?? 0) ^ (1 << ((random >> 12) % 8))
    return copy
  },
  (signature, random) => signature.subarray(0, random % signature.length),
  (signature, random) => signature.subarray(random % signature.length),
  (signature, random) => Buffer.concat([signature, Buffer.alloc(1 + (random % 70))]),
  (signature, random) => Buffer.concat([Buffer.alloc(1 + (random % 70)), signature]),
  (signature, random) => Buffer.alloc(signature.length, random % 3),
  (signature) => Buffer.alloc(signature.length, 0xff),
  (signature) => Buffer.from(signature).reverse(),
  (signature) =>
    Buffer.concat([signature.subarray(signature.length / 2), signature.subarray(0, signature.length / 2)]),
]

/** A token that was changed somewhere: in its signature, its text or its header. */
function mutated(signer: Signer, genuine: string, random: number): string {
  const [header = '', payload = '', signature = ''] = genuine.split('.')
  const kind = random % (MUTATIONS.length + 3)
  const mutation = MUTATIONS[kind]
  const rest = Math.floor(random / 16)
  if (mutation !== undefined)
    return `${header}.${payload}.${mutation(Buffer.from(signature, 'base64url'), rest).toString('base64url')}`
  if (kind === MUTATIONS.length) {
    const at = rest % genuine.length
    return genuine.slice(0, at) + 'A-.9~'.charAt(rest % 5) + genuine.slice(at + 1)
  }
  const alg = signers[rest % signers.length]?.algorithm
  const input = `${encode({ alg, typ: 'at+jwt', ...(rest % 3 === 0 && { crit: ['exp'] }) })}.${payload}`
  if (kind === MUTATIONS.length + 1) return `${input}.${signature}`
  return `${input}.${signatureOf(input, signer).toString('base64url')}`
}

describe('T3.1 a signature', () => {
  it.each(signers.map((signer) => [signer.algorithm, signer] as const))(
    'T3.1 of %s is verified as jose verifies it, whatever was changed in it',
    async (algorithm, signer) => {
      const isSlow = algorithm === 'ES384' || algorithm === 'ES512'
      const genuine = tokenOf(signer, { sub: 'alice' })
      expect(await expectSame(genuine, signer)).toBe(true)
      const verdicts = new Set<unknown>()
      const randoms = fc.sample(fc.nat(), {
        numRuns: isSlow ? sized(75, 150) : sized(500, 1_100),
        seed: 7,
      })
      for (const random of randoms) verdicts.add(await expectSame(mutated(signer, genuine, random), signer))
      expect(verdicts).toEqual(new Set([true, false, 'malformed']))
    },
  )

  it('T3.1 verifies with no other key and as no other algorithm', async () => {
    for (const signer of signers)
      for (const other of signers) {
        if (other === signer) continue
        const genuine = tokenOf(signer, {})
        await expect(isSignedBy(genuine, other.publicKey, signer.algorithm)).rejects.toThrow(TypeError)
        expect(await isSignedBy(genuine, other.publicKey, other.algorithm)).toBe(false)
      }
  })

  it('T3.1 of RS256 has one padding, with the name of its hash, and is less than the modulus', async () => {
    const signer = signerOf('RS256')
    const [header = '', payload = '', signature = ''] = tokenOf(signer, {}).split('.')
    const verdict = (bytes: Buffer): Promise<boolean | 'malformed'> =>
      expectSame(`${header}.${payload}.${bytes.toString('base64url')}`, signer)
    const digest = hash('sha256', `${header}.${payload}`, 'hex')
    /** RFC 8017 §9.2, and what forgeries make of it. */
    const block = (info: string, { start = '0001', fill = 'ff', end = '00', behind = '' } = {}): Buffer => {
      const fixed = (start + end + info + behind).length / 2
      return Buffer.from(start + fill.repeat(256 - fixed) + end + info + behind, 'hex')
    }
    const signed = (bytes: Buffer): Buffer =>
      privateEncrypt({ key: signer.privateKey, padding: constants.RSA_NO_PADDING }, bytes)
    const info = `3031300d060960864801650304020105000420${digest}`
    expect(signed(block(info)).toString('base64url')).toBe(signature)
    expect(await verdict(signed(block(info)))).toBe(true)
    for (const bad of [
      block(`302f300b06096086480165030402010420${digest}`), // the hash without its parameters
      block(`308131300d060960864801650304020105000420${digest}`), // a long form of a length
      block(`3031300d060960864801650304020205000420${digest}`), // the name of SHA-384
      block(`3031300d060960864801650304020105000420${digest.slice(0, -2)}00`),
      block(digest),
      block(info, { behind: '00' }),
      block(info, { behind: 'ab'.repeat(190) }),
      block(info, { start: '0002' }),
      block(info, { start: '0000' }),
      block(info, { fill: 'fe' }),
      block(info, { fill: '00' }),
      block(info, { end: 'ff' }),
    ])
      expect(await verdict(signed(bad))).toBe(false)
    const { n = '' } = rsa.publicKey.export({ format: 'jwk' })
    const modulus = numberOf(Buffer.from(n, 'base64url'))
    const value = numberOf(Buffer.from(signature, 'base64url'))
    for (const other of [0n, 1n, modulus - 1n, modulus, modulus - value, modulus + 1n])
      expect(await verdict(bytesOf(other, 256))).toBe(false)
    for (const length of [256, 257]) expect(await verdict(bytesOf(value + modulus, length))).toBe(false)
  })

  it('T3.1 of PS256 has a salt as long as its hash', async () => {
    const signer = signerOf('PS256')
    const input = `${encode({ alg: 'PS256', typ: 'at+jwt' })}.${encode({})}`
    for (const saltLength of [0, 1, 20, 31, 32, 33, 64, 222]) {
      const how = { key: signer.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }
      const signature = sign('sha256', Buffer.from(input), how)
      const verdict = await expectSame(`${input}.${signature.toString('base64url')}`, signer)
      expect(verdict).toBe(saltLength === 32)
    }
  })

  it.each(['ES256', 'ES384', 'ES512'])(
    'T3.1 of %s is two numbers of full length, below the order of the curve and not 0',
    async (algorithm) => {
      const signer = signerOf(algorithm)
      const { crv = '', length = 0 } = ALGORITHMS.get(algorithm) ?? {}
      const [size, order] = [length / 2, ORDERS[crv] ?? 0n]
      const [header, payload, signature = ''] = tokenOf(signer, {}).split('.')
      const bytes = Buffer.from(signature, 'base64url')
      const [r, s] = [numberOf(bytes.subarray(0, size)), numberOf(bytes.subarray(size))]
      const verdict = (first: bigint, second: bigint, width = size): Promise<boolean | 'malformed'> =>
        expectSame(
          `${header}.${payload}.${Buffer.concat([bytesOf(first, width), bytesOf(second, width)]).toString('base64url')}`,
          signer,
        )
      expect([await verdict(r, s), await verdict(r, order - s)]).toEqual([true, true])
      const special = [0n, 1n, 2n, order - 1n, order, order + 1n, 2n ** BigInt(size * 8) - 1n]
      for (const first of [...special, r])
        for (const second of special) expect(await verdict(first, second)).toBe(false)
      for (const second of special) expect(await verdict(second, s)).toBe(false)
      expect(await verdict(order - r, s)).toBe(false)
      for (const more of [order, 256n * order, 2n ** BigInt(size * 8), 2n ** BigInt(size * 8 + 64)]) {
        expect(await verdict(r + more, s, size + 9)).toBe(false)
        expect(await verdict(r, s + more, size + 9)).toBe(false)
      }
      expect([await verdict(r, s, size + 1), await verdict(r, s, size - 1)]).toEqual([false, false])
    },
  )

  it('T3.1 of Ed25519 has the one S that is below the order, and a point that is on the curve', async () => {
    const signer = signerOf('Ed25519')
    const [header, payload, signature = ''] = tokenOf(signer, {}).split('.')
    const bytes = Buffer.from(signature, 'base64url')
    const [point, scalar] = [bytes.subarray(0, 32), bytes.subarray(32)]
    const verdict = (...parts: readonly Buffer[]): Promise<boolean | 'malformed'> =>
      expectSame(`${header}.${payload}.${Buffer.concat(parts).toString('base64url')}`, signer)
    const moreBy = (more: bigint): Buffer =>
      bytesOf(numberOf(Buffer.from(scalar).reverse()) + more, 32).reverse()
    expect(await verdict(point, scalar)).toBe(true)
    for (const times of [1n, 2n, 8n]) expect(await verdict(point, moreBy(times * ED25519_ORDER))).toBe(false)
    expect(await verdict(point, moreBy(2n ** 255n))).toBe(false)
    for (const small of [0n, 1n, 2n ** 255n - 19n, 2n ** 255n - 20n, 2n ** 256n - 1n]) {
      expect(await verdict(bytesOf(small, 32).reverse(), scalar)).toBe(false)
      expect(await verdict(bytesOf(small, 32).reverse(), Buffer.alloc(32))).toBe(false)
    }
  })

  /** The public key of a vector: a point, the x of Ed25519, or a modulus. */
  function keyOf(algorithm: string, hex: string): Jwk {
    const { kty = '', crv } = ALGORITHMS.get(algorithm) ?? {}
    const bytes = Buffer.from(hex, 'hex')
    const size = (bytes.length - 1) / 2
    if (kty === 'RSA') return { kty, n: bytes.toString('base64url'), e: 'AQAB' }
    if (kty === 'OKP') return { kty, crv, x: bytes.toString('base64url') }
    const [x, y] = [bytes.subarray(1, size + 1), bytes.subarray(size + 1)]
    return { kty, crv, x: x.toString('base64url'), y: y.toString('base64url') }
  }

  it.each(
    wycheproof.groups.flatMap(({ algorithm, key, tests }) => tests.map((test) => [algorithm, key, ...test])),
  )(
    'T3.1 of %s with the key %.12s… has the verdict of Wycheproof in case %i',
    async (...[algorithm, key, , message, signature, isValid]) => {
      const [name, text] = [String(algorithm), Buffer.from(String(message), 'hex').toString('latin1')]
      const publicKey = await importPublicKey(keyOf(name, String(key)), name)
      const token = `${text}.${Buffer.from(String(signature), 'hex').toString('base64url')}`
      expect(await isSignedBy(token, publicKey, name)).toBe(isValid)
    },
  )

  it('C4.15 that takes long is one of ES384, ES512, and of RSA keys above 4,096 bits', async () => {
    const slow = signers.filter(({ publicKey }) => publicKey.isSlow).map(({ algorithm }) => algorithm)
    expect(slow).toEqual(['ES384', 'ES512'])
    const keyOfBits = (bits: number): Promise<PublicKey> => {
      const n = bytesOf(2n ** BigInt(bits) - 1n, Math.ceil(bits / 8)).toString('base64url')
      return importPublicKey({ kty: 'RSA', n, e: 'AQAB' }, 'PS256')
    }
    expect([(await keyOfBits(4096)).isSlow, (await keyOfBits(4097)).isSlow]).toEqual([false, true])
  })
})
