/** The signature algorithms of JOSE, and the keys that fit them (RFC 7518 §3.1, RFC 8037). */

interface AlgorithmRow {
  readonly kty: string
  /** The curves that fit; undefined for RSA. */
  readonly crv?: readonly string[]
  /** The public members, in the order that JWKS shows them (RFC 7518 §6). */
  readonly members: readonly string[]
}

const EC_MEMBERS = ['kty', 'crv', 'x', 'y'] as const
const rsa: AlgorithmRow = { kty: 'RSA', members: ['kty', 'n', 'e'] }
const ec = (crv: string): AlgorithmRow => ({ kty: 'EC', crv: [crv], members: EC_MEMBERS })
const ed: AlgorithmRow = { kty: 'OKP', crv: ['Ed25519'], members: ['kty', 'crv', 'x'] }

/** The asymmetric ones of IANA's registry. Without `none` and HMAC: no configuration can allow them (T3.1). */
export const ALGORITHMS: ReadonlyMap<string, AlgorithmRow> = new Map(
  Object.entries({
    RS256: rsa,
    RS384: rsa,
    RS512: rsa,
    PS256: rsa,
    PS384: rsa,
    PS512: rsa,
    ES256: ec('P-256'),
    ES384: ec('P-384'),
    ES512: ec('P-521'),
    EdDSA: ed,
    Ed25519: ed,
  }),
)

export const SUPPORTED_ALGORITHMS: readonly string[] = [...ALGORITHMS.keys()]
