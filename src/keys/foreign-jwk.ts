import { rsaWeakness, type Jwk } from './signatures.ts'

/** The members of a public key and what is said about its use (RFC 7517 §4, RFC 7518 §6). Others are not kept. */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg', 'use', 'key_ops'] as const
/** Of a private or a symmetric key: they have no business in a published set. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

/** What an operator is told about a key of an issuer. Never holds a piece of the key. */
export interface KeyRemark {
  readonly level: 'info' | 'warn'
  readonly event: string
  /** As the issuer says it; undefined if it says none. */
  readonly kid: string | undefined
  readonly reason: string
}

export interface AdmittedKeys {
  /** Public members only. */
  readonly keys: readonly Jwk[]
  readonly remarks: readonly KeyRemark[]
}

interface Refusal {
  readonly level: KeyRemark['level']
  /** Why the key may not verify; undefined if it may. */
  readonly reasonOf: (jwk: Jwk) => string | undefined
}

const namesVerify = (operations: unknown): boolean =>
  Array.isArray(operations) && operations.includes('verify')

const REFUSALS: readonly Refusal[] = [
  // Usual: the keys of issuers that encrypt too.
  {
    level: 'info',
    reasonOf: ({ use }) => (use === undefined || use === 'sig' ? undefined : 'its `use` is not `sig`'),
  },
  {
    level: 'warn',
    reasonOf: ({ key_ops: operations }) =>
      operations === undefined || namesVerify(operations) ? undefined : 'its `key_ops` do not name `verify`',
  },
  { level: 'warn', reasonOf: (jwk) => (jwk['kty'] === 'RSA' ? rsaWeakness(jwk) : undefined) },
]

/** Which keys of a foreign key set may verify, and what is to be told of the others. */
export function admitKeys(set: readonly Jwk[]): AdmittedKeys {
  const remarks: KeyRemark[] = []
  const keys = set.filter((jwk) => {
    const kid = typeof jwk['kid'] === 'string' ? jwk['kid'].slice(0, 100) : undefined
    if (PRIVATE_MEMBERS.some((member) => jwk[member] !== undefined))
      remarks.push({ level: 'warn', event: 'issuer_key_private', kid, reason: PRIVATE })
    for (const { level, reasonOf } of REFUSALS) {
      const reason = reasonOf(jwk)
      if (reason === undefined) continue
      remarks.push({ level, event: 'issuer_key_refused', kid, reason })
      return false
    }
    return true
  })
  if (keys.length === 0)
    remarks.push({ level: 'warn', event: 'issuer_keys_empty', kid: undefined, reason: EMPTY })
  return { keys: keys.map(publicMembers), remarks }
}

const EMPTY = 'the key set holds no key that may verify: all tokens of the issuer are refused'

const PRIVATE =
  'the key set holds private members of it: whoever has read the set can sign with it; the issuer should replace it'

const publicMembers = (jwk: Jwk): Jwk =>
  Object.fromEntries(
    PUBLIC_MEMBERS.flatMap((member) => (jwk[member] === undefined ? [] : [[member, jwk[member]]])),
  )
