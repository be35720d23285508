import type { AuditOutcome } from '../../base/contracts/records/audit.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Place } from '../../base/contracts/people/places.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import { type Fault, toFault } from '../../base/kernel/faults.ts'
import type { Operation } from '../actions/action-table.ts'
import { type BodyPlan, checkBody, checkParameters } from './body.ts'
import {
  admit,
  authenticate,
  checkUserinfo,
  matchAction,
  type NamedAction,
  negotiate,
  type Negotiated,
  passServiceMaintenance,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireProof,
  requireScope,
  type Verification,
  VerifyFirst,
} from './checks.ts'
import type { QueryValues } from '../actions/parameters.ts'
import type { Runtime } from './runtime.ts'

/** An authorised call. A backend gets what was checked, and nothing else. */
export interface Decision extends NamedAction {
  readonly target: RequestTarget
  /** Absent where a report-only area lets a call through that Postern would have refused. */
  readonly principal: Principal | undefined
  /** The business and fund of the URL, once C4.8 has passed. Absent where `principal` is. */
  readonly place: Place | undefined
  readonly negotiated: Negotiated
  /** Its declared parameters (C4.11). */
  readonly query: QueryValues
  readonly body: BodyPlan
  /** Set in a report-only area: it keeps what the call would have been refused for. */
  readonly observation: ObservedFault | undefined
}

interface Entered {
  readonly target: RequestTarget
  readonly principal: Principal
}

/** Makes the checks C4.1 to C4.5, which all of `/api` shares. */
function enter(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  verified: Verification | undefined,
): Entered | VerifyFirst {
  const target = readTarget(exchange) // C4.1 → 400, 404, 405, 414, 431
  const passed = passServiceMaintenance(runtime, exchange, verified) // C4.2 → 503
  if (passed instanceof VerifyFirst) return passed
  requireApiVersion(target) // C4.3 → 501
  const principal = authenticate(runtime, exchange, passed ?? verified) // C4.4 → 401, 503
  if (principal instanceof VerifyFirst) return principal
  requireProof(runtime, exchange, principal, findings) // C4.4a → 401
  findings.principal = principal
  admit(runtime, principal, exchange, findings) // C4.5 → 429
  return { target, principal }
}

/**
 * The decision pipeline of C4: one line per check, in order; the first failure is thrown and wins. It waits for
 * nothing. Where the token is not known yet, it returns `VerifyFirst` before it has counted anything, and is called
 * once more with the result and fresh findings. Where the place has to be read from the store, it returns a promise;
 * everything up to C4.8 has passed by then. The rest of C4.11 (reading and parsing the body) follows in carry-out.ts:
 * the body may be read only when all of this has passed.
 * @param verified the result of verifying the call's token, in the second decision
 * @throws the faults of order.ts
 */
export function decide(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  verified?: Verification,
): Decision | VerifyFirst | Promise<Decision> {
  const entered = enter(runtime, exchange, findings, verified) // C4.1 to C4.5
  if (entered instanceof VerifyFirst) return entered
  const { target, principal } = entered
  const named = matchAction(runtime.actions, target, exchange.head.method) // C4.6 → 404, 405
  findings.matched(named)
  requireScope(principal, named.operation.scopes) // C4.7 → 401
  const place = requirePlace(runtime.places, principal, named) // C4.8 → 404, 503
  return place instanceof Promise
    ? place.then((found) => decideRest(runtime, exchange, entered, named, found))
    : decideRest(runtime, exchange, entered, named, place)
}

/** Makes the checks C4.9 to C4.11, which follow once the place is known. */
function decideRest(
  runtime: Runtime,
  exchange: Exchange,
  { target, principal }: Entered,
  { operation, params, business, fund }: NamedAction,
  place: Place,
): Decision {
  const { head } = exchange
  refuseInPlaceMaintenance(runtime, exchange, principal, operation, business) // C4.9 → 503
  const negotiated = negotiate(runtime.negotiation, head, operation) // C4.10 → 406, 501
  const query = checkParameters(target, operation) // C4.11 → 400
  const body = checkBody(head, operation, runtime.bodyLimit) // C4.11 → 415, 413, 400
  return {
    operation,
    params,
    business,
    fund,
    target,
    principal,
    place,
    negotiated,
    query,
    body,
    observation: undefined,
  }
}

/** Decides about userinfo, which shares C4.1 to C4.5 and then has checks of its own (C6.3.1). Otherwise as `decide`. */
export function decideUserinfo(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  verified?: Verification,
): Principal | VerifyFirst {
  const entered = enter(runtime, exchange, findings, verified)
  if (entered instanceof VerifyFirst) return entered
  checkUserinfo(runtime, exchange.head, entered.principal)
  return entered.principal
}

export const isPreflight = ({ cors }: Runtime, { head }: Exchange): boolean =>
  cors?.isPreflight(head) === true

/** Decides about a preflight, which bears no token: C4.1 and C4.2 alone decide about it (C4.18). Otherwise as `decide`. */
export function decidePreflight(
  runtime: Runtime,
  exchange: Exchange,
  verified?: Verification,
): VerifyFirst | undefined {
  readTarget(exchange)
  const passed = passServiceMaintenance(runtime, exchange, verified)
  return passed instanceof VerifyFirst ? passed : undefined
}

export interface OutcomeRecord {
  /** Resolves when it is written, or cannot be. @returns false if no intent waits for its outcome */
  settle(outcome: CallOutcome): Promise<boolean>
}

export interface CallOutcome {
  readonly outcome: AuditOutcome
  /** The fault's code. */
  readonly reason: string | undefined
  readonly status: number
  /** The upstream's status, of the answer that the client gets. */
  readonly upstreamStatus: number | undefined
}

const NONE: NamedAction['params'] = Object.freeze({})

/**
 * What a decision has found out so far: it is logged and counted, also of a call that is refused half way. Every
 * member exists from the start: objects of one shape are faster.
 */
export class Findings {
  principal: Principal | undefined = undefined
  operation: Operation | undefined = undefined
  business: string | undefined = undefined
  fund: string | undefined = undefined
  params: NamedAction['params'] = NONE
  /** Headers of the answer, whatever it is (rate limits). */
  headers: Readonly<Record<string, string>> | undefined = undefined
  /** Headers for the client's next proofs (C4.4a). */
  proofHeaders: Readonly<Record<string, string>> | undefined = undefined
  /** How long the call waited for the backend, in milliseconds. */
  upstreamMs: number | undefined = undefined
  upstreamStatus: number | undefined = undefined
  /** The trace that is sent with the call to the service. */
  traceId: string | undefined = undefined
  /** The version of the action that was negotiated. */
  version: number | undefined = undefined
  /** Set for a call of a report-only area. */
  observation: ObservedFault | undefined = undefined
  /** Set for a call that has a record in the audit trail, or may get one. */
  record: OutcomeRecord | undefined = undefined

  matched({ operation, params, business, fund }: NamedAction): void {
    this.operation = operation
    this.params = params
    this.business = business
    this.fund = fund
  }
}

/** Keeps the fault for which a call of a report-only area would have been refused. */
export class ObservedFault {
  readonly area: string
  #fault: Fault | undefined

  constructor(area: string) {
    this.area = area
  }

  /** The first one, which would have won (C4). */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /** Makes a check. Keeps what it throws, and answers undefined then. */
  hold<T>(check: () => T): T | undefined {
    try {
      return check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  async holdLater<T>(check: () => Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  keep(thrown: unknown): void {
    this.#fault ??= toFault(thrown)
  }

  /** The value of `X-Postern-Decision`, for the upstream. No client can send that header (C8.2). */
  get header(): string {
    return this.#fault === undefined ? 'allow' : `would-refuse; reason=${this.#fault.code}`
  }
}
