/** The signature algorithms of JOSE, the keys that fit them, and how they are verified (RFC 7518 §3.1, RFC 8037). */
import { constants, type SigningOptions } from 'node:crypto'

export interface AlgorithmRow {
  readonly kty: string
  /** The curve; undefined for RSA. */
  readonly crv?: string
  /** The public members, in the order that JWKS shows them (RFC 7518 §6). */
  readonly members: readonly string[]
  /** As node:crypto names it; null where the algorithm says it itself (RFC 8032). */
  readonly hash: string | null
  /** The options of node:crypto for the padding of RSA, and for the form of ECDSA signatures. */
  readonly options: SigningOptions
  /** The length of a signature, in bytes; undefined for RSA, where it is that of the key. */
  readonly length?: number
  /** Whether one verification takes most of a millisecond. */
  readonly isSlow?: boolean
}

const rsa = { kty: 'RSA', members: ['kty', 'n', 'e'] } as const

const pkcs1 = (bits: number): AlgorithmRow => ({
  ...rsa,
  hash: `sha${bits}`,
  options: { padding: constants.RSA_PKCS1_PADDING },
})

/** RFC 7518 §3.5: the salt is as long as the hash. */
const pss = (bits: number): AlgorithmRow => ({
  ...rsa,
  hash: `sha${bits}`,
  options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: bits / 8 },
})

/** RFC 7518 §3.4: a signature is two numbers of fixed length, and no ASN.1. */
const ecdsa = (crv: string, bits: number, length: number): AlgorithmRow => ({
  kty: 'EC',
  crv,
  members: ['kty', 'crv', 'x', 'y'],
  hash: `sha${bits}`,
  options: { dsaEncoding: 'ieee-p1363' },
  length,
  // OpenSSL has fast arithmetic for P-256 alone.
  isSlow: crv !== 'P-256',
})

const ed25519: AlgorithmRow = {
  kty: 'OKP',
  crv: 'Ed25519',
  members: ['kty', 'crv', 'x'],
  hash: null,
  options: {},
  length: 64,
}

/** The asymmetric ones of IANA's registry. Without `none` and HMAC: no configuration can allow them (T3.1). */
export const ALGORITHMS: ReadonlyMap<string, AlgorithmRow> = new Map(
  Object.entries({
    RS256: pkcs1(256),
    RS384: pkcs1(384),
    RS512: pkcs1(512),
    PS256: pss(256),
    PS384: pss(384),
    PS512: pss(512),
    ES256: ecdsa('P-256', 256, 64),
    ES384: ecdsa('P-384', 384, 96),
    ES512: ecdsa('P-521', 512, 132),
    EdDSA: ed25519,
    Ed25519: ed25519,
  }),
)

export const SUPPORTED_ALGORITHMS: readonly string[] = [...ALGORITHMS.keys()]
