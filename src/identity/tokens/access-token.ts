import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import { newSecret } from '../../kernel/ids.ts'
import type { Granted } from '../context.ts'
import type { Room } from '../endpoint.ts'

export interface AccessToken {
  readonly token: string
  /** Seconds. */
  readonly lifetime: number
  /** What the gateway will read in it. */
  readonly principal: Principal
}

/**
 * An access token (C6.1.8, RFC 9068 §2). `family` is that of the refresh token it comes with.
 * @throws Fault invalid_grant if what it would be issued for was revoked since the call began
 */
export async function issueAccessToken(
  { begunAt, client, user, scope }: Granted,
  family: string | undefined,
  { config, revoker, signer, urls }: Room,
): Promise<AccessToken> {
  const lifetime = client.accessTokenLifetime ?? Math.floor(config.accessToken.lifetime / 1000)
  const { subject } = user
  const issuance = { subject, client: client.id, business: scope.target?.business, family }
  const issuedAt = revoker.issueTime(issuance, begunAt)
  if (issuedAt === undefined) throw new Fault('invalid_grant', { detail: 'revoked since the call began' })
  const tokenId = newSecret(16)
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
  }
  const token = await signer.sign(claims, { typ: 'at+jwt', algorithm: config.accessToken.algorithm })
  const principal: Principal = Object.freeze({
    subject,
    client: client.id,
    issuer: urls.issuer,
    scope: scope.text,
    scopes: new Set(scope.values),
    target: scope.target,
    tokenId,
    family,
    issuedAt,
    expiresAt: issuedAt + lifetime,
  })
  return { token, lifetime, principal }
}
