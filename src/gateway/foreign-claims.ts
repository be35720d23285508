import type { Claims, Verified } from '../contracts/keys.ts'
import type { Principal } from '../contracts/principal.ts'
import {
  isScopeValue,
  isTargetValue,
  joinScope,
  parseTarget,
  readCode,
  type ScopeValue,
  type Target,
} from '../config/scopes/scope-token.ts'
import { claimReader } from './claim-path.ts'
import { badClaim, badScope, number, onlyTarget, optionalText } from './claims.ts'

/** How the claims of a foreign issuer are read (C11.2). Claims are named as `claimReader` describes. */
export interface ForeignClaims {
  /** The `iss` of its tokens. */
  readonly issuer: string
  /** Only if there are several issuers: its name in the configuration. */
  readonly name: string | undefined
  readonly scope: string
  /** Scope values by role. Absent: the values of the claim are scope values. */
  readonly scopeMap: Readonly<Record<string, readonly string[]>> | undefined
  /** Absent: the target is a value of the scope. */
  readonly target: string | undefined
  readonly client: string
  readonly subject: string
}

/** Makes the reader of a foreign issuer's claims. The reader throws Fault `invalid_token`. */
export function foreignClaimsReader(names: ForeignClaims): (verified: Verified) => Principal {
  const { issuer, name } = names
  const readScope = scopeReader(names)
  const readTarget = targetReader(names.target)
  const readClient = oneText(names.client)
  const readSubject = oneText(names.subject)
  return ({ claims, key }) => {
    const values = readScope(claims)
    const client = readClient(claims)
    return Object.freeze({
      subject: readSubject(claims),
      client,
      clientKey: clientKeyOf(name, client),
      issuer,
      issuerName: name,
      scope: joinScope(values),
      scopes: new Set(values),
      target: readTarget(claims, values),
      tokenId: optionalText(claims, 'jti'),
      family: undefined,
      asOf: undefined,
      issuedAt: number(claims, 'iat'),
      expiresAt: number(claims, 'exp'),
      key,
    })
  }
}

/** A name has no colon, so no two clients of different issuers have one key. */
const clientKeyOf = (name: string | undefined, client: string): string =>
  name === undefined ? client : `${name}:${client}`

const CONTROLS = /[\x00-\x1f\x7f]/

/** A claim that is one text, or a list of one. Without control characters, since rules, logs and headers hold it. */
function oneText(path: string): (claims: Claims) => string {
  const read = claimReader(path)
  return (claims) => {
    const value = single(read(claims))
    if (typeof value !== 'string' || value === '' || CONTROLS.test(value))
      throw badClaim(`claim ${path} missing or no text`)
    return value
  }
}

/** Some issuers write every attribute of a user as a list. */
const single = (value: unknown): unknown =>
  Array.isArray(value) && value.length === 1 ? (value[0] as unknown) : value

function scopeReader({ scope, scopeMap, target }: ForeignClaims): (claims: Claims) => readonly ScopeValue[] {
  const read = claimReader(scope)
  if (scopeMap === undefined) return (claims) => scopeValues(listOfTexts(read(claims)))
  const scopesOf = new Map(Object.entries(scopeMap))
  const keepsTarget = target === undefined
  const mapped = (role: string): readonly string[] =>
    scopesOf.get(role) ?? (keepsTarget && isTargetValue(role) ? [role] : [])
  return (claims) => scopeValues([...new Set(listOfTexts(read(claims)).flatMap(mapped))])
}

/** A text divided by spaces, or a list of texts. @throws Fault `invalid_token` */
function listOfTexts(claim: unknown): readonly string[] {
  if (claim === undefined) return []
  const values: unknown[] = typeof claim === 'string' ? claim.split(' ').filter(Boolean) : [claim].flat()
  if (values.every((value) => typeof value === 'string')) return values
  throw badClaim('the scope claim is neither a text nor a list of texts')
}

/**
 * A token with an item that is no scope value (RFC 6749 §3.3), such as one with a space in a list, is refused: Postern
 * would check it as one value, and an upstream would read it as two. Leaving the item out would hide that the issuer
 * writes such tokens.
 * @throws Fault `invalid_token`
 */
function scopeValues(values: readonly string[]): readonly ScopeValue[] {
  if (values.every(isScopeValue)) return values
  throw badScope()
}

function targetReader(
  path: string | undefined,
): (claims: Claims, values: readonly ScopeValue[]) => Target | undefined {
  if (path === undefined) return (_claims, values) => onlyTarget(values)
  const read = claimReader(path)
  return (claims) => readTarget(single(read(claims)))
}

/** A business code, `b/CODE`, `f/CODE/FUND`, or the same with `target:` before it. */
function readTarget(claim: unknown): Target | undefined {
  if (claim === undefined) return undefined
  if (typeof claim !== 'string') throw badClaim('the target claim is no text')
  const value = claim.startsWith('target:') ? claim : `target:${claim}`
  const business = readCode(claim)
  return parseTarget(value) ?? (business && { level: 'business', business })
}
