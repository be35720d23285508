import type { Admission } from '../../base/contracts/calls/admission.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import type { Resource } from '../../base/contracts/people/principal.ts'
import type { Switches } from '../../base/contracts/calls/switches.ts'
import type { Negotiation } from '../../base/http/head/accept.ts'
import type { Cors } from '../../base/http/head/cors.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { ActionTable, Route } from '../actions/action-table.ts'
import type { Conversions } from '../conversion/conversions.ts'
import type { CallTokens } from './token-check.ts'

/** A call whose token may be bound to a key. */
export interface BoundCall {
  readonly exchange: Exchange
  /** The thumbprint of that key. */
  readonly key: string
  /** The credentials of the call, by the scheme of bound tokens. */
  readonly token: string
}

/** Checks the proofs of calls (C4.4a). An extension does: without it no token that is bound to a key is good. */
export interface CallProofs {
  /** The scheme by which bound tokens are sent, in any case. */
  readonly scheme: string
  /** The signature algorithms of proofs, which challenges name. */
  readonly algorithms: string
  /**
   * Checks the proof, and uses it up. It asks no store: each process remembers the proofs of its calls.
   * @returns headers for the answer
   * @throws the faults of C4.4a (order.ts)
   */
  check(call: BoundCall): Readonly<Record<string, string>> | undefined
  /** Counts what became of a proof: `accepted`, or the fault. */
  count(door: 'api' | 'userinfo', result: string): void
  /** The same, but nothing is used up or counted. */
  preview(): CallProofs
}

/** Everything that a decision reads, frozen: one snapshot per call, swapped whole by a reload. */
export interface Runtime {
  readonly actions: ActionTable<Route>
  /** Areas in which nothing is refused; usually there are none. */
  readonly reportOnly: ReadonlyMap<string, Backend>
  readonly negotiation: Negotiation
  readonly tokens: CallTokens
  /** Absent where no tokens are taken that are bound to a key. */
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
