import type { Exchange } from '../contracts/exchange.ts'
import type { Principal } from '../contracts/principal.ts'
import type { Place } from '../contracts/places.ts'
import type { RequestTarget } from '../http/request-target.ts'
import {
  admit,
  type Asked,
  authenticate,
  matchAction,
  negotiate,
  type Outcome,
  passServiceMaintenance,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireScope,
} from './checks.ts'
import { judgeBody, type BodyPlan } from './body.ts'
import { judgeUserinfo } from './userinfo.ts'
import type { Findings, Observation } from './findings.ts'
import { goOn } from './go-on.ts'
import type { Runtime } from './runtime.ts'

/** An authorised call: what was judged, and nothing else, is what a backend gets. */
export interface Decision extends Asked {
  readonly target: RequestTarget
  /** Absent where a report-only area lets through whom Postern does not vouch for. */
  readonly principal: Principal | undefined
  /** Where it may call: the business and fund of the URL, once C4.8 held. Absent where `principal` is. */
  readonly place: Place | undefined
  readonly outcome: Outcome
  readonly body: BodyPlan
  /** Set in a report-only area: refusals are held by it. */
  readonly observation: Observation | undefined
}

interface Entered {
  readonly target: RequestTarget
  readonly principal: Principal
}

/**
 * THE PAGE: the decision of C4, one line per check, in order; the first failure is thrown and wins. Synchronous when
 * the token is known. The rest of C4.11 (reading and parsing) follows in `carryOut`, since only then may the body be read.
 */
export function decide(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
): Decision | Promise<Decision> {
  const entered = enter(runtime, exchange, findings) // C4.1 to C4.5
  return goOn(entered, (call) => authorise(runtime, exchange, call, findings)) // C4.6 to C4.11
}

/** C6.3.1: userinfo shares the entrance, then has checks of its own. */
export function decideUserinfo(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
): Principal | Promise<Principal> {
  return goOn(enter(runtime, exchange, findings), ({ principal }) => {
    judgeUserinfo(runtime, exchange.head, principal)
    return principal
  })
}

/** C4.18: a preflight bears no token, and is let through by C4.1 and C4.2 alone. */
export function decidePreflight(runtime: Runtime, exchange: Exchange): undefined | Promise<undefined> {
  readTarget(exchange)
  return passServiceMaintenance(runtime, exchange)
}

function enter(runtime: Runtime, exchange: Exchange, findings: Findings): Entered | Promise<Entered> {
  const target = readTarget(exchange) // C4.1 → 400, 404, 405, 414, 431
  const passed = passServiceMaintenance(runtime, exchange) // C4.2 → 503
  return goOn(passed, () => {
    requireApiVersion(target) // C4.3 → 501
    const authenticated = authenticate(runtime, exchange) // C4.4 → 401, 503
    return goOn(authenticated, (principal) => {
      findings.principal = principal
      admit(runtime, principal, exchange, findings) // C4.5 → 429
      return { target, principal }
    })
  })
}

function authorise(
  runtime: Runtime,
  exchange: Exchange,
  { target, principal }: Entered,
  findings: Findings,
): Decision {
  const { head } = exchange
  const asked = matchAction(runtime.actions, target, head.method) // C4.6 → 404, 405
  const { operation, params, business, fund } = asked
  findings.matched(asked)
  requireScope(principal, operation.scopes) // C4.7 → 401
  const place = requirePlace(runtime.places, principal, asked) // C4.8 → 404
  refuseInPlaceMaintenance(runtime, exchange, principal, operation, business) // C4.9 → 503
  const outcome = negotiate(runtime.negotiation, head, operation) // C4.10 → 406, 501
  const body = judgeBody(head, operation, runtime.bodyLimit) // C4.11 → 415, 413, 400
  return {
    ...{ operation, params, business, fund, target, principal, place, outcome, body },
    observation: undefined,
  }
}
