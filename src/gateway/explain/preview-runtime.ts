/** The runtime as an explained decision reads it: everything is looked at, and nothing is spent (C14.1). */
import type { Admission, AdmissionPreview } from '../../contracts/admission.ts'
import { NO_TRAIL } from '../../contracts/audit.ts'
import { NO_RECORDER } from '../../contracts/recorder.ts'
import type { Switches } from '../../contracts/switches.ts'
import type { Runtime } from '../runtime.ts'
import type { CallTokens } from '../token-check.ts'

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

/** Admission that answers what it was seen to be at the first look, so that one explanation does not contradict itself. */
export interface SeenAdmission extends Admission {
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

/** A switch of the whole service is looked at once; those of places by each check that asks. */
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

export const previewRuntime = (runtime: Runtime): PreviewRuntime => ({
  ...runtime,
  tokens: uncached(runtime.tokens),
  admission: uncounted(runtime.admission),
  switches: frozen(runtime.switches),
  places: runtime.places?.preview(),
  recorder: NO_RECORDER,
  audit: NO_TRAIL,
})
