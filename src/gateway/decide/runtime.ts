import type { Admission } from '../../base/contracts/calls/admission.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import type { ProofVerifier, ReplayMemory } from '../../base/contracts/people/dpop.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import type { Resource } from '../../base/contracts/people/principal.ts'
import type { Switches } from '../../base/contracts/calls/switches.ts'
import type { Negotiation } from '../../base/http/head/accept.ts'
import type { Cors } from '../../base/http/head/cors.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { ActionTable, Route } from '../actions/action-table.ts'
import type { Conversions } from '../conversion/conversions.ts'
import type { CallTokens } from './token-check.ts'

/** What checks the proofs of calls (C4.4a). */
export interface CallProofs {
  readonly verifier: ProofVerifier
  /** The origin of `{base_url}`, as URLs are written: proofs name it. */
  readonly origin: string
  /** The memory of this process: no store is asked for a call. */
  readonly memory: ReplayMemory
}

/** Everything that a decision reads, frozen: one snapshot per call, swapped whole by a reload. */
export interface Runtime {
  readonly actions: ActionTable<Route>
  /** Areas in which nothing is refused; usually there are none. */
  readonly reportOnly: ReadonlyMap<string, Backend>
  readonly negotiation: Negotiation
  readonly tokens: CallTokens
  /** Absent in a sidecar that takes no tokens which are bound to a key. */
  readonly proofs: CallProofs | undefined
  /** Absent in a sidecar: then the target is compared with the URL only (C11.2). */
  readonly places: Places | undefined
  readonly switches: Switches
  readonly admission: Admission
  readonly audit: AuditTrail
  /** Absent where another service issues the tokens. */
  readonly userinfo: Resource | undefined
  readonly recorder: Recorder
  readonly clock: Clock
  /** `{base_url}`: the realm of challenges. */
  readonly baseUrl: string
  /** Where clients find the metadata of the API, if challenges tell it (C4.13). */
  readonly resourceMetadata?: string | undefined
  /** `{auth_url}`: the issuer of what Postern signs itself. */
  readonly issuer: string
  /** Authority of `{base_url}`, which upstreams get as the host that was called. */
  readonly host: string
  readonly bodyLimit: number
  /** The most bytes of an upstream's answer that may be held for a conversion. */
  readonly answerLimit: number
  readonly conversions: Conversions
  /** Whether the header must be spelled exactly `Authorization` (C4.14). */
  readonly strictHeaderNames: boolean
  /** Whether `bearer` is taken as `Bearer` is (C6.1.3). */
  readonly anySchemeCase: boolean
  /** Absent where pages of other origins may not call (C4.18). */
  readonly cors: Cors | undefined
}
