import type { Verified } from '../contracts/keys.ts'
import type { Principal } from '../contracts/principal.ts'
import { Fault } from '../kernel/faults.ts'
import {
  isScopeValue,
  isTargetValue,
  joinScope,
  parseTarget,
  readCode,
  type ScopeValue,
  splitScope,
  type Target,
} from '../scopes/scope-token.ts'

const bad = (detail: string): Fault => new Fault('invalid_token', { detail })

type Claims = Verified['claims']

function text(claims: Claims, name: string): string {
  const value = claims[name]
  if (typeof value !== 'string' || value === '') throw bad(`claim ${name} missing or no text`)
  return value
}

function optionalText(claims: Claims, name: string): string | undefined {
  return claims[name] === undefined ? undefined : text(claims, name)
}

function number(claims: Claims, name: string): number {
  const value = claims[name]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw bad(`claim ${name} missing or no number`)
  return value
}

function onlyTarget(values: readonly string[]): Target | undefined {
  const targets = values.filter(isTargetValue)
  if (targets.length > 1) throw bad('more than one target')
  return targets[0] === undefined ? undefined : parseTarget(targets[0])
}

/**
 * Reads the claims of our own access token (RFC 9068 §2.2, C6.1.8). The target is a value of the scope.
 * @throws Fault `invalid_token`
 */
export function readOwnClaims({ claims, key }: Verified): Principal {
  const values = splitScope(text(claims, 'scope'))
  if (values === undefined) throw badScope()
  return Object.freeze({
    subject: text(claims, 'sub'),
    client: text(claims, 'client_id'),
    issuer: text(claims, 'iss'),
    scope: joinScope(values),
    scopes: new Set(values),
    target: onlyTarget(values),
    tokenId: text(claims, 'jti'),
    family: optionalText(claims, 'family'),
    asOf: claims['as_of'] === undefined ? undefined : number(claims, 'as_of'),
    issuedAt: number(claims, 'iat'),
    expiresAt: number(claims, 'exp'),
    key,
  })
}

/** Names of a foreign issuer's claims (C11.2). The defaults are those of RFC 9068. */
export interface ClaimNames {
  readonly scope: string
  /** Absent: the target is a value of the scope. */
  readonly target: string | undefined
  readonly client: string
}

/** Reads the claims of a foreign issuer's access token. The reader throws Fault `invalid_token`. */
export const foreignClaimsReader =
  (names: ClaimNames) =>
  ({ claims, key }: Verified): Principal => {
    const values = scopeValues(claims[names.scope])
    return Object.freeze({
      subject: text(claims, 'sub'),
      client: text(claims, names.client),
      issuer: text(claims, 'iss'),
      scope: joinScope(values),
      scopes: new Set(values),
      target: names.target === undefined ? onlyTarget(values) : readTargetClaim(claims[names.target]),
      tokenId: optionalText(claims, 'jti'),
      family: undefined,
      asOf: undefined,
      issuedAt: number(claims, 'iat'),
      expiresAt: number(claims, 'exp'),
      key,
    })
  }

/**
 * The scope: a text divided by spaces, or a list of values. A token with an item that is no scope value (RFC 6749 §3.3),
 * such as one with a space in a list, is refused: Postern would check it as one value, and an upstream would read it as
 * two. Leaving the item out would hide that the issuer writes such tokens.
 * @throws Fault `invalid_token`
 */
function scopeValues(claim: unknown): readonly ScopeValue[] {
  if (claim === undefined) return []
  const values: unknown[] = typeof claim === 'string' ? claim.split(' ').filter(Boolean) : [claim].flat()
  if (!values.every((value) => typeof value === 'string'))
    throw bad('the scope claim is neither a text nor a list of texts')
  if (values.every(isScopeValue)) return values
  throw badScope()
}

const badScope = (): Fault => bad('the scope claim holds an item that can be no scope value (RFC 6749 §3.3)')

/** A business code, `b/CODE`, `f/CODE/FUND`, or the same with `target:` before it. */
function readTargetClaim(claim: unknown): Target | undefined {
  if (claim === undefined) return undefined
  if (typeof claim !== 'string') throw bad('the target claim is no text')
  const value = claim.startsWith('target:') ? claim : `target:${claim}`
  const business = readCode(claim)
  return parseTarget(value) ?? (business && { level: 'business', business })
}
