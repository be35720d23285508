import type { ScopeText, ScopeValue, Target } from '../scopes/scope-token.ts'
import type { KeyStanding } from './keys.ts'
import type { JsonObject } from '../http/json-value.ts'

/** Who calls, as a verified access token says (C4.4). Frozen and shared between calls: never changed. */
export interface Principal {
  readonly subject: string
  readonly client: string
  readonly issuer: string
  /** The token's scope values in its order: what upstreams are told. */
  readonly scope: ScopeText
  /** The same values: what is judged. */
  readonly scopes: ReadonlySet<ScopeValue>
  readonly target: Target | undefined
  /** `jti`; absent from some foreign issuers' tokens. */
  readonly tokenId: string | undefined
  /** The family of the refresh token it came with; revocation rules name it. */
  readonly family: string | undefined
  /** The latest revocation rule that its issuer had heard of (contracts/tokens.ts); absent from foreign tokens. */
  readonly asOf?: number | undefined
  /** Seconds since the epoch. */
  readonly issuedAt: number
  readonly expiresAt: number
  /** The key that verified its token, or signed it here: the caller is trusted only while this key is (T3.10). */
  readonly key: KeyStanding
}

/** Something that the gateway guards but does not own: userinfo (C6.3.1). */
export interface Resource {
  describe(principal: Principal): Promise<JsonObject>
}
