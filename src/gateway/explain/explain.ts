/**
 * Explains the decision about a call that nobody makes (C14): every check of order.ts, with the functions of the
 * decision, and why each passes or fails. Nothing is forwarded, counted, cached or admitted.
 */
import type { EarlyAdmission } from '../../contracts/admission.ts'
import type { ClaimedCallers } from '../../contracts/claimed-callers.ts'
import type { Exchange } from '../../contracts/exchange.ts'
import { Fault, toFault } from '../../kernel/faults.ts'
import type { Catalogue } from '../../config/scopes/catalogue.ts'
import { authenticate, VerifyFirst } from '../checks.ts'
import { type Check, BACKEND_CHECK, CHECKS, USERINFO_CHECK } from '../order.ts'
import { isPreflight } from '../pipeline.ts'
import { reportOnlyArea } from '../report-only.ts'
import type { Runtime } from '../runtime.ts'
import { isUserinfo } from '../userinfo.ts'
import { decideOnly, type Decided, type DecidedKind } from './decide-only.ts'
import { type CallReading, describedExchange } from './described-exchange.ts'
import type {
  DescribedCall,
  ExplainedAction,
  ExplainedCaller,
  ExplainedCheck,
  Explanation,
  Refusal,
  Verdict,
} from '../../contracts/explanation.ts'
import { faultOf, isUnknown, EXPLAINERS } from './explainers.ts'
import { previewRuntime, type PreviewRuntime } from './preview-runtime.ts'
import { type Credentials, Undecidable, type Progress } from './progress.ts'
import { targetOf } from './token-facts.ts'

export interface ExplainParts {
  readonly runtime: Runtime
  readonly catalogue: Catalogue
  readonly reading: CallReading
  readonly callers: ClaimedCallers
  /** Whether a canonical path is that of an identity endpoint. */
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

/** In a report-only area only these refuse a call (report-only.ts). */
const ENFORCED: ReadonlySet<string> = new Set([
  ...['readTarget', 'passServiceMaintenance', 'requireApiVersion', 'refuseInPlaceMaintenance'],
])

/**
 * Resolves with the explanation of one call. Rejects with Fault `internal` if the explanation and the decision do not
 * agree, twice: the first time the world may have changed in between.
 */
export async function explainCall(parts: ExplainParts, call: DescribedCall): Promise<Explanation> {
  return (await explainOnce(parts, call)) ?? (await explainOnce(parts, call)) ?? disagree()
}

function disagree(): never {
  throw new Fault('internal', { detail: 'the explanation of a call is not what was decided' })
}

/** Undefined if the explanation is not what was decided. */
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
    ...{ call, runtime, exchange, credentials, early, catalogue: parts.catalogue },
    reportOnly: kind === 'call' ? reportOnlyArea(runtime, exchange.target) : undefined,
    ...{ target: undefined, principal: undefined, authenticated: false, named: undefined, body: undefined },
  }
  const checks = await makeChecks(CHECKS_OF[kind], progress)
  return agrees(checks, decided) ? assemble(kind, progress, checks, decided) : undefined
}

const isIdentity = ({ isIdentityPath }: ExplainParts, { target }: Exchange): boolean =>
  !(target instanceof Fault) && isIdentityPath(target.path)

const notExplained = ({ method, path }: DescribedCall): Explanation => ({
  ...{ outcome: 'unknown', method, path, kind: 'identity', refusal: undefined, reportOnly: undefined },
  ...{ caller: undefined, action: undefined, checks: [] },
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
): Promise<Credentials> {
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

/** The token that the decision would verify. */
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
  const thrown = isReady ? await faultOf(explainer, progress) : undefined
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
    ...{ clause, title, verdict, wouldFailToo: failed !== undefined && isRefused },
    enforced: progress.reportOnly === undefined || ENFORCED.has(step) || failed?.code === 'backend_busy',
    reason: failed?.code,
    facts: described.facts,
    words:
      thrown instanceof Undecidable ? `${described.words} Not known: ${thrown.message}.` : described.words,
  }
}

const isOpen = ({ verdict }: ExplainedCheck): boolean => verdict === 'failed' || verdict === 'unknown'

/** Whether the first check that fails is what was decided. What is not known cannot be compared. */
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
    ...{ outcome, method: call.method, path: call.path, kind },
    refusal: outcome === 'refused' && fault ? refusalOf(fault, refusing?.clause ?? '') : undefined,
    reportOnly: reportOnly === undefined ? undefined : { area: reportOnly, wouldRefuse: observed?.code },
    caller: callerOf(progress),
    action: actionOf(progress),
    checks,
  }
}

const refusalOf = (fault: Fault, clause: string): Refusal => ({
  clause,
  reason: fault.code,
  status: fault.status,
  code: fault.row.wire,
  text: fault.publicText,
  retryAfter: fault.facts.retryAfter === undefined ? undefined : Math.ceil(fault.facts.retryAfter),
})

function callerOf({ principal, authenticated, credentials }: Progress): ExplainedCaller | undefined {
  if (principal === undefined) return undefined
  const { client, subject, issuer, scope } = principal
  const by = !authenticated ? 'refused token' : credentials.grant === undefined ? 'token' : 'claimed'
  return { client, subject, issuer, scope, target: targetOf(principal), by }
}

function actionOf({ named }: Progress): ExplainedAction | undefined {
  if (named === undefined || named.operation.action.slot < 0) return undefined
  const { operation, business, fund } = named
  const { level, area, name } = operation.action
  return {
    level: level === 'b' ? 'business' : 'fund',
    ...{ area, action: name, backend: operation.backend.name, business, fund },
  }
}
