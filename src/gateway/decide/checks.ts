import { readCode, type Target } from '../../base/config/scopes/scope-token.ts'
import type { UpgradeHead } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Place, Places } from '../../base/contracts/people/places.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { Closure } from '../../base/contracts/calls/switches.ts'
import type { Negotiation, Representation } from '../../base/http/head/accept.ts'
import { parseBearer, parseDpop } from '../../base/http/head/authorization.ts'
import { declaredBody, type Head } from '../../base/http/head/head.ts'
import { checkContentType } from '../../base/http/head/media-type.ts'
import { decodeSegment, type RequestTarget } from '../../base/http/head/request-target.ts'
import { Fault, type FaultCode } from '../../base/kernel/faults.ts'
import {
  type ActionTable,
  type Operation,
  type Route,
  satisfies,
  type ScopeRule,
} from '../actions/action-table.ts'
import type { Runtime } from './runtime.ts'

/** What a decision returns where the token is not known yet: the token is verified, then the call is decided again. */
export class VerifyFirst {
  readonly token: string

  constructor(token: string) {
    this.token = token
  }
}

/** The result of verifying a call's token: who calls, or why the token is refused. */
export type Verification = Principal | Fault

/**
 * C4.1: the request could be read (C3.4, C3.6, limits), the service is not overloaded, and the path is below `/api`.
 * @throws the fault that reading met, or `outside`
 */
export function readTarget({ target, refusal }: Pick<Exchange, 'target' | 'refusal'>): RequestTarget {
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
  if (caller === undefined || !closure.clients.has(caller.clientKey))
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

export const API_VERSION = '1.0'

/** Requires the one version of the API (C4.3, C3.1). @throws Fault `unknown_api_version`, also where the URL has none */
export function requireApiVersion({ segments }: RequestTarget): void {
  if (segments[1] !== API_VERSION) throw new Fault('unknown_api_version')
}

const NO_TOKEN = {
  none: 'no_credentials',
  'other-scheme': 'other_scheme',
  malformed: 'invalid_token',
} as const satisfies Record<string, FaultCode>

/** Reads the credentials of a call (C4.14). A deployment that takes no bound tokens has no scheme DPoP. */
function credentialsOf(runtime: Runtime, head: Head): ReturnType<typeof parseBearer> {
  const { proofs, tokens } = runtime
  const credentials = parseBearer(head, runtime, tokens.isKnown)
  return credentials.kind === 'other-scheme' && proofs !== undefined
    ? parseDpop(head, runtime, tokens.isKnown)
    : credentials
}

/** Requires a genuine, unexpired, unrevoked access token of this issuer and audience (C4.4). @throws its faults (order.ts) */
export function authenticate(
  runtime: Runtime,
  { head }: Exchange,
  verified: Verification | undefined,
): Principal | VerifyFirst {
  if (verified instanceof Fault) throw verified
  if (verified !== undefined) return verified
  const { tokens } = runtime
  const credentials = credentialsOf(runtime, head)
  if (credentials.kind !== 'token') throw new Fault(NO_TOKEN[credentials.kind])
  return tokens.find(credentials.token) ?? new VerifyFirst(credentials.token)
}

/**
 * Applies the client's limits (C4.5).
 * @throws Fault `rate_limited`, `too_many_calls`; the headers of the rate are in the findings by then
 */
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

/** The action that the URL names, with its business and fund (C3.2). Whether those exist is not known yet. */
export interface NamedAction {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly business: string
  readonly fund: string | undefined
}

/** Index of the area's segment in `/api/{version}/b/{business}/{area}` and `/api/{version}/f/{business}/{fund}/{area}`. */
export const AREA_AT: Readonly<Record<string, number>> = { b: 4, f: 5 }

/**
 * Finds the action and its method (C4.6). HEAD is offered wherever GET is.
 * @throws Fault `unknown_action`, `method_not_allowed`
 */
export function matchAction(
  table: ActionTable<Route>,
  { segments }: RequestTarget,
  method: string,
): NamedAction {
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

const NO_PARAMS: NamedAction['params'] = Object.freeze({})

function paramsOf(names: readonly string[], values: readonly string[]): NamedAction['params'] {
  if (names.length === 0) return NO_PARAMS
  const params = Object.create(null) as Record<string, string>
  for (let at = 0; at < names.length; at++) params[names[at] ?? ''] = values[at] ?? ''
  return params
}

/** Requires that the token's scope satisfies the action's (C4.7). @throws Fault `insufficient_scope` */
export function requireScope({ scopes }: Principal, rule: ScopeRule): void {
  if (!satisfies(scopes, rule)) throw new Fault('insufficient_scope', { scope: rule.challenge })
}

/**
 * C4.8: the token's target is the URL's business (and fund), and they exist. All failures are one fault. Whether the place
 * exists is asked only where the token is for it: so neither bytes nor time show a client what else exists (C4.12). A place
 * of the store that this process does not know is read first.
 * @returns the business and fund as codes; a promise only where the store is asked. With `funds: any`, and where there is
 *   no directory, nothing else keeps text that is no code from being sent upstream (T3.11).
 * @throws Fault `unknown_place`; `place_judge_unavailable` as the promise's result
 */
export function requirePlace(
  places: Places | undefined,
  { target }: Principal,
  named: NamedAction,
): Place | Promise<Place> {
  const fund = named.fund === undefined ? undefined : readCode(named.fund)
  const isCode = named.fund === undefined || fund !== undefined
  if (target === undefined || !isCode || !targets(target, named)) throw new Fault('unknown_place')
  const place = { business: target.business, fund }
  const exists = places === undefined || places.exists(named.business, named.fund)
  if (exists === undefined) return lookForPlace(places, place)
  if (!exists) throw new Fault('unknown_place')
  return place
}

async function lookForPlace(places: Places | undefined, place: Place): Promise<Place> {
  const exists = await places?.look(place.business, place.fund).catch((cause: unknown) => {
    throw new Fault('place_judge_unavailable', { cause })
  })
  if (exists !== true) throw new Fault('unknown_place')
  return place
}

/** A business target covers the business and all its funds, a fund target that fund only (C5.4). */
export function targets(target: Target | undefined, { business, fund }: NamedAction): boolean {
  if (target === undefined || target.business !== business) return false
  return target.level === 'business' || target.fund === fund
}

/**
 * Requires that neither this business, nor this area, nor this backend is under maintenance (C4.9).
 * @throws Fault `place_maintenance`
 */
export function refuseInPlaceMaintenance(
  { switches }: Runtime,
  exchange: Exchange,
  principal: Principal | undefined,
  { action, backend }: Operation,
  business: string,
): void {
  const closure = switches.place(business, action.area, backend.name)
  if (closure === undefined || closure.admitsAddress(exchange.clientAddress)) return
  if (principal === undefined || !closure.clients.has(principal.clientKey))
    throw refusal('place_maintenance', closure)
}

/** How a success is written: enveloped in a negotiated format, or of the action's own type (C7.1). */
export type Negotiated =
  | ({ readonly kind: 'envelope' } & Representation)
  | { readonly kind: 'own'; readonly version: number; readonly type: string }

/** Negotiates the media type, then the version (C4.10). @throws Fault `not_acceptable`, `unknown_action_version` */
export function negotiate(negotiation: Negotiation, { headers }: Head, operation: Operation): Negotiated {
  const { produces, versions } = operation
  if (produces === undefined) {
    const { format, version, contentType } = negotiation.negotiate(headers.accept, versions)
    return { kind: 'envelope', format, version, contentType }
  }
  const type = negotiation.negotiateOwn(headers.accept, produces)
  return { kind: 'own', version: versions.defaultVersion, type }
}

/**
 * Whether a request asks for an upgrade that the action of its target allows (T2.5). It decides only how the request is read:
 * one that asks for an upgrade where there is none passes the same checks, as a call of HTTP/1.1.
 */
export function takesUpgrade({ actions }: Runtime, request: UpgradeHead, target: RequestTarget): boolean {
  try {
    const { upgrade, backend } = matchAction(actions, target, 'GET').operation
    return upgrade && backend.upgrade?.isAsked(request) === true
  } catch {
    return false
  }
}

const USERINFO_METHODS = ['GET', 'HEAD', 'POST']
export const USERINFO_PATH = '/api/1.0/u/connect/userinfo'

export const isUserinfo = ({ userinfo }: Runtime, { target }: Exchange): boolean =>
  userinfo !== undefined && !(target instanceof Fault) && target.path === USERINFO_PATH

/**
 * C6.3.1: the method, then the scope `openid`, then Accept, then Content-Type.
 * @throws Fault `method_not_allowed`, `insufficient_scope`, `not_acceptable`, `unsupported_media_type`
 */
export function checkUserinfo({ negotiation }: Runtime, head: Head, principal: Principal): void {
  const scopes: ReadonlySet<string> = principal.scopes
  if (!USERINFO_METHODS.includes(head.method))
    throw new Fault('method_not_allowed', { allow: USERINFO_METHODS })
  if (principal.isMachine || !scopes.has('openid')) throw new Fault('insufficient_scope', { scope: 'openid' })
  negotiation.requireJson(head.headers.accept)
  checkContentType({
    contentType: head.headers['content-type'],
    contentEncoding: head.headers['content-encoding'],
    hasBody: declaredBody(head) !== 0,
  })
}
