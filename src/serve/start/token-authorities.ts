/** Whose access tokens are accepted: our own, or those of a sidecar's configured issuers (C11.2). */
import type { Caller, Claims, KeyStanding, TokenPolicy, Verified } from '../../base/contracts/people/keys.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { foreignClaimsReader, readOwnClaims } from '../../gateway/decide/claims.ts'
import type { TokenAuthority } from '../../gateway/decide/token-check.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { IssuerKeys } from '../../identity/keys/issuers/issuer-keys.ts'
import type { OpaqueVerifier } from '../../identity/keys/issuers/opaque-tokens.ts'
import { type IssuerConfig, NO_AUDIENCE, provesKeys } from '../../identity/keys/issuers/issuers-schema.ts'
import { SIGNING_ALGORITHMS } from '../../identity/keys/signing/schema.ts'
import {
  badToken,
  createTokenVerifier,
  isOpaque,
  type KeyFinder,
  parseCompactToken,
  plainType,
} from '../../identity/keys/verify/token-verifier.ts'
import type { ServiceUrls } from '../../gateway/server/schema.ts'

/** The status of claims that nobody has verified. */
const UNKNOWN_KEY: KeyStanding = { isTrusted: () => false }

interface Issuer {
  readonly verifier: ReturnType<typeof createTokenVerifier>
  readonly policy: TokenPolicy
  readonly read: (verified: Verified) => Principal
  /** Undefined unless the issuer's opaque tokens are accepted. */
  readonly opaque: OpaqueVerifier | undefined
}

/** Verifies our own access tokens (C6.1.8), without leeway (C4.16). @param takesBound whether calls can prove keys (C4.4a) */
export function ownAuthority(
  keys: KeyFinder,
  clock: Clock,
  urls: ServiceUrls,
  takesBound: boolean,
): TokenAuthority {
  const policy: TokenPolicy = {
    issuer: urls.authUrl,
    audience: urls.baseUrl,
    typ: ['at+jwt'],
    // Both: tokens signed before a change of `accessToken.algorithm` stay valid until they expire.
    algorithms: SIGNING_ALGORITHMS,
    leeway: 0,
    tellsWhy: true,
    confirmation: takesBound ? 'prove' : 'refuse',
  }
  const verifier = createTokenVerifier(keys, clock)
  return {
    verify: async (token, caller) => readOwnClaims(await verifier.verify(token, policy, caller)),
    verifyLocally: async (token) => readOwnClaims(await verifier.verifyLocally(token, policy)),
    read: (token) => readOwnClaims({ claims: parseCompactToken(token).payload, key: UNKNOWN_KEY }),
    leeways: new Map(),
    ownIssuer: policy.issuer,
  }
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

/** @param name undefined if there is one issuer only */
function openIssuer(config: IssuerConfig, name: string | undefined, clock: Clock, keys: IssuerKeys): Issuer {
  const { issuer, audience, typ, algorithms, leeway, longestLife, confirmation } = config
  const proves = provesKeys(config)
  return {
    verifier: createTokenVerifier(keys.of(config), clock),
    policy: {
      issuer,
      audience: audience === NO_AUDIENCE ? undefined : audience,
      typ: typ.map(plainType),
      algorithms,
      leeway: seconds(leeway),
      longestLife: seconds(longestLife),
      confirmation: proves ? 'prove' : confirmation,
    },
    opaque: keys.opaqueVerifierOf(config),
    read: foreignClaimsReader({
      issuer,
      name,
      provesKeys: proves,
      scope: config.scopeClaim,
      scopeMap: config.scopeMap,
      target: config.targetClaim,
      client: config.clientClaim,
      subject: config.subjectClaim,
    }),
  }
}

/**
 * Verifies tokens of these issuers only. The unverified `iss` claim of a JWS selects the issuer whose policy and keys are
 * used. An opaque token is verified for the first issuer that accepts such tokens. If there is none, it is refused.
 */
export function foreignAuthority(
  configs: readonly IssuerConfig[],
  clock: Clock,
  keys: IssuerKeys,
): TokenAuthority {
  const named = configs.length > 1
  const issuers = new Map(
    configs.map((config) => [
      config.issuer,
      openIssuer(config, named ? config.name : undefined, clock, keys),
    ]),
  )
  const takesOpaque = [...issuers.values()].find(({ opaque }) => opaque !== undefined)
  const issuerOf = ({ iss }: Claims): Issuer => {
    const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined
    if (issuer === undefined) throw badToken('claim: iss')
    return issuer
  }
  const check = async (
    token: string,
    how: 'verify' | 'verifyLocally',
    caller?: Caller,
  ): Promise<Principal> => {
    if (takesOpaque?.opaque !== undefined && isOpaque(token))
      return takesOpaque.read(await takesOpaque.opaque[how](token, takesOpaque.policy))
    const parsed = parseCompactToken(token)
    const { read, verifier, policy } = issuerOf(parsed.payload)
    return read(await verifier[how](parsed, policy, caller))
  }
  return {
    verify: (token, caller) => check(token, 'verify', caller),
    verifyLocally: (token) => check(token, 'verifyLocally'),
    read: (token) => {
      const claims = parseCompactToken(token).payload
      return issuerOf(claims).read({ claims, key: UNKNOWN_KEY })
    },
    leeways: new Map([...issuers].map(([name, { policy }]) => [name, policy.leeway])),
  }
}
