import type { PublicKeys, SecretDeriver, Signer, TokenVerifier } from '../contracts/keys.ts'
import type { AttemptLimiter } from '../contracts/lockouts.ts'
import type { PasswordHasher, People } from '../contracts/people.ts'
import type { Places } from '../contracts/places.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { Switches } from '../contracts/switches.ts'
import type { TokenRevoker, IssuedTokens, RuleGuard } from '../contracts/tokens.ts'
import type { Cors } from '../http/cors.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { IdentityConfig } from './config.ts'

export interface IdentityUrls {
  /** `{auth_url}`, the issuer: no trailing slash; it may have a path. */
  readonly issuer: string
  /** `{base_url}`, the audience of access tokens: no path. */
  readonly api: string
}

/** All that identity asks of other rooms. */
export interface IdentityDeps {
  readonly people: People
  readonly places: Places
  readonly catalogue: Catalogue
  readonly signer: Signer
  readonly publicKeys: PublicKeys
  /** Of our own tokens: id_token hints. */
  readonly judge: TokenVerifier
  readonly deriver: SecretDeriver
  readonly store: Store
  readonly hasher: PasswordHasher
  /** Lets attempts at passwords in, where that outlives this configuration or serves several processes; else the room's own. */
  readonly attempts?: AttemptLimiter
  readonly issuedTokens: IssuedTokens
  readonly rules: RuleGuard
  readonly tokenRevoker: TokenRevoker
  readonly switches: Switches
  readonly recorder: Recorder
  readonly clock: Clock
  readonly urls: IdentityUrls
  readonly config: IdentityConfig
  /** C4.14, C6.1.2: the header must be spelled exactly `Authorization`. */
  readonly strictHeaderNames: boolean
  /** Absent where pages of other origins may not call (C4.18). */
  readonly cors?: Cors | undefined
}
