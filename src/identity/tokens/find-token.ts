import type { Purpose } from '../../base/contracts/records/store.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { parseCompactToken } from '../keys/verify/token-verifier.ts'
import type { StepDependencies, FoundToken } from '../steps/endpoint.ts'
import { readGrantedScope } from '../dependencies/scopes.ts'
import { isNumbered } from '../stored/families.ts'

export interface Hint {
  readonly client: string
  readonly subject: string
}

/** How long ago a hint may have expired, in seconds (RP-Initiated Logout §2). It is valid until its key is removed. */
const ANY_AGE = 10 * 365 * 86_400

/** Reads an `id_token_hint`. Undefined if it is no id_token of ours. Never rejects. */
export async function readHint(
  text: string | undefined,
  { tokenVerifier, urls }: StepDependencies,
): Promise<Hint | undefined> {
  if (text === undefined) return undefined
  try {
    const { aud: client } = parseCompactToken(text).payload
    if (typeof client !== 'string') return undefined
    const { claims } = await tokenVerifier.verify(text, {
      issuer: urls.issuer,
      audience: client,
      typ: ['jwt'],
      algorithms: ['RS256', 'ES256'],
      leeway: ANY_AGE,
      longestLife: ANY_AGE,
    })
    const { sub } = claims
    return typeof sub === 'string' ? { client, subject: sub } : undefined
  } catch {
    // A hint is no credential, so one that cannot be verified is ignored.
    return undefined
  }
}

/**
 * Finds a token by its form: an access token is a JWT. A refresh token says that it is one, or has no dots if an older
 * version made it. The `token_type_hint` is not needed (RFC 7009 §2.1).
 * Undefined if the token is unknown, malformed, expired, revoked, of another kind or of another issuer.
 * @throws Fault `identity_unavailable` if the store or the keys cannot be reached
 */
export const findToken = (
  token: string,
  dependencies: StepDependencies,
  purpose?: Purpose,
): Promise<FoundToken | undefined> =>
  isAccessToken(token) ? findAccessToken(token, dependencies) : findRefreshToken(token, dependencies, purpose)

const isAccessToken = (token: string): boolean => token.includes('.') && !isNumbered(token)

async function findAccessToken(
  token: string,
  { issuedTokens, urls }: StepDependencies,
): Promise<FoundToken | undefined> {
  try {
    const principal = await issuedTokens.check(token)
    const { client, confirmation: jkt, expiresAt, issuedAt, issuer, scope, subject, tokenId } = principal
    const { isMachine = false } = principal
    if (issuer !== urls.issuer || tokenId === undefined) return undefined
    const found = { id: tokenId, client, subject, isMachine, scope, expiresAt, issuedAt, jkt }
    return { kind: 'access_token', ...found, spent: false }
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.row.challenge === 'invalid_token') return undefined
    throw new Fault('identity_unavailable', { cause: thrown })
  }
}

async function findRefreshToken(
  token: string,
  { families }: StepDependencies,
  purpose?: Purpose,
): Promise<FoundToken | undefined> {
  const family = await families.find(token, purpose)
  if (family === undefined) return undefined
  const { client, scope, subject } = family.record
  return {
    kind: 'refresh_token',
    id: family.id,
    client,
    subject,
    isMachine: false,
    scope: readGrantedScope(scope).text,
    expiresAt: family.expiresAt === undefined ? undefined : Math.floor(family.expiresAt / 1000),
    issuedAt: undefined,
    spent: family.state === 'replayed',
  }
}
