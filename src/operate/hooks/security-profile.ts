/** Security of clients and of tokens that an extension adds. One extension does so at most. */
import type { SecretDeriver } from '../../base/contracts/people/keys.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { CallProofs } from '../../gateway/decide/runtime.ts'
import { type ClientSecurity, NO_SECURITY } from '../../identity/dependencies/client-security.ts'
import type { IdentityDeps } from '../../identity/dependencies/dependencies.ts'
import type { Endpoint } from '../../identity/steps/endpoint.ts'
import type { Configuration } from '../settings/configuration.ts'

interface CallParts {
  readonly configuration: Configuration
  /** Undefined in a sidecar. */
  readonly keys: SecretDeriver | undefined
  readonly baseUrl: string
  readonly recorder: Recorder
}

/** The parts of one configuration's identity. */
export type IdentityParts = Pick<
  IdentityDeps,
  'clock' | 'config' | 'deriver' | 'outbound' | 'people' | 'recorder' | 'store' | 'urls'
>

/** Opened once for a process. */
export interface SecurityProfile {
  /** They stand behind the authorization endpoint in the discovery document. */
  readonly endpoints: readonly Endpoint[]
  /** A sentence about bound tokens, for the description of the API; empty if there are none. */
  readonly note: string
  /** Undefined if a configuration takes no tokens that are bound to a key. */
  callProofs(parts: CallParts): CallProofs | undefined
  clientSecurity(parts: IdentityParts): ClientSecurity
}

export type OpenSecurityProfile = (parts: {
  readonly clock: Clock
  readonly recorder: Recorder
}) => SecurityProfile

/** No client has more than a secret, and no bound token is good. */
export const NO_PROFILE: OpenSecurityProfile = () => ({
  endpoints: [],
  note: '',
  callProofs: () => undefined,
  clientSecurity: () => NO_SECURITY,
})
