import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { EarlyAdmission } from '../../base/contracts/calls/admission.ts'
import type { ClaimedCallers } from '../../base/contracts/people/claimed-callers.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type {
  DescribedCall,
  ExplainedAction,
  ExplainedCaller,
  ExplainedCheck,
  Explanation,
  Refusal,
  Verdict,
} from '../../base/contracts/calls/explanation.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { readBodyOf } from '../decide/carry-out.ts'
import { authenticate, isUserinfo, type Verification, VerifyFirst } from '../decide/checks.ts'
import { BACKEND_CHECK, type Check, CHECKS, ENFORCED_STEPS, USERINFO_CHECK } from '../decide/order.ts'
import { decidePreflight, decideUserinfo, type Decision, Findings, isPreflight } from '../decide/pipeline.ts'
import { decideData, reportOnlyArea } from '../decide/report-only.ts'
import type { Runtime } from '../decide/runtime.ts'
import type { CallTokens } from '../decide/token-check.ts'
import { type CallReading, describedExchange } from './described-exchange.ts'
import { answerTo, explainSent } from './sent.ts'
import { EXPLAINERS, faultOfCheck, isUnknown } from './explainers.ts'
import {
  type CallerCredentials,
  previewRuntime,
  type PreviewRuntime,
  type Progress,
  Undecidable,
} from './progress.ts'
import { targetTextOf } from './token-facts.ts'

interface Decided {
  /** The decision about a call to a backend that is let in. */
  readonly decision: Decision | undefined
  /** The fault that refuses the call; undefined if it is let in. */
  readonly fault: Fault | undefined
  /** The fault for which a report-only area would have refused it. */
  readonly observed: Fault | undefined
}

type Result = Decision | VerifyFirst | undefined

/** @returns the decision about a call that reaches its backend; undefined for a call that reaches none */
type Decide = (
  runtime: PreviewRuntime,
  exchange: Exchange,
  findings: Findings,
  verified?: Verification,
) => Result | Promise<Result>

type DecidedKind = Exclude<Explanation['kind'], 'identity'>

const DECIDE: Readonly<Record<DecidedKind, Decide>> = {
  call: async (runtime, exchange, findings, verified) => {
    const decision = await decideData(runtime, exchange, findings, verified)
    return decision instanceof VerifyFirst ? decision : goOn(runtime, exchange, decision)
  },
  userinfo: (...given) => {
    const decided = decideUserinfo(...given)
    return decided instanceof VerifyFirst ? decided : undefined
  },
  preflight: (runtime, exchange, _findings, verified) => decidePreflight(runtime, exchange, verified),
}

/** Makes the checks between a decision and the backend: the rest of C4.11, and the limits of the backend (C4.5). */
async function goOn(runtime: PreviewRuntime, exchange: Exchange, decision: Decision): Promise<Decision> {
  await readBodyOf(runtime, exchange, decision)
  const { observation, operation, principal } = decision
  const refusal = runtime.admission.previewBackend?.(operation.backend.name, principal?.clientKey).refusal
  if (refusal === undefined) return decision
  if (observation === undefined || refusal.code !== 'too_many_backend_calls') throw refusal
  observation.keep(refusal)
  return decision
}

/** As the door decides: once without the verification of the token and, where the decision needs it, once with it. */
async function decideOnly(
  kind: DecidedKind,
  { runtime, exchange }: { readonly runtime: PreviewRuntime; readonly exchange: Exchange },
  { verified }: CallerCredentials,
  { caller }: DescribedCall,
): Promise<Decided> {
  const decide = DECIDE[kind]
  let findings = new Findings()
  try {
    let last = await decide(runtime, exchange, findings, caller === undefined ? undefined : verified)
    if (last instanceof VerifyFirst)
      last = await decide(runtime, exchange, (findings = new Findings()), verified)
    const decision = last instanceof VerifyFirst ? undefined : last
    return { decision, fault: undefined, observed: findings.observation?.fault }
  } catch (thrown) {
    return { decision: undefined, fault: toFault(thrown), observed: undefined }
  }
}

export interface ExplainParts {
  readonly runtime: Runtime
  readonly catalogue: Catalogue
  readonly reading: CallReading
  readonly callers: ClaimedCallers
  readonly isIdentityPath: (path: string) => boolean
  /** Undefined if there are no limits ahead of the decision. */
  readonly early: EarlyAdmission | undefined
}

/** The same checks for every kind of call, up to where userinfo and preflights have their own. */
const CHECKS_OF: Readonly<Record<DecidedKind, readonly Check[]>> = {
  call: [...CHECKS, BACKEND_CHECK],
  userinfo: [...CHECKS.slice(0, CHECKS.findIndex(({ step }) => step === 'admit') + 1), USERINFO_CHECK],
  preflight: CHECKS.slice(0, CHECKS.findIndex(({ step }) => step === 'passServiceMaintenance') + 1),
}

/**
 * Explains the decision about a call that nobody makes (C14): every check of decide/order.ts, with the functions of the
 * decision, and why each passes or fails. Nothing is forwarded, counted, cached or admitted. Rejects with Fault
 * `internal` if explanation and decision disagree twice: the first time, something may have changed in between.
 */
export async function explainCall(parts: ExplainParts, call: DescribedCall): Promise<Explanation> {
  return (await explainOnce(parts, call)) ?? (await explainOnce(parts, call)) ?? disagree()
}

function disagree(): never {
  throw new Fault('internal', { detail: 'the explanation of a call is not what was decided' })
}

/** Undefined if the explanation differs from the decision. */
async function explainOnce(parts: ExplainParts, call: DescribedCall): Promise<Explanation | undefined> {
  const runtime = previewRuntime(parts.runtime)
  const exchange = describedExchange(call, parts.reading, runtime.clock.monotonic())
  const early = parts.early?.previewAddress?.(exchange.clientAddress)
  exchange.refusal = early?.refusal
  const kind = kindOf(runtime, exchange)
  if (isIdentity(parts, exchange)) return notExplained(call)
  const credentials = await credentialsOf(parts, runtime, exchange, call)
  const decided = await decideOnly(kind, { runtime, exchange }, credentials, call)
  const progress: Progress = {
    call,
    runtime,
    exchange,
    credentials,
    early,
    catalogue: parts.catalogue,
    reportOnly: kind === 'call' ? reportOnlyArea(runtime, exchange.target) : undefined,
    target: undefined,
    principal: undefined,
    authenticated: false,
    named: undefined,
    body: undefined,
  }
  const checks = await makeChecks(CHECKS_OF[kind], progress)
  if (!agrees(checks, decided)) return undefined
  const explanation = assemble(kind, progress, checks, decided)
  const { decision } = decided
  if (call.sent !== true || decision === undefined || explanation.outcome !== 'let in') return explanation
  return { ...explanation, sent: await explainSent(runtime, exchange, decision) }
}

const isIdentity = ({ isIdentityPath }: ExplainParts, { target }: Exchange): boolean =>
  !(target instanceof Fault) && isIdentityPath(target.path)

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

function kindOf(runtime: PreviewRuntime, exchange: Exchange): DecidedKind {
  if (isPreflight(runtime, exchange)) return 'preflight'
  return isUserinfo(runtime, exchange) ? 'userinfo' : 'call'
}

/** Who calls: as claimed, or by the token, which is looked at and not remembered. */
async function credentialsOf(
  { callers }: ExplainParts,
  runtime: PreviewRuntime,
  exchange: Exchange,
  { caller }: DescribedCall,
): Promise<CallerCredentials> {
  const none = { verified: undefined, token: undefined, claimed: undefined, grant: undefined }
  if (caller !== undefined) {
    const granted = await callers.grant(caller).catch(toFault)
    return granted instanceof Fault
      ? { ...none, verified: granted }
      : { ...none, verified: granted.principal, grant: granted }
  }
  const token = tokenOf(runtime, exchange)
  if (token === undefined) return none
  const verified = await runtime.tokens.verifyLocally(token).catch(toFault)
  return { ...none, token, verified, claimed: runtime.tokens.claimed(token) }
}

function tokenOf(runtime: PreviewRuntime, exchange: Exchange): string | undefined {
  try {
    const found = authenticate(runtime, exchange, undefined)
    return found instanceof VerifyFirst ? found.token : undefined
  } catch {
    return undefined
  }
}

async function makeChecks(checks: readonly Check[], progress: Progress): Promise<readonly ExplainedCheck[]> {
  const made: ExplainedCheck[] = []
  for (const check of checks) {
    const isRefused = made.some(({ verdict, enforced }) => enforced && verdict === 'failed')
    made.push(await makeCheck(check, progress, isRefused))
  }
  return made
}

async function makeCheck(
  { clause, step, title }: Check,
  progress: Progress,
  isRefused: boolean,
): Promise<ExplainedCheck> {
  const explainer = EXPLAINERS[step]
  if (explainer === undefined) throw new Fault('internal', { detail: `no explanation of ${step}` })
  const isReady = explainer.isReady(progress)
  const thrown = isReady ? await faultOfCheck(explainer, progress) : undefined
  const verdict: Verdict = !isReady
    ? 'not reached'
    : thrown === undefined
      ? 'passed'
      : isUnknown(thrown)
        ? 'unknown'
        : 'failed'
  const fault = thrown instanceof Undecidable ? undefined : thrown
  const described = await explainer.describe(progress, { verdict, fault })
  const failed = verdict === 'failed' ? fault : undefined
  return {
    clause,
    title,
    verdict,
    wouldFailToo: failed !== undefined && isRefused,
    enforced:
      progress.reportOnly === undefined || ENFORCED_STEPS.has(step) || failed?.code === 'backend_busy',
    reason: failed?.code,
    facts: described.facts,
    words:
      thrown instanceof Undecidable ? `${described.words} Not known: ${thrown.message}.` : described.words,
  }
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
  kind: Explanation['kind'],
  progress: Progress,
  checks: readonly ExplainedCheck[],
  { fault, observed }: Decided,
): Explanation {
  const { call, reportOnly } = progress
  const refusing = checks.find((check) => check.enforced && isOpen(check))
  const outcome = refusing === undefined ? 'let in' : refusing.verdict === 'unknown' ? 'unknown' : 'refused'
  return {
    outcome,
    method: call.method,
    path: call.path,
    kind,
    refusal: outcome === 'refused' && fault ? refusalOf(fault, refusing?.clause ?? '') : undefined,
    reportOnly: reportOnly === undefined ? undefined : { area: reportOnly, wouldRefuse: observed?.code },
    caller: callerOf(progress),
    action: actionOf(progress),
    checks,
  }
}

const refusalOf = (fault: Fault, clause: string): Refusal => ({ clause, ...answerTo(fault) })

function callerOf({ principal, authenticated, credentials }: Progress): ExplainedCaller | undefined {
  if (principal === undefined) return undefined
  const { client, isMachine, issuer, scope } = principal
  const subject = isMachine ? undefined : principal.subject
  const by = !authenticated ? 'refused token' : credentials.grant === undefined ? 'token' : 'claimed'
  return { client, subject, issuer, scope, target: targetTextOf(principal), by }
}

function actionOf({ named }: Progress): ExplainedAction | undefined {
  if (named === undefined || named.operation.action.slot < 0) return undefined
  const { operation, business, fund } = named
  const { level, area, name } = operation.action
  return {
    level: level === 'b' ? 'business' : 'fund',
    area,
    action: name,
    backend: operation.backend.name,
    business,
    fund,
  }
}

/** Stands for the token. It is verified by `callerAgain` alone, which does not look at it. */
const IN_PLACE_OF_THE_TOKEN = 'a-token-that-was-not-kept'

/** Why a caller that was verified once is no longer accepted, in the words of TokenCheck. */
function refusalAgain(principal: Principal, tokens: CallTokens): Fault {
  if (!principal.key.isTrusted()) return new Fault('invalid_token', { detail: 'its key was withdrawn' })
  return tokens.refusal(principal, tokens.ruleFor(principal) === undefined ? 'expired' : 'revoked')
}

/** Takes every token for that of one caller, who was verified before: expiry, revocation and key are checked anew. */
function callerAgain(principal: Principal, tokens: CallTokens): CallTokens {
  const verify = (): Promise<Principal> =>
    tokens.isCurrent(principal) ? Promise.resolve(principal) : Promise.reject(refusalAgain(principal, tokens))
  return {
    isKnown: () => false,
    find: () => undefined,
    verify,
    verifyLocally: verify,
    claimed: () => principal,
    ruleFor: (whose) => tokens.ruleFor(whose),
    isCurrent: (whose) => tokens.isCurrent(whose),
    refusal: (whose, why) => tokens.refusal(whose, why),
  }
}

/** As `explainCall`, for a call whose caller is kept and whose token is not (C14.4): what would be decided now. */
export function explainAgain(
  parts: ExplainParts,
  call: DescribedCall,
  principal: Principal | undefined,
): Promise<Explanation> {
  if (principal === undefined) return explainCall(parts, call)
  const { runtime } = parts
  // The proof was checked when the call was made, and is not kept.
  const tokens = callerAgain({ ...principal, confirmation: undefined }, runtime.tokens)
  return explainCall(
    { ...parts, runtime: { ...runtime, tokens } },
    { ...call, token: IN_PLACE_OF_THE_TOKEN, caller: undefined },
  )
}
