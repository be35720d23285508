import type { Claims, TokenPolicy } from '../contracts/keys.ts'
import type { Clock } from '../kernel/clock.ts'
import { fetchJsonBytes } from './fetch-json.ts'
import { badToken, checkClaims, LONGEST_LIFE, numericDate, parseObject } from './token-verifier.ts'

/** Bytes. */
const LARGEST = 64 * 1024

export interface IntrospectionCall {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  readonly token: string
  readonly signal: AbortSignal
}

export interface IntrospectionAnswer {
  /** Undefined if the token is not active. */
  readonly claims: Claims | undefined
  /** Bytes of the answer. */
  readonly length: number
}

/**
 * Introspects a token (RFC 7662 §2). Rejects with an Error if there is no good answer; no part of the token or of the
 * secret is in it.
 */
export async function requestIntrospection(call: IntrospectionCall): Promise<IntrospectionAnswer> {
  const { url, token, signal } = call
  const bytes = await fetchJsonBytes({
    url,
    what: 'the introspection endpoint',
    accept: 'application/json',
    strictType: true,
    largest: LARGEST,
    signal,
    headers: { authorization: basic(call) },
    form: new URLSearchParams({ token, token_type_hint: 'access_token' }),
  })
  const answer = parseObject(bytes, 'introspection')
  const { active } = answer
  if (typeof active !== 'boolean') throw new TypeError('the introspection endpoint does not say `active`')
  return { claims: active ? answer : undefined, length: bytes.length }
}

/** RFC 6749 §2.3.1: id and secret are form-encoded before they are joined. */
function basic({ clientId, clientSecret }: IntrospectionCall): string {
  const encoded = [clientId, clientSecret].map((text) =>
    new URLSearchParams({ '': text }).toString().slice(1),
  )
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`
}

/**
 * The claims of an active token, checked by the policy like those of a JWS. An answer may omit `iss`, since it comes from
 * the issuer, and `iat`: then the earliest moment that the policy allows is taken, so that no revocation rule is missed.
 * @throws Fault `invalid_token`
 */
export function checkIntrospected(answer: Claims, policy: TokenPolicy, clock: Clock): Claims {
  requireAccessToken(answer, policy)
  const { issuer, longestLife = LONGEST_LIFE } = policy
  const claims = { iat: numericDate(answer, 'exp') - longestLife, iss: issuer, ...answer }
  checkClaims(claims, policy, clock)
  return claims
}

/**
 * Servers introspect refresh tokens too. Those have no audience, and no `token_type`: without an audience to check, the
 * type must be there. A type other than Bearer says that the token is bound to a key (RFC 9449 §6.2).
 */
function requireAccessToken(answer: Claims, { audience, ignoresConfirmation }: TokenPolicy): void {
  const type = answer['token_type']
  if (type === undefined && audience !== undefined) return
  if (typeof type === 'string' && type.toLowerCase() === 'bearer') return
  if (typeof type === 'string' && ignoresConfirmation === true) return
  throw badToken('introspection: token_type is not Bearer')
}
