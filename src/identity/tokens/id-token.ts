import { epochSeconds } from '../../kernel/clock.ts'
import { accessTokenHash } from '../../keys/signatures.ts'
import { idTokenClaims } from '../claims.ts'
import type { Granted } from '../context.ts'
import type { StepDependencies } from '../endpoint.ts'

/** An id_token (C6.1.8, OIDC Core §2, §3.1.3.6), signed as the client's configuration says, else the deployment's. */
export async function issueIdToken(
  { client, user, scope, authTime, nonce }: Granted,
  accessToken: string,
  { clock, config, signer, urls }: StepDependencies,
): Promise<string> {
  const algorithm = client.idTokenAlgorithm ?? config.idToken.algorithm
  const issuedAt = epochSeconds(clock)
  const claims = {
    // First, so that nothing about a person can stand for what is said about the token.
    ...idTokenClaims(user, new Set(scope.values)),
    iss: urls.issuer,
    sub: user.subject,
    aud: client.id,
    iat: issuedAt,
    exp: issuedAt + Math.floor(config.idToken.lifetime / 1000),
    auth_time: authTime,
    ...(nonce !== undefined && { nonce }),
    at_hash: accessTokenHash(accessToken, algorithm),
  }
  return (await signer.sign(claims, { typ: 'JWT', algorithm })).token
}
