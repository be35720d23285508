import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type {
  Admission,
  AdmissionPreview,
  EarlyAdmission,
  EarlyPreview,
} from '../../base/contracts/calls/admission.ts'
import type { ClaimedCallers } from '../../base/contracts/people/claimed-callers.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type {
  CheckDescription,
  CheckResult,
  DescribedCall,
  ExplainedAction,
  ExplainedCaller,
  ExplainedCheck,
  Explanation,
  Verdict,
} from '../../base/contracts/calls/explanation.ts'
import { NEEDS_ISSUER } from '../../base/contracts/people/keys.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { NO_TRAIL } from '../../base/contracts/records/audit.ts'
import { NO_RECORDER } from '../../base/contracts/records/recorder.ts'
import { declaredBody } from '../../base/http/head/head.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { explainAction } from '../actions/action-table.ts'
import {
  type BodyPlan,
  checkBody,
  checkParameters,
  explainBody,
  explainParameters,
  readCallBody,
} from '../decide/body.ts'
import { callSlot, readBodyOf } from '../decide/carry-out.ts'
import {
  admit,
  authenticate,
  checkUserinfo,
  credentialsOf,
  explainAccept,
  explainClosure,
  explainPlace,
  explainPlaceClosure,
  explainProof,
  explainRequest,
  explainScope,
  explainUserinfo,
  explainVersion,
  isUserinfo,
  matchAction,
  type NamedAction,
  negotiate,
  passServiceMaintenance,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireProof,
  requireScope,
  tokenSchemeOf,
  VerifyFirst,
} from '../decide/checks.ts'
import { decideData } from '../decide/door.ts'
import { checkOfStep, ENFORCED_STEPS } from '../decide/order.ts'
import { decidePreflight, decideUserinfo, type Decision, Findings, isPreflight } from '../decide/pipeline.ts'
import { reportOnlyArea, unmatched } from '../decide/report-only.ts'
import type { Runtime } from '../decide/runtime.ts'
import { explainToken, type ShownCaller, targetTextOf } from '../decide/token-check.ts'
import { explainBackend, explainRate } from '../limits/load-guard.ts'
import { type CallReading, describedExchange } from './described-exchange.ts'
import { answerTo, explainSent } from './sent.ts'

export interface ExplainParts {
  readonly runtime: Runtime
  readonly catalogue: Catalogue
  readonly reading: CallReading
  readonly callers: ClaimedCallers
  readonly isIdentityPath: (path: string) => boolean
  /** Undefined if there are no limits ahead of the decision. */
  readonly early: EarlyAdmission | undefined
}

/**
 * Explains the decision about a call that nobody makes (C14): the decision is made, then every check of decide/order.ts by
 * itself, with the same functions, also behind the first failure. Each check tells its own facts. Nothing is forwarded,
 * counted, cached or admitted. Rejects with Fault `internal` if checks and decision disagree twice: the first time,
 * something may have changed in between.
 * @param kept the caller of a call of the past, whose token is not kept (C14.4): what would be decided now
 */
export async function explainCall(
  parts: ExplainParts,
  call: DescribedCall,
  kept?: Principal,
): Promise<Explanation> {
  const explained = (await explainOnce(parts, call, kept)) ?? (await explainOnce(parts, call, kept))
  if (explained !== undefined) return explained
  throw new Fault('internal', { detail: 'the explanation of a call is not what was decided' })
}

type DecidedKind = Exclude<Explanation['kind'], 'identity'>

/** The input of the decision and of all checks. */
interface Explained {
  readonly call: DescribedCall
  readonly kind: DecidedKind
  readonly runtime: Runtime
  readonly exchange: Exchange
  readonly shown: ShownCaller
  readonly early: EarlyPreview | undefined
  /** The rate and the calls in flight that the client has left; undefined if that is not known. */
  readonly left: AdmissionPreview | undefined
  readonly catalogue: Catalogue
  /** The report-only area that the call is for. */
  readonly reportOnly: string | undefined
}

/** Undefined if the checks do not agree with the decision. */
async function explainOnce(
  parts: ExplainParts,
  call: DescribedCall,
  kept: Principal | undefined,
): Promise<Explanation | undefined> {
  const { early, catalogue } = parts
  const { tokens, admission, clock } = parts.runtime
  const exchange = describedExchange(call, parts.reading, clock.monotonic())
  const { target, clientAddress } = exchange
  if (!(target instanceof Fault) && parts.isIdentityPath(target.path)) return notExplained(call)
  const seen = early?.previewAddress?.(clientAddress)
  exchange.refusal = seen?.refusal
  const shown = kept === undefined ? await shownBy(parts, exchange, call) : shownAgain(kept, tokens)
  const kind = kindOf(parts.runtime, exchange)
  const left = shown.principal && admission.preview?.(shown.principal)
  const runtime = previewRuntime(parts.runtime, left)
  const reportOnly = kind === 'call' ? reportOnlyArea(runtime, target) : undefined
  const explained = {
    call,
    kind,
    runtime,
    exchange,
    shown,
    early: seen,
    left,
    catalogue,
    reportOnly,
  }
  const decided = await decideOnly(explained)
  const checks = new MadeChecks(reportOnly !== undefined)
  const entered = await makeFirstChecks(checks, explained)
  const named = kind === 'call' ? await makeOtherChecks(checks, explained, entered) : undefined
  if (!agrees(checks.made, decided)) return undefined
  const explanation = assemble(explained, checks.made, decided, entered.isAuthenticated, named)
  const { decision } = decided
  if (call.sent !== true || decision === undefined || explanation.outcome !== 'let in') return explanation
  return { ...explanation, sent: await explainSent(runtime, exchange, decision) }
}

const notExplained = ({ method, path }: DescribedCall): Explanation => ({
  outcome: 'unknown',
  method,
  path,
  kind: 'identity',
  refusal: undefined,
  reportOnly: undefined,
  caller: undefined,
  action: undefined,
  checks: [],
})

function kindOf(runtime: Runtime, exchange: Exchange): DecidedKind {
  if (isPreflight(runtime, exchange)) return 'preflight'
  return isUserinfo(runtime, exchange) ? 'userinfo' : 'call'
}

const NOBODY: ShownCaller = { verified: undefined, token: undefined, principal: undefined, grant: undefined }

/** Who calls: as claimed, or by the token, which is verified and not remembered. */
async function shownBy(
  { runtime, callers }: ExplainParts,
  { head }: Exchange,
  { caller }: DescribedCall,
): Promise<ShownCaller> {
  if (caller !== undefined) {
    const grant = await callers.grant(caller).catch(toFault)
    return grant instanceof Fault
      ? { ...NOBODY, verified: grant }
      : { ...NOBODY, verified: grant.principal, principal: grant.principal, grant }
  }
  const credentials = credentialsOf(runtime, head)
  if (credentials.kind !== 'token') return NOBODY
  const { token } = credentials
  const verified = await runtime.tokens.verifyLocally(token).catch(toFault)
  const principal = verified instanceof Fault ? runtime.tokens.claimed(token) : verified
  return { ...NOBODY, token, verified, principal }
}

/** A caller that was verified once: expiry, revocation and key are checked anew. The proof of then is not kept. */
function shownAgain(kept: Principal, tokens: Runtime['tokens']): ShownCaller {
  const principal = { ...kept, confirmation: undefined }
  const verified = tokens.isCurrent(principal) ? principal : refusalAgain(principal, tokens)
  return { ...NOBODY, token: 'a token that was not kept', verified, principal }
}

function refusalAgain(principal: Principal, tokens: Runtime['tokens']): Fault {
  if (!principal.key.isTrusted()) return new Fault('invalid_token', { detail: 'its key was withdrawn' })
  return tokens.refusal(principal, tokens.ruleFor(principal) === undefined ? 'expired' : 'revoked')
}

/**
 * The runtime as an explained decision reads it: everything is read, and nothing is used up (C14.1). What changes with
 * every call or moment is read once, so that one explanation does not contradict itself.
 */
function previewRuntime(runtime: Runtime, left: AdmissionPreview | undefined): Runtime {
  const { admission, proofs, switches } = runtime
  const service = switches.service()
  const previewBackend: Admission['previewBackend'] = admission.previewBackend?.bind(admission)
  return {
    ...runtime,
    // A proof that is described was used by its call, if that was made.
    proofs: proofs?.preview(),
    admission: {
      admit: () => left?.verdict,
      occupy: (backend, client) => {
        const refusal = previewBackend?.(backend, client).refusal
        if (refusal !== undefined) throw refusal
        return undefined
      },
      ...(previewBackend && { previewBackend }),
    },
    switches: {
      service: () => service,
      place: (...where) => switches.place(...where),
      identity: () => switches.identity(),
    },
    places: runtime.places?.preview(),
    recorder: NO_RECORDER,
    audit: NO_TRAIL,
  }
}

interface Decided {
  /** The decision about a call to a backend that is let in. */
  readonly decision?: Decision
  /** The fault that refuses the call. */
  readonly fault?: Fault
  /** The fault for which a report-only area would have refused it. */
  readonly observed?: Fault | undefined
}

/** The decision as the door makes it, and what is checked between it and the backend. */
async function decideOnly({ kind, runtime, exchange, shown: { verified } }: Explained): Promise<Decided> {
  const findings = new Findings()
  try {
    if (kind === 'preflight') decidePreflight(runtime, exchange, verified)
    else if (kind === 'userinfo') decideUserinfo(runtime, exchange, findings, verified)
    else {
      const decision = verifiedOf(await decideData(runtime, exchange, findings, verified))
      await readBodyOf(runtime, exchange, decision)
      callSlot(runtime.admission, decision)
      return { decision, observed: findings.observation?.fault }
    }
    return {}
  } catch (thrown) {
    return { fault: toFault(thrown) }
  }
}

/** The token was verified before, so nothing has to be verified first. */
function verifiedOf<T>(found: T | VerifyFirst): T {
  if (found instanceof VerifyFirst) throw new Fault('internal', { detail: 'a token was not verified' })
  return found
}

/** A check has no result, because it depends on somebody who is not asked. The message is for people. */
class Undecidable extends Error {
  override readonly name = 'Undecidable'
}

/** Whether it cannot be known here who calls. */
const isUnknown = (thrown: unknown): boolean =>
  thrown instanceof Undecidable || (thrown instanceof Fault && thrown.facts.detail === NEEDS_ISSUER)

/** Makes checks one after the other, whether or not those before have passed. */
class MadeChecks {
  readonly made: ExplainedCheck[] = []
  readonly #isReportOnly: boolean

  constructor(isReportOnly: boolean) {
    this.#isReportOnly = isReportOnly
  }

  get last(): Verdict | undefined {
    return this.made.at(-1)?.verdict
  }

  /**
   * @param step the function of the decision that makes the check, by which decide/order.ts has it
   * @param needed what earlier checks have found for it; undefined if it is not reached
   * @param describe called in any case
   * @returns what the check has found; undefined if it has not passed
   */
  async make<Needed, Found>(
    step: string,
    needed: Needed | undefined,
    check: (needed: Needed) => Found | Promise<Found>,
    describe: (result: CheckResult, found: Found | undefined) => CheckDescription | Promise<CheckDescription>,
  ): Promise<Found | undefined> {
    let verdict: Verdict = 'not reached'
    let found: Found | undefined
    let thrown: Fault | Undecidable | undefined
    try {
      if (needed !== undefined) {
        found = await check(needed)
        verdict = 'passed'
      }
    } catch (caught) {
      thrown = caught instanceof Undecidable ? caught : toFault(caught)
      verdict = isUnknown(thrown) ? 'unknown' : 'failed'
    }
    const fault = thrown instanceof Fault ? thrown : undefined
    const { facts, words } = await describe({ verdict, fault }, found)
    const reason = verdict === 'failed' ? fault?.code : undefined
    const { clause, title } = checkOfStep(step)
    this.made.push({
      clause,
      title,
      verdict,
      wouldFailToo:
        reason !== undefined && this.made.some((each) => each.enforced && each.verdict === 'failed'),
      enforced: !this.#isReportOnly || ENFORCED_STEPS.has(step) || reason === 'backend_busy',
      reason,
      facts,
      words: thrown instanceof Undecidable ? `${words} Not known: ${thrown.message}.` : words,
    })
    return found
  }
}

/** Makes a check that looks at who calls. */
function lookingAtCaller(check: () => unknown, isCallerUnknown: boolean): void {
  try {
    check()
  } catch (thrown) {
    throw isCallerUnknown ? new Undecidable('who calls') : thrown
  }
}

function targetOf({ target }: Exchange): RequestTarget | undefined {
  try {
    return readTarget({ target, refusal: undefined })
  } catch {
    return undefined
  }
}

interface Entered {
  readonly target: RequestTarget | undefined
  /** Whether C4.4 and C4.4a have passed, as far as that is known. */
  readonly isAuthenticated: boolean
}

/** The checks C4.1 to C4.5, which all of `/api` shares; of a preflight the first two, of userinfo its own too. */
async function makeFirstChecks(checks: MadeChecks, explained: Explained): Promise<Entered> {
  const { call, kind, runtime, exchange, shown, early, reportOnly, left } = explained
  const { head } = exchange
  const { verified, principal } = shown
  const target = targetOf(exchange)
  await checks.make('readTarget', exchange, readTarget, (result) =>
    explainRequest(exchange, target, early, reportOnly, result),
  )
  const closure = runtime.switches.service()
  const asksWhoCalls = closure !== undefined && closure.clients.size > 0
  await checks.make(
    'passServiceMaintenance',
    exchange,
    () =>
      lookingAtCaller(
        () => passServiceMaintenance(runtime, exchange, verified),
        asksWhoCalls && isUnknown(verified),
      ),
    (result) => explainClosure(closure, exchange, 'the service', result),
  )
  if (kind === 'preflight') return { target, isAuthenticated: false }
  await checks.make('requireApiVersion', target, requireApiVersion, (result) =>
    explainVersion(target, result),
  )
  const rule = principal && runtime.tokens.ruleFor(principal)
  const caller = await checks.make(
    'authenticate',
    exchange,
    () => verifiedOf(authenticate(runtime, exchange, verified)),
    (result) => explainToken(shown, rule, result),
  )
  await checks.make(
    'requireProof',
    caller,
    (found) => {
      // Only its client could make a proof for a token that is given beside the call.
      if (call.token !== undefined && found.confirmation !== undefined)
        throw new Undecidable('whether its client has the key')
      requireProof(runtime, exchange, found, {})
    },
    (result) => explainProof(tokenSchemeOf(runtime, head), principal, caller !== undefined, result),
  )
  const isAuthenticated = caller !== undefined && checks.last !== 'failed'
  await checks.make(
    'admit',
    principal,
    (found) => admit(runtime, found, exchange, {}),
    (result) => explainRate(principal?.clientKey, left, result),
  )
  if (kind === 'userinfo')
    await checks.make(
      'checkUserinfo',
      principal,
      (found) => checkUserinfo(runtime, head, found),
      (result) => explainUserinfo(head, principal, result),
    )
  return { target, isAuthenticated }
}

/** The checks from C4.6 on. @returns what the path names; in a report-only area perhaps an action that takes everything */
async function makeOtherChecks(
  checks: MadeChecks,
  { call, runtime, exchange, shown: { verified, principal }, reportOnly, catalogue }: Explained,
  { target, isAuthenticated }: Entered,
): Promise<NamedAction | undefined> {
  const { head } = exchange
  const { actions, admission, bodyLimit, conversions, negotiation, places, switches } = runtime
  const matched = await checks.make(
    'matchAction',
    target,
    (found) => matchAction(actions, found, head.method),
    (result, found) => explainAction(actions, target, head.method, found?.operation, result),
  )
  const unlisted =
    target && reportOnly !== undefined ? unmatched(runtime, reportOnly, target, head.method) : undefined
  const named = matched ?? unlisted
  const operation = named?.operation
  const both = principal && named && { principal, named }
  await checks.make(
    'requireScope',
    both,
    (found) => requireScope(found.principal, found.named.operation.scopes),
    () => explainScope(principal, operation?.scopes, catalogue),
  )
  await checks.make(
    'requirePlace',
    both,
    (found) => requirePlace(places, found.principal, found.named),
    (result) => explainPlace(places, principal, named, result),
  )
  // In a report-only area, the name of the caller of a refused token does not count.
  const byName = isAuthenticated || reportOnly === undefined ? principal : undefined
  await checks.make(
    'refuseInPlaceMaintenance',
    named,
    (found) =>
      lookingAtCaller(
        () => refuseInPlaceMaintenance(runtime, exchange, byName, found.operation, found.business),
        !isAuthenticated && isUnknown(verified),
      ),
    (result) => explainPlaceClosure(switches, exchange, named, result),
  )
  await checks.make(
    'negotiate',
    operation,
    (found) => negotiate(negotiation, head, found),
    (result) => explainAccept(negotiation, head, operation, result),
  )
  await checks.make(
    'checkParameters',
    target && operation && { target, operation },
    (found) => checkParameters(found.target, found.operation),
    (result) => explainParameters(operation, result),
  )
  let plan: BodyPlan | undefined
  await checks.make(
    'checkBody',
    operation,
    (found) => {
      plan = checkBody(head, found, bodyLimit)
      const declared = declaredBody(head)
      if (plan.kind === 'parsed' && declared !== 'chunked' && declared !== call.body.length)
        throw new Undecidable('the body that is described is not as long as Content-Length says')
      return plan.kind === 'parsed' ? readCallBody(plan, exchange, found, conversions) : undefined
    },
    (result) => explainBody(head, call.body.length, bodyLimit, operation, plan, result),
  )
  const backend = operation?.backend.name
  await checks.make(
    'occupy',
    backend,
    (found) => admission.occupy?.(found, isAuthenticated ? principal?.clientKey : undefined),
    () =>
      explainBackend(
        backend,
        backend === undefined ? undefined : admission.previewBackend?.(backend, principal?.clientKey),
      ),
  )
  return named
}

const isOpen = ({ verdict }: ExplainedCheck): boolean => verdict === 'failed' || verdict === 'unknown'

/** Whether the first check that fails agrees with the decision. A check without a known result cannot be compared. */
function agrees(checks: readonly ExplainedCheck[], { fault, observed }: Decided): boolean {
  const refusing = checks.find((check) => check.enforced && isOpen(check))
  if (refusing?.verdict === 'unknown') return true
  if (refusing?.reason !== fault?.code) return false
  if (fault !== undefined) return true
  const reported = checks.find(isOpen)
  return reported?.verdict === 'unknown' || reported?.reason === observed?.code
}

function assemble(
  explained: Explained,
  checks: readonly ExplainedCheck[],
  { fault, observed }: Decided,
  isAuthenticated: boolean,
  named: NamedAction | undefined,
): Explanation {
  const { call, kind, reportOnly } = explained
  const refusing = checks.find((check) => check.enforced && isOpen(check))
  const outcome = refusing === undefined ? 'let in' : refusing.verdict === 'unknown' ? 'unknown' : 'refused'
  return {
    outcome,
    method: call.method,
    path: call.path,
    kind,
    refusal:
      outcome === 'refused' && fault ? { clause: refusing?.clause ?? '', ...answerTo(fault) } : undefined,
    reportOnly: reportOnly === undefined ? undefined : { area: reportOnly, wouldRefuse: observed?.code },
    caller: callerOf(explained, isAuthenticated),
    action: actionOf(named),
    checks,
  }
}

function callerOf({ kind, shown }: Explained, isAuthenticated: boolean): ExplainedCaller | undefined {
  const { principal, grant } = shown
  if (principal === undefined || kind === 'preflight') return undefined
  const { client, isMachine, issuer, scope } = principal
  const subject = isMachine ? undefined : principal.subject
  const by = !isAuthenticated ? 'refused token' : grant === undefined ? 'token' : 'claimed'
  return { client, subject, issuer, scope, target: targetTextOf(principal), by }
}

function actionOf(named: NamedAction | undefined): ExplainedAction | undefined {
  if (named === undefined || named.operation.action.slot < 0) return undefined
  const { operation, business, fund } = named
  const { level, area, action } = operation.facts
  return { level, area, action, backend: operation.backend.name, business, fund }
}
