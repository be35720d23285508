/** Tokens of foreign issuers that are no JWS: an extension verifies them (C11.2). */
import type { TokenVerifier } from '../../../base/contracts/people/keys.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { IssuerConfig } from './issuers-schema.ts'

export interface OpaqueVerifierParts {
  readonly issuer: string
  /** The URL of `OpaqueTokens.endpoint`. Rejects with Fault `token_judge_unavailable` if it is not known at the moment. */
  readonly endpoint: () => Promise<string>
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
}

/** Rejects with Fault `token_judge_unavailable` if it cannot be found out now whether a token is valid. */
export interface OpaqueVerifier extends TokenVerifier {
  /** From now on no token that it has verified is accepted. */
  close(): void
}

/** For the opaque tokens of one issuer. */
export interface OpaqueTokens {
  /** A reload that gives the same keeps the verifier. */
  readonly id: string
  /** The member of the issuer's metadata that says where it is asked. Undefined: the configuration says that. */
  readonly endpoint: string | undefined
  readonly open: (parts: OpaqueVerifierParts) => OpaqueVerifier
}

/** Undefined for an issuer whose opaque tokens are refused. */
export type FindOpaqueTokens = (config: Pick<IssuerConfig, 'issuer'>) => OpaqueTokens | undefined
