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

/** An access token of our own, by RFC 9068 §2.2 and C6.1.8: scope a space-delimited string, the target among it. */
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

/** How a foreign issuer says what ours says (C11.2). RFC 9068 where nothing else is configured. */
export interface ClaimNames {
  readonly scope: string
  /** Absent: the target is a value of the scope. */
  readonly target: string | undefined
  readonly client: string
}

/** An access token of a foreign issuer, by the names that its configuration gives. */
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
 * A text that spaces divide, or a list of values. A token with an item that can be no scope value (RFC 6749 §3.3; one
 * with a space in a list, say) is refused and not mended: it would be judged as one value and read as two by whoever
 * is told, and to leave the item out would hide from everybody that the issuer writes such tokens.
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
