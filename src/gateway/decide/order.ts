import type { FaultCode } from '../../base/kernel/faults.ts'

export interface Check {
  readonly clause: string
  /** The function that `pipeline.ts` calls for it. */
  readonly step: string
  /** What must hold, for the documentation. */
  readonly title: string
  readonly faults: readonly FaultCode[]
}

/**
 * The order of the checks (C4): the first failure wins. The documentation and the architecture test read this table;
 * the test makes sure that `pipeline.ts` keeps to it.
 */
export const CHECKS: readonly Check[] = [
  {
    clause: 'C4.1',
    step: 'readTarget',
    title: 'the request can be read',
    faults: [
      'unreadable_request',
      'unsupported_http_version',
      'bad_host',
      'bad_authority',
      'bad_target',
      'repeated_header',
      'bad_framing',
      'connect_refused',
      'trace_refused',
      'target_too_long',
      'headers_too_large',
      'request_timeout',
      'outside',
    ],
  },
  {
    clause: 'C4.2',
    step: 'passServiceMaintenance',
    title: 'the service is not under maintenance',
    faults: ['service_maintenance'],
  },
  {
    clause: 'C4.3',
    step: 'requireApiVersion',
    title: 'the API version is known',
    faults: ['unknown_api_version'],
  },
  {
    clause: 'C4.4',
    step: 'authenticate',
    title: 'a genuine, current access token of this issuer and audience',
    faults: [
      'no_credentials',
      'other_scheme',
      'invalid_token',
      'expired_token',
      'revoked_token',
      'misdirected_token',
      'token_judge_unavailable',
    ],
  },
  {
    clause: 'C4.4a',
    step: 'requireProof',
    title: 'a proof of the key that the token is bound to',
    faults: [
      'bound_token',
      'unbound_token',
      'invalid_dpop_proof',
      'use_dpop_nonce',
      'other_key',
      'proof_replayed',
    ],
  },
  {
    clause: 'C4.5',
    step: 'admit',
    title: 'the client is within its rate, and its calls in flight',
    // The last two need no token: they are raised right behind C4.1, where a refusal costs least. How many calls of a
    // client wait for one backend is known only when the backend is: that is checked right before the call (carry-out.ts).
    faults: [
      'rate_limited',
      'too_many_calls',
      'too_many_backend_calls',
      'address_rate_limited',
      'overloaded',
    ],
  },
  {
    clause: 'C4.6',
    step: 'matchAction',
    title: 'the area and action exist and offer the method',
    faults: ['unknown_action', 'method_not_allowed'],
  },
  {
    clause: 'C4.7',
    step: 'requireScope',
    title: "the token's scope satisfies the action's",
    faults: ['insufficient_scope'],
  },
  {
    clause: 'C4.8',
    step: 'requirePlace',
    title: "the token's target is the business and fund of the URL, and they exist",
    faults: ['unknown_place', 'place_judge_unavailable'],
  },
  {
    clause: 'C4.9',
    step: 'refuseInPlaceMaintenance',
    title: 'neither the business, the area nor the backend is under maintenance',
    faults: ['place_maintenance'],
  },
  {
    clause: 'C4.10',
    step: 'negotiate',
    title: 'Accept: the media type, then the action version',
    faults: ['not_acceptable', 'unknown_action_version'],
  },
  {
    clause: 'C4.11',
    step: 'checkParameters',
    title: 'declared parameters of the query fit their schemas',
    faults: ['query_invalid'],
  },
  {
    clause: 'C4.11',
    step: 'checkBody',
    title: "Content-Type, size, the body parses, the action's schema",
    faults: [
      'unsupported_media_type',
      'body_partial',
      'body_too_large',
      'body_malformed',
      'body_missing',
      'body_unexpected',
      'body_invalid',
      'client_gone',
    ],
  },
]

/** The check that refuses for a reason; undefined for a reason that comes after the decision. */
export const checkOf = (reason: string): Check | undefined =>
  CHECKS.find(({ faults }) => faults.some((code) => code === reason))

export const stepFaults = (step: string): ReadonlySet<string> =>
  new Set(CHECKS.find((check) => check.step === step)?.faults)

/** The checks that a report-only area enforces, too (report-only.ts). */
export const ENFORCED_STEPS: ReadonlySet<string> = new Set([
  'readTarget',
  'passServiceMaintenance',
  'requireApiVersion',
  'refuseInPlaceMaintenance',
])

/** The check that follows C4.11, right before the backend is asked (carry-out.ts): the rest of C4.5. */
export const BACKEND_CHECK: Check = {
  clause: 'C4.5',
  step: 'occupy',
  title: "the backend, and the client's share of it, have room for a call",
  faults: ['too_many_backend_calls', 'backend_busy'],
}

/** Userinfo shares C4.1 to C4.5, and has this instead of the rest. */
export const USERINFO_CHECK: Check = {
  clause: 'C6.3.1',
  step: 'checkUserinfo',
  title: 'the method, the scope `openid`, Accept, Content-Type',
  faults: [
    'method_not_allowed',
    'insufficient_scope',
    'not_acceptable',
    'unknown_action_version',
    'unsupported_media_type',
  ],
}

/** Finds a check by its step: the name of the function that makes it. @throws Error if no check has that step: a defect */
export function checkOfStep(step: string): Check {
  const found = [...CHECKS, BACKEND_CHECK, USERINFO_CHECK].find((check) => check.step === step)
  if (found === undefined) throw new Error(`no check is made by ${step}`)
  return found
}
