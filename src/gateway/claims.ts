import type { Claims, Verified } from '../contracts/keys.ts'
import type { Principal } from '../contracts/principal.ts'
import { Fault } from '../kernel/faults.ts'
import { isTargetValue, joinScope, parseTarget, splitScope, type Target } from '../config/scopes/scope-token.ts'

/** `detail` goes to the log, so it must hold no piece of the token. */
export const badClaim = (detail: string): Fault => new Fault('invalid_token', { detail })

function text(claims: Claims, name: string): string {
  const value = claims[name]
  if (typeof value !== 'string' || value === '') throw badClaim(`claim ${name} missing or no text`)
  return value
}

export function optionalText(claims: Claims, name: string): string | undefined {
  return claims[name] === undefined ? undefined : text(claims, name)
}

export function number(claims: Claims, name: string): number {
  const value = claims[name]
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw badClaim(`claim ${name} missing or no number`)
  return value
}

export function onlyTarget(values: readonly string[]): Target | undefined {
  const targets = values.filter(isTargetValue)
  if (targets.length > 1) throw badClaim('more than one target')
  return targets[0] === undefined ? undefined : parseTarget(targets[0])
}

/**
 * Reads the claims of our own access token (RFC 9068 §2.2, C6.1.8). The target is a value of the scope.
 * @throws Fault `invalid_token`
 */
export function readOwnClaims({ claims, key }: Verified): Principal {
  const values = splitScope(text(claims, 'scope'))
  if (values === undefined) throw badScope()
  const client = text(claims, 'client_id')
  return Object.freeze({
    subject: text(claims, 'sub'),
    client,
    clientKey: client,
    issuer: text(claims, 'iss'),
    issuerName: undefined,
    scope: joinScope(values),
    scopes: new Set(values),
    target: onlyTarget(values),
    tokenId: text(claims, 'jti'),
    family: optionalText(claims, 'family'),
    role: optionalText(claims, 'role'),
    asOf: claims['as_of'] === undefined ? undefined : number(claims, 'as_of'),
    issuedAt: number(claims, 'iat'),
    expiresAt: number(claims, 'exp'),
    key,
  })
}

export const badScope = (): Fault =>
  badClaim('the scope claim holds an item that can be no scope value (RFC 6749 §3.3)')
