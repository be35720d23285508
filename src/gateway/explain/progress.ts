import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { Admission, AdmissionPreview, EarlyPreview } from '../../base/contracts/calls/admission.ts'
import { NO_TRAIL } from '../../base/contracts/records/audit.ts'
import type { ClaimedGrant } from '../../base/contracts/people/claimed-callers.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { DescribedCall, Facts, Verdict } from '../../base/contracts/calls/explanation.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { NO_RECORDER } from '../../base/contracts/records/recorder.ts'
import type { Switches } from '../../base/contracts/calls/switches.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import type { Fault } from '../../base/kernel/faults.ts'
import type { BodyPlan } from '../decide/body.ts'
import type { NamedAction, Verification } from '../decide/checks.ts'
import type { Runtime } from '../decide/runtime.ts'
import type { CallTokens } from '../decide/token-check.ts'

/** Every token is verified anew: none is found in the cache, and none comes into it. */
const uncached = (tokens: CallTokens): CallTokens => ({
  isKnown: () => false,
  find: () => undefined,
  verify: (token) => tokens.verifyLocally(token),
  verifyLocally: (token) => tokens.verifyLocally(token),
  claimed: (token) => tokens.claimed(token),
  ruleFor: (principal) => tokens.ruleFor(principal),
  isCurrent: (principal) => tokens.isCurrent(principal),
  refusal: (principal, why) => tokens.refusal(principal, why),
})

/** Keeps what the first look answered, so that one explanation does not contradict itself. */
interface SeenAdmission extends Admission {
  readonly seen: (principal: Parameters<Admission['admit']>[0]) => AdmissionPreview | undefined
}

function uncounted(admission: Admission): SeenAdmission {
  const looks = new Map<string, AdmissionPreview | undefined>()
  const seen: SeenAdmission['seen'] = (principal) => {
    const { clientKey } = principal
    if (!looks.has(clientKey)) looks.set(clientKey, admission.preview?.(principal))
    return looks.get(clientKey)
  }
  const previewBackend = admission.previewBackend?.bind(admission)
  return { seen, admit: (principal) => seen(principal)?.verdict, ...(previewBackend && { previewBackend }) }
}

/** The switch of the whole service is read once; those of places by each check that needs them. */
function frozen(switches: Switches): Switches {
  const service = switches.service()
  return {
    service: () => service,
    place: (...where) => switches.place(...where),
    identity: () => switches.identity(),
  }
}

export interface PreviewRuntime extends Runtime {
  readonly admission: SeenAdmission
}

/** A proof that is described was used by its call, if it was made: whether it is used twice is not looked at. */
const unremembered = (proofs: Runtime['proofs']): Runtime['proofs'] =>
  proofs && { ...proofs, memory: { isFirst: () => true } }

/** The runtime as an explained decision reads it: everything is read, and nothing is used up (C14.1). */
export const previewRuntime = (runtime: Runtime): PreviewRuntime => ({
  ...runtime,
  tokens: uncached(runtime.tokens),
  proofs: unremembered(runtime.proofs),
  admission: uncounted(runtime.admission),
  switches: frozen(runtime.switches),
  places: runtime.places?.preview(),
  recorder: NO_RECORDER,
  audit: NO_TRAIL,
})

/** Who calls, as far as it was found out before the first check. */
export interface CallerCredentials {
  /** Undefined if there is no token to verify. */
  readonly verified: Verification | undefined
  /** It must not become part of a fact or a text. */
  readonly token: string | undefined
  /** The unverified principal of a refused token. */
  readonly claimed: Principal | undefined
  /** Set if the caller was claimed, and not shown by a token. */
  readonly grant: ClaimedGrant | undefined
}

/** What the checks have found out so far. Each check reads it, and adds to it. */
export interface Progress {
  readonly call: DescribedCall
  readonly runtime: PreviewRuntime
  readonly exchange: Exchange
  readonly catalogue: Catalogue
  readonly credentials: CallerCredentials
  readonly early: EarlyPreview | undefined
  readonly reportOnly: string | undefined
  target: RequestTarget | undefined
  /** Who calls. Where the token is refused, the principal that it claims. */
  principal: Principal | undefined
  /** Whether C4.4 has passed. */
  authenticated: boolean
  named: NamedAction | undefined
  body: BodyPlan | undefined
}

/** A check has no result, because it depends on somebody who is not asked. The message is for people. */
export class Undecidable extends Error {
  override readonly name = 'Undecidable'
}

export interface CheckDescription {
  readonly facts: Facts
  readonly words: string
}

export interface CheckResult {
  readonly verdict: Verdict
  readonly fault: Fault | undefined
}

export interface CheckExplainer {
  /** Whether the earlier checks have found what it needs. Otherwise it is not reached. */
  readonly isReady: (progress: Progress) => boolean
  /** Calls the function of the decision. Throws and rejects with the fault that refuses the call, or with Undecidable. */
  readonly check: (progress: Progress) => unknown
  /** Called in any case, also if the check is not reached. */
  readonly describe: (progress: Progress, result: CheckResult) => CheckDescription | Promise<CheckDescription>
}
