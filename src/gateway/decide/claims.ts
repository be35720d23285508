import {
  isScopeValue,
  isTargetValue,
  joinScope,
  parseTarget,
  readCode,
  type ScopeValue,
  splitScope,
  type Target,
} from '../../base/config/scopes/scope-token.ts'
import type { Claims, Verified } from '../../base/contracts/people/keys.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { boundKey } from '../../identity/keys/verify/token-verifier.ts'

/** `detail` goes to the log, so it must hold no piece of the token. */
const badClaim = (detail: string): Fault => new Fault('invalid_token', { detail })

function text(claims: Claims, name: string): string {
  const value = claims[name]
  if (typeof value !== 'string' || value === '') throw badClaim(`claim ${name} missing or no text`)
  return value
}

function optionalText(claims: Claims, name: string): string | undefined {
  return claims[name] === undefined ? undefined : text(claims, name)
}

function number(claims: Claims, name: string): number {
  const value = claims[name]
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw badClaim(`claim ${name} missing or no number`)
  return value
}

function onlyTarget(values: readonly string[]): Target | undefined {
  const targets = values.filter(isTargetValue)
  if (targets.length > 1) throw badClaim('more than one target')
  return targets[0] === undefined ? undefined : parseTarget(targets[0])
}

/** Our own access token (RFC 9068 §2.2, C6.1.8): its target is a value of the scope. @throws Fault `invalid_token` */
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
    ...(claims['machine'] === true && { isMachine: true as const }),
    asOf: claims['as_of'] === undefined ? undefined : number(claims, 'as_of'),
    issuedAt: number(claims, 'iat'),
    expiresAt: number(claims, 'exp'),
    confirmation: boundKey(claims),
    key,
  })
}

const badScope = (): Fault =>
  badClaim('the scope claim holds an item that can be no scope value (RFC 6749 §3.3)')

type ClaimReader = (claims: Claims) => unknown

const isObject = (value: unknown): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads the claim that a configuration names (C11.2): `scope`, `realm_access.roles`, `https://example.com/business`.
 *
 * A dot divides names, unless it is part of one. So the whole text is tried as the name of a member first; if there is
 * none, the longest beginning of the text (up to a dot) that is the name of a member is taken, and the rest is looked
 * for inside that member. Nothing else is tried, so one token has one reading.
 */
const claimReader =
  (path: string): ClaimReader =>
  (claims) =>
    valueAt(claims, path)

function valueAt(object: unknown, path: string): unknown {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, path)) return object[path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot)
    if (Object.hasOwn(object, name)) return valueAt(object[name], path.slice(dot + 1))
  }
  return undefined
}

/** How the claims of a foreign issuer are read (C11.2). Claims are named as `claimReader` describes. */
export interface ForeignClaims {
  /** The `iss` of its tokens. */
  readonly issuer: string
  /** Only if there are several issuers: its name in the configuration. */
  readonly name: string | undefined
  /** Whether a key that a token is bound to has to be proven (`cnf.jkt`). Otherwise it is not looked at. */
  readonly provesKeys: boolean
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
  const { issuer, name, provesKeys } = names
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
      confirmation: provesKeys ? boundKey(claims) : undefined,
      key,
    })
  }
}

/** A name has no colon, so no two clients of different issuers have one key. */
const clientKeyOf = (name: string | undefined, client: string): string =>
  name === undefined ? client : `${name}:${client}`

const CONTROLS = /[\x00-\x1f\x7f]/

/** A claim that is one text, or a list of one. Without control characters, because rules, logs and headers hold it. */
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
