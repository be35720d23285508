/** Whose access tokens are accepted: our own, or those of a sidecar's configured issuers (C11.2). */
import type { TokenVerifier, TokenPolicy, Verified } from '../contracts/keys.ts'
import type { Principal } from '../contracts/principal.ts'
import { readOwnClaims } from '../gateway/claims.ts'
import { foreignClaimsReader } from '../gateway/foreign-claims.ts'
import type { TokenAuthority } from '../gateway/token-check.ts'
import type { Clock } from '../kernel/clock.ts'
import { SIGNING_ALGORITHMS } from '../keys/config.ts'
import type { IssuerKeys } from '../keys/issuer-keys.ts'
import { type IssuerConfig, NO_AUDIENCE } from '../keys/issuers-config.ts'
import {
  badToken,
  createTokenVerifier,
  type KeyFinder,
  parseCompactToken,
  plainType,
} from '../keys/token-verifier.ts'
import type { ServiceUrls } from '../server/config.ts'

interface Issuer {
  readonly verifier: TokenVerifier
  readonly policy: TokenPolicy
  readonly read: (verified: Verified) => Principal
}

/** Verifies our own access tokens (C6.1.8), without leeway (C4.16). */
export function ownAuthority(keys: KeyFinder, clock: Clock, urls: ServiceUrls): TokenAuthority {
  const policy: TokenPolicy = {
    issuer: urls.authUrl,
    audience: urls.baseUrl,
    typ: ['at+jwt'],
    // Both: tokens signed before a change of `accessToken.algorithm` stay valid until they expire.
    algorithms: SIGNING_ALGORITHMS,
    leeway: 0,
  }
  const verifier = createTokenVerifier(keys, clock)
  return {
    verify: async (token) => readOwnClaims(await verifier.verify(token, policy)),
    leeways: new Map(),
  }
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

function openIssuer(config: IssuerConfig, clock: Clock, keys: IssuerKeys): Issuer {
  const { issuer, audience, typ, algorithms, leeway, longestLife, confirmation } = config
  return {
    verifier: createTokenVerifier(keys.of(config), clock),
    policy: {
      issuer,
      audience: audience === NO_AUDIENCE ? undefined : audience,
      typ: typ.map(plainType),
      algorithms,
      leeway: seconds(leeway),
      longestLife: seconds(longestLife),
      ignoresConfirmation: confirmation === 'ignore',
    },
    read: foreignClaimsReader({
      issuer,
      name: undefined,
      scope: config.scopeClaim,
      scopeMap: config.scopeMap,
      target: config.targetClaim,
      client: config.clientClaim,
      subject: config.subjectClaim,
    }),
  }
}

/** Verifies tokens of these issuers only. The unverified `iss` claim selects the issuer whose policy and keys are used. */
export function foreignAuthority(
  configs: readonly IssuerConfig[],
  clock: Clock,
  keys: IssuerKeys,
): TokenAuthority {
  const issuers = new Map(configs.map((config) => [config.issuer, openIssuer(config, clock, keys)]))
  return {
    verify: async (token) => {
      const { iss } = parseCompactToken(token).payload
      const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined
      if (issuer === undefined) throw badToken('claim: iss')
      return issuer.read(await issuer.verifier.verify(token, issuer.policy))
    },
    leeways: new Map([...issuers].map(([name, { policy }]) => [name, policy.leeway])),
  }
}
