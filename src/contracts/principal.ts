import type { Target } from '../scopes/target.ts'

/** Who calls, as a verified access token says (C4.4). Frozen and shared between calls: never changed. */
export interface Principal {
  readonly subject: string
  readonly client: string
  readonly issuer: string
  /** The token's `scope`, space-delimited, in its order. */
  readonly scope: string
  readonly scopes: ReadonlySet<string>
  readonly target: Target | undefined
  /** `jti`; absent from some foreign issuers' tokens. */
  readonly tokenId: string | undefined
  /** The family of the refresh token it came with; revocation rules name it. */
  readonly family: string | undefined
  /** Seconds since the epoch. */
  readonly issuedAt: number
  readonly expiresAt: number
}
