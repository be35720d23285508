import type { Client, SigningAlgorithm } from '../../base/contracts/people/people.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newSecret, roleMark } from '../../base/kernel/ids.ts'
import { LONGEST_ACCESS_TOKEN } from '../../base/kernel/lifetimes.ts'
import { accessTokenHash } from '../keys/verify/signatures.ts'
import { idTokenClaims } from './claims.ts'
import type { Granted, GrantedForUser, StepDependencies } from '../steps/endpoint.ts'
import type { IdentityConfig } from '../dependencies/schema.ts'

export interface AccessToken {
  readonly token: string
  /** How long it is valid, in seconds. */
  readonly lifetime: number
  /** The same as the gateway reads in the token. */
  readonly principal: Principal
}

/** The lifetime of a client's access tokens in seconds. Never longer than revocation rules are kept. */
export const lifetimeOf = ({ accessTokenLifetime }: Client, { accessToken }: IdentityConfig): number =>
  Math.min(accessTokenLifetime ?? Math.floor(accessToken.lifetime / 1000), LONGEST_ACCESS_TOKEN / 1000)

type AccessGranted = Pick<Granted, 'asOf' | 'client' | 'user' | 'scope'> & Partial<Pick<Granted, 'proof'>>

/**
 * Issues an access token (C6.1.8, RFC 9068 §2).
 * @param family of the refresh token that is issued with it
 * @param longest its longest lifetime in seconds, where that is shorter than the client's
 * @throws Fault `identity_unavailable` if nobody knows what was revoked a moment ago, and `invalid_grant` if a rule has
 *   revoked the user, client, business or family since the call began
 */
export async function issueAccessToken(
  { asOf, client, proof, user, scope }: AccessGranted,
  family: string | undefined,
  { clock, config, rules, signer, urls }: StepDependencies,
  longest = Number.POSITIVE_INFINITY,
): Promise<AccessToken> {
  await rules.requireCurrent()
  const lifetime = Math.min(longest, lifetimeOf(client, config))
  const subject = user?.subject ?? client.id
  const issuedAt = epochSeconds(clock)
  const begun = { subject, client: client.id, business: scope.target?.business, family }
  if (rules.hasEnded({ ...begun, asOf, begunAt: clock.now() }))
    throw new Fault('invalid_grant', { detail: 'revoked since the call began' })
  const tokenId = newSecret(16)
  const role = roleOf(user, scope)
  const claims = {
    iss: urls.issuer,
    aud: urls.api,
    sub: subject,
    client_id: client.id,
    iat: issuedAt,
    exp: issuedAt + lifetime,
    jti: tokenId,
    scope: scope.text,
    ...(family !== undefined && { family }),
    ...(role !== undefined && { role }),
    ...(user === undefined && { machine: true }),
    as_of: asOf,
    ...(proof && { cnf: { jkt: proof.jkt } }),
  }
  const algorithm = client.limits?.accessTokenAlgorithm ?? config.accessToken.algorithm
  const { token, key } = await signer.sign(claims, { typ: 'at+jwt', algorithm })
  const principal: Principal = Object.freeze({
    subject,
    client: client.id,
    clientKey: client.id,
    issuer: urls.issuer,
    issuerName: undefined,
    scope: scope.text,
    scopes: new Set(scope.values),
    target: scope.target,
    tokenId,
    family,
    role,
    ...(user === undefined && { isMachine: true as const }),
    asOf,
    issuedAt,
    expiresAt: issuedAt + lifetime,
    confirmation: proof?.jkt,
    key,
  })
  return { token, lifetime, principal }
}

function roleOf(user: Granted['user'], { target }: Granted['scope']): string | undefined {
  const role = target && user?.access.get(target.business)?.role
  return role === undefined ? undefined : roleMark(role)
}

/** Signs a client's id_tokens, and what it is told of logouts. */
export const idTokenAlgorithm = (
  { idTokenAlgorithm: own }: Client,
  { idToken }: IdentityConfig,
): SigningAlgorithm => own ?? idToken.algorithm

/** Issues an id_token (C6.1.8, OIDC Core §2, §3.1.3.6), with the client's signature algorithm or the configured one. */
export async function issueIdToken(
  { client, user, scope, authTime, nonce, sid }: GrantedForUser,
  accessToken: string,
  { clock, config, logouts, signer, urls }: StepDependencies,
): Promise<string> {
  const algorithm = idTokenAlgorithm(client, config)
  const issuedAt = epochSeconds(clock)
  const claims = {
    // First, so that no claim about a person can replace one about the token.
    ...idTokenClaims(user, new Set(scope.values)),
    iss: urls.issuer,
    sub: user.subject,
    aud: client.id,
    iat: issuedAt,
    exp: issuedAt + Math.floor(config.idToken.lifetime / 1000),
    auth_time: authTime,
    ...(nonce !== undefined && { nonce }),
    ...(sid !== undefined && logouts.isNotified(client) && { sid }),
    at_hash: accessTokenHash(accessToken, algorithm),
  }
  return (await signer.sign(claims, { typ: 'JWT', algorithm })).token
}
