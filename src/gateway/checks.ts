import type { Exchange } from '../contracts/exchange.ts'
import { decodeSegment, type RequestTarget } from '../http/request-target.ts'
import { Fault, type FaultCode } from '../kernel/faults.ts'
import type { Principal } from '../contracts/principal.ts'
import type { Closure } from '../contracts/switches.ts'
import { type Operation, type Route, satisfies, type ScopeRule } from './action.ts'
import type { Runtime } from './runtime.ts'
import { parseBearer } from '../http/authorization.ts'
import type { ActionTable } from './action-table.ts'
import type { Place, Places } from '../contracts/places.ts'
import { readCode, type Target } from '../scopes/scope-token.ts'
import type { Head } from '../http/head.ts'
import type { Negotiation, Representation } from '../http/accept.ts'

/** What a decision answers whose token is not known yet: once the token was verified, the call is decided again. */
export class VerifyFirst {
  readonly token: string

  constructor(token: string) {
    this.token = token
  }
}

/** What the verification of a call's token came to: who calls, or why the token is refused. */
export type Verification = Principal | Fault

/** C4.1: the request could be read (C3.4, C3.6, limits), the service takes it on, and its path is one of ours. */
export function readTarget({ target, refusal }: Exchange): RequestTarget {
  if (target instanceof Fault) throw target
  if (refusal !== undefined) throw refusal
  if (target.segments[0] !== 'api') throw new Fault('outside')
  return target
}

const refusal = (code: FaultCode, { retryAfter, message }: Closure): Fault =>
  new Fault(code, { retryAfter, ...(message !== undefined && { notice: message }) })

/**
 * C4.2, C9.2: while the whole service is under maintenance, only callers on its allow list pass. A client on the list
 * must show a valid token first; everybody else gets 503, also with a bad token.
 * @returns the caller, where it had to be found out here
 * @throws Fault `service_maintenance`
 */
export function passServiceMaintenance(
  runtime: Runtime,
  exchange: Exchange,
  verified: Verification | undefined,
): Principal | VerifyFirst | undefined {
  const closure = runtime.switches.service()
  if (closure === undefined || closure.admitsAddress(exchange.clientAddress)) return undefined
  const caller = closure.clients.size === 0 ? undefined : findCaller(runtime, exchange, verified)
  if (caller instanceof VerifyFirst) return caller
  if (caller === undefined || !closure.clients.has(caller.client))
    throw refusal('service_maintenance', closure)
  return caller
}

function findCaller(
  runtime: Runtime,
  exchange: Exchange,
  verified: Verification | undefined,
): Principal | VerifyFirst | undefined {
  try {
    return authenticate(runtime, exchange, verified)
  } catch {
    return undefined
  }
}

/** C4.9: maintenance of this business, area or backend. */
export function refuseInPlaceMaintenance(
  { switches }: Runtime,
  exchange: Exchange,
  principal: Principal | undefined,
  { action }: Operation,
  business: string,
): void {
  const closure = switches.place(business, action.area, action.backend.name)
  if (closure === undefined || closure.admitsAddress(exchange.clientAddress)) return
  if (principal === undefined || !closure.clients.has(principal.client))
    throw refusal('place_maintenance', closure)
}

export const API_VERSION = '1.0'

/** C4.3, C3.1: one version is known; a missing one is as unknown as any other. */
export function requireApiVersion({ segments }: RequestTarget): void {
  if (segments[1] !== API_VERSION) throw new Fault('unknown_api_version')
}

const NO_TOKEN = {
  none: 'no_credentials',
  'other-scheme': 'other_scheme',
  malformed: 'invalid_token',
} as const satisfies Record<string, FaultCode>

/**
 * C4.4: a genuine, unexpired, unrevoked access token of this issuer and audience.
 * @param verified what the verification of this call's token came to, if there was one
 * @throws Fault `no_credentials`, `other_scheme`, `invalid_token`; `token_judge_unavailable` as the verification's result
 */
export function authenticate(
  runtime: Runtime,
  { head }: Exchange,
  verified: Verification | undefined,
): Principal | VerifyFirst {
  if (verified instanceof Fault) throw verified
  if (verified !== undefined) return verified
  const { tokens } = runtime
  const credentials = parseBearer(head, runtime, tokens.isKnown)
  if (credentials.kind !== 'token') throw new Fault(NO_TOKEN[credentials.kind])
  return tokens.find(credentials.token) ?? new VerifyFirst(credentials.token)
}

/** C4.5: the client is within its rate and its calls in flight. What it is told of that goes on every answer. */
export function admit(
  { admission }: Runtime,
  principal: Principal,
  exchange: Exchange,
  findings: { headers?: Readonly<Record<string, string>> | undefined },
): void {
  const verdict = admission.admit(principal, exchange)
  if (verdict === undefined) return
  findings.headers = verdict.headers
  if (verdict.refusal !== undefined) throw verdict.refusal
}

/** What the URL names (C3.2), before it is known whether any of it exists. */
export interface Asked {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly business: string
  readonly fund: string | undefined
}

/** Index of the area's segment in `/api/{version}/b/{business}/{area}` and `/api/{version}/f/{business}/{fund}/{area}`. */
export const AREA_AT: Readonly<Record<string, number>> = { b: 4, f: 5 }

/** C4.6: the area and action exist, and offer this method (HEAD wherever GET is). */
export function matchAction(table: ActionTable<Route>, { segments }: RequestTarget, method: string): Asked {
  const level = segments[2] ?? ''
  const areaAt = AREA_AT[level]
  const area = areaAt === undefined ? undefined : segments[areaAt]
  const match =
    areaAt === undefined || area === undefined ? undefined : table.find(level, area, segments, areaAt + 1)
  if (match === undefined) throw new Fault('unknown_action')
  const operation = match.value.methods.get(method)
  if (operation === undefined) throw new Fault('method_not_allowed', { allow: match.value.allow })
  return {
    operation,
    params: paramsOf(operation.action.parameters, match.values),
    business: decodeSegment(segments[3] ?? ''),
    fund: level === 'f' ? decodeSegment(segments[4] ?? '') : undefined,
  }
}

const NO_PARAMS: Asked['params'] = Object.freeze({})

/** The values under the names that the action has for them. */
function paramsOf(names: readonly string[], values: readonly string[]): Asked['params'] {
  if (names.length === 0) return NO_PARAMS
  const params = Object.create(null) as Record<string, string>
  for (let at = 0; at < names.length; at++) params[names[at] ?? ''] = values[at] ?? ''
  return params
}

/** C4.7: the token's scope satisfies the action's. */
export function requireScope({ scopes }: Principal, rule: ScopeRule): void {
  if (!satisfies(scopes, rule)) throw new Fault('insufficient_scope', { scope: rule.challenge })
}

/**
 * C4.8: the token's target is the URL's business (and fund), and they exist. The three failures are one fault, and
 * both questions are always asked, so that neither bytes nor time tell them apart (C4.12).
 *
 * Answers the place as codes: what the URL says becomes one here. With `funds: any`, and where there is no directory,
 * this alone keeps what is no code from being told upstream (T3.11).
 */
export function requirePlace(places: Places | undefined, { target }: Principal, asked: Asked): Place {
  const isTarget = targets(target, asked)
  const exists = places === undefined || existsIn(places, asked)
  const fund = asked.fund === undefined ? undefined : readCode(asked.fund)
  const isCode = asked.fund === undefined || fund !== undefined
  if (target === undefined || !isTarget || !exists || !isCode) throw new Fault('unknown_place')
  return { business: target.business, fund }
}

/** A business target opens the business and all its funds, a fund target that fund only (C5.4). */
function targets(target: Target | undefined, { business, fund }: Asked): boolean {
  if (target === undefined || target.business !== business) return false
  return target.level === 'business' || target.fund === fund
}

function existsIn(places: Places, { business, fund }: Asked): boolean {
  const known = places.findBusiness(business)
  if (known === undefined) return false
  const funds: 'any' | ReadonlySet<string> = known.funds
  return fund === undefined || funds === 'any' || funds.has(fund)
}

/** How a success is written: enveloped in a negotiated format, or of the action's own type (C7.1). */
export type Outcome =
  | ({ readonly kind: 'envelope' } & Representation)
  | { readonly kind: 'own'; readonly version: number; readonly type: string }

/** C4.10: the media type, then the action version. */
export function negotiate(negotiation: Negotiation, { headers }: Head, operation: Operation): Outcome {
  const { produces, versions } = operation
  if (produces === undefined) {
    const { format, version, contentType } = negotiation.negotiate(headers.accept, versions)
    return { kind: 'envelope', format, version, contentType }
  }
  const type = negotiation.negotiateOwn(headers.accept, produces)
  return { kind: 'own', version: versions.defaultVersion, type }
}

/**
 * Whether an upgrade to websocket at this target is to be taken (T2.5). Nothing is decided by it, but how the request
 * is served: upgrades that are not taken run through the same checks, as calls of HTTP/1.1.
 */
export function takesWebsocket({ actions }: Runtime, target: RequestTarget): boolean {
  try {
    return matchAction(actions, target, 'GET').operation.websocket
  } catch {
    return false
  }
}
