import { type Catalogue, smallestScopes } from '../../base/config/scopes/catalogue.ts'
import { isTargetValue, readCode, type Target } from '../../base/config/scopes/scope-token.ts'
import type { UpgradeHead } from '../../base/contracts/calls/backend.ts'
import type { EarlyPreview } from '../../base/contracts/calls/admission.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { CheckDescription, CheckResult } from '../../base/contracts/calls/explanation.ts'
import type { Place, Places } from '../../base/contracts/people/places.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { ClosedBy, Closure, Switches } from '../../base/contracts/calls/switches.ts'
import type { Negotiation, Representation } from '../../base/http/head/accept.ts'
import {
  type CallCredentials,
  parseBearer,
  parseToken,
  usesScheme,
} from '../../base/http/head/authorization.ts'
import { declaredBody, type Head } from '../../base/http/head/head.ts'
import { checkContentType } from '../../base/http/head/media-type.ts'
import { decodeSegment, type RequestTarget } from '../../base/http/head/request-target.ts'
import { Fault, type FaultCode, toFault } from '../../base/kernel/faults.ts'
import { instantText } from '../../base/kernel/units.ts'
import {
  type ActionTable,
  AREA_AT,
  type Operation,
  type Route,
  satisfies,
  type ScopeRule,
} from '../actions/action-table.ts'
import { rateText } from '../limits/load-guard.ts'
import type { Runtime } from './runtime.ts'
import { targetTextOf } from './token-check.ts'

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

/** Describes the result of C4.1. @param early what the limits ahead of the decision say; undefined if there are none */
export function explainRequest(
  { clientAddress, scheme }: Exchange,
  target: RequestTarget | undefined,
  early: EarlyPreview | undefined,
  reportOnly: string | undefined,
  { fault }: CheckResult,
): CheckDescription {
  const addressRate = early?.rate
  const wait = fault?.code === 'address_rate_limited' && addressRate ? ` ${rateText(addressRate)}.` : ''
  const said = fault === undefined ? 'The request can be read.' : `${fault.publicText}${wait}`
  return {
    facts: { path: target?.path, clientAddress, scheme, addressRate, shedShare: early?.shed, reportOnly },
    words: `${said} It comes from ${clientAddress}.`,
  }
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

/** Describes the result of C4.3. */
export function explainVersion(
  target: RequestTarget | undefined,
  { verdict }: CheckResult,
): CheckDescription {
  const named = target?.segments[1]
  const what = named === undefined ? 'no API version' : `the API version ${named}`
  const failed =
    target === undefined ? 'The path is not known.' : `The path names ${what}; there is ${API_VERSION}.`
  return {
    facts: { named, known: [API_VERSION] },
    words: verdict === 'passed' ? `API version ${API_VERSION}.` : failed,
  }
}

const NO_TOKEN = {
  none: 'no_credentials',
  'other-scheme': 'other_scheme',
  malformed: 'invalid_token',
} as const satisfies Record<string, FaultCode>

/** Reads the credentials of a call (C4.14). A deployment that takes no bound tokens has the scheme Bearer only. */
export function credentialsOf(runtime: Runtime, head: Head): CallCredentials {
  const { proofs, tokens } = runtime
  const credentials = parseBearer(head, runtime, tokens.isKnown)
  return credentials.kind === 'other-scheme' && proofs !== undefined
    ? parseToken(head, proofs.scheme, runtime, tokens.isKnown)
    : credentials
}

/** The scheme of a call's challenge (C4.13): that by which it sent its token. */
export const tokenSchemeOf = ({ proofs }: Pick<Runtime, 'proofs'>, head: Head): string =>
  proofs !== undefined && usesScheme(head, proofs.scheme) ? proofs.scheme : 'Bearer'

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

/** The results of checking a proof that the answer needs. */
interface ProofFindings {
  proofHeaders?: Readonly<Record<string, string>> | undefined
}

/**
 * Requires proof of the key that a token is bound to, for this very call (C4.4a). A token that is bound to no key is sent as
 * Bearer. For a Bearer call only one letter is read here.
 * @throws its faults (order.ts)
 */
export function requireProof(
  runtime: Runtime,
  exchange: Exchange,
  { confirmation }: Principal,
  findings: ProofFindings,
): void {
  const { proofs, tokens } = runtime
  const { head } = exchange
  if (confirmation === undefined && (proofs === undefined || !usesScheme(head, proofs.scheme))) return
  // No such token is verified here without them.
  if (proofs === undefined) throw new Fault('internal', { detail: 'no proof can be checked' })
  const count = (result: string): void =>
    proofs.count(isUserinfo(runtime, exchange) ? 'userinfo' : 'api', result)
  try {
    if (confirmation === undefined) throw new Fault('unbound_token')
    const credentials = parseToken(head, proofs.scheme, runtime, tokens.isKnown)
    if (credentials.kind !== 'token') throw new Fault('bound_token')
    findings.proofHeaders = proofs.check({ exchange, key: confirmation, token: credentials.token })
    count('accepted')
  } catch (thrown) {
    count(toFault(thrown).code)
    throw thrown
  }
}

/** Describes the result of C4.4a. The key is named by its thumbprint. */
export function explainProof(
  scheme: string,
  principal: Principal | undefined,
  isVerified: boolean,
  { fault }: CheckResult,
): CheckDescription {
  const key = principal?.confirmation
  const detail = fault?.facts.detail
  const bound =
    key !== undefined
      ? `The token is bound to the key ${key}.`
      : isVerified
        ? 'The token is not bound to a key.'
        : 'Whether the token is bound to a key is not known.'
  return {
    facts: { key, scheme, problem: detail },
    words:
      fault === undefined
        ? bound
        : `${fault.publicText}${detail === undefined ? '' : ` In detail: ${detail}.`}`,
  }
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

/** Describes the result of C4.7: values held, implied and missing, and the smallest set that would do (C14.3). */
export function explainScope(
  principal: Principal | undefined,
  rule: ScopeRule | undefined,
  catalogue: Catalogue,
): CheckDescription {
  if (rule === undefined) return { facts: {}, words: 'Which scope it takes is not known without the action.' }
  const required = smallestScopes(rule.groups, catalogue)
  const takes = `The action takes ${valuesText(required)}`
  if (principal === undefined) return { facts: { required }, words: `${takes}; nobody is known to call.` }
  const held = [...principal.scopes].filter((value) => !isTargetValue(value))
  const own: ReadonlySet<string> = new Set(held)
  const implied = [...catalogue.close(held)].filter((value) => !own.has(value))
  const missing = smallestScopes(rule.groups, catalogue, own)
  return {
    facts: { held, implied, missing, required },
    words:
      missing?.length === 0
        ? `The token's scope is enough. ${takes}.`
        : `The token has ${valuesText(held)}. With ${valuesText(missing)} it would be enough.`,
  }
}

function valuesText(values: readonly string[] | undefined): string {
  if (values === undefined) return 'a scope value that nothing gives'
  return values.length === 0 ? 'no scope value' : values.join(' and ')
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
function targets(target: Target | undefined, { business, fund }: NamedAction): boolean {
  if (target === undefined || target.business !== business) return false
  return target.level === 'business' || target.fund === fund
}

/** Describes the result of C4.8: which of the 404s it is. The wire does not say it (C4.12). */
export async function explainPlace(
  places: Places | undefined,
  principal: Principal | undefined,
  named: NamedAction | undefined,
  { verdict }: CheckResult,
): Promise<CheckDescription> {
  if (named === undefined) return { facts: {}, words: 'The place is not known without the action.' }
  const { business, fund } = named
  const place = fund === undefined ? `business ${business}` : `fund ${fund} of business ${business}`
  const existence = await existenceOf(places, business, fund)
  const exists = existence === 'only the business' ? false : existence
  const isCode = fund === undefined || readCode(fund) !== undefined
  const isTarget = principal && targets(principal.target, named)
  const target = principal && (targetTextOf(principal) ?? 'no target')
  const found = {
    'store unreachable':
      exists === 'not known' && `Whether there is a ${place} is not known: the store cannot be reached.`,
    'unknown fund':
      existence === 'only the business' &&
      `The place is unknown: there is no ${place}, though the business exists.`,
    'unknown business': existence === false && `The place is unknown: there is no ${place}.`,
    'no code': !isCode && `The place is unknown: ${place} has a character that no code may have.`,
    'no target':
      isTarget === false && target === 'no target' && 'The token has no target, so it opens no business.',
    'other target':
      isTarget === false &&
      target !== 'no target' &&
      `The token is for another target: it is for ${target}, and the call is about ${place}.`,
  }
  const problems = Object.entries(found).filter(([, words]) => words !== false)
  return {
    facts: { business, fund, exists, target, isTarget, problems: problems.map(([problem]) => problem) },
    words:
      verdict === 'passed'
        ? `The token is for ${target}, and ${place} exists.`
        : problems.map(([, words]) => words).join(' ') || `It is about ${place}.`,
  }
}

/** Undefined in a sidecar without a directory. */
async function existenceOf(
  places: Places | undefined,
  business: string,
  fund: string | undefined,
): Promise<boolean | 'only the business' | 'not known' | undefined> {
  if (places === undefined) return undefined
  try {
    if (await places.look(business, fund)) return true
    return fund !== undefined && (await places.look(business)) ? 'only the business' : false
  } catch {
    return 'not known'
  }
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

/** Describes the result of C4.2; `explainPlaceClosure` uses it for C4.9. @param what the switches close, in words */
export function explainClosure(
  closure: Closure | undefined,
  { clientAddress }: Exchange,
  what: string,
  { verdict }: CheckResult,
): CheckDescription {
  if (closure === undefined) return { facts: { closedBy: [] }, words: `No maintenance closes ${what}.` }
  const addressAllowed = closure.admitsAddress(clientAddress)
  const { clients, retryAfter } = closure
  const closedBy = closure.closedBy.map((each) => ({
    ...each,
    from: instantText(each.from),
    until: instantText(each.until),
  }))
  const closed = `Closed by ${closure.closedBy.map(switchText).join('; ')}`
  const words = {
    passed: `${closed}, but the ${addressAllowed ? 'address' : 'client'} is on the list of those that pass.`,
    failed: `${closed}.`,
    unknown: `${closed}. Whether the client is on the list of those that pass is not known.`,
    'not reached': `${closed}.`,
  }
  return {
    facts: { closedBy, addressAllowed, allowedClients: [...clients], retryAfter },
    words: words[verdict],
  }
}

/** Describes the result of C4.9. */
export function explainPlaceClosure(
  switches: Switches,
  exchange: Exchange,
  named: NamedAction | undefined,
  result: CheckResult,
): CheckDescription {
  if (named === undefined)
    return { facts: {}, words: 'Which switches count is not known without the action.' }
  const { business, operation } = named
  const { action, backend } = operation
  const closure = switches.place(business, action.area, backend.name)
  const what = `business ${business}, area ${action.area} or backend ${backend.name}`
  return explainClosure(closure, exchange, what, result)
}

function switchText({ scope, from, until, by, reason, source }: ClosedBy): string {
  const parts = [
    `the switch of ${scope}`,
    source === 'configuration' && 'in the configuration',
    from !== undefined && `since ${instantText(from)}`,
    until !== undefined && `until ${instantText(until)}`,
    by !== undefined && `by ${by}`,
    reason !== undefined && `(${reason})`,
  ]
  return parts.filter((part) => part !== false).join(' ')
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

/** Describes the result of C4.10. */
export function explainAccept(
  negotiation: Negotiation,
  { headers: { accept } }: Head,
  operation: Operation | undefined,
  { fault }: CheckResult,
): CheckDescription {
  if (operation === undefined)
    return { facts: { accept }, words: 'What is offered is not known without the action.' }
  const { produces } = operation
  const { versions, defaultVersion } = operation.versions
  const offered = produces?.join(', ') ?? `versions ${versions.join(', ')} in JSON or XML`
  const asked = accept === undefined ? 'There is no Accept header.' : `Accept is "${accept}".`
  const refused = fault === undefined ? '' : ` ${fault.fullText}`
  return {
    facts: { accept, produces, versions, defaultVersion, errors: negotiation.formatOfErrors(accept) },
    words: `${asked} The action offers ${offered}.${refused}`,
  }
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

/** Describes the result of C6.3.1. */
export const explainUserinfo = (
  { method, headers: { accept } }: Head,
  principal: Principal | undefined,
  { fault }: CheckResult,
): CheckDescription => ({
  facts: { method, scope: principal?.scope, accept },
  words: fault?.fullText ?? 'Userinfo: method, scope, Accept and Content-Type.',
})
