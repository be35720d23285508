/** The answer to "why was this call refused?" (C14.2): plain data, for programs and for people. */
import type { Fault, FaultCode } from '../../kernel/faults.ts'
import type { SentRequest } from './backend.ts'
import type { ClaimedCaller } from '../people/claimed-callers.ts'

/** A call that is described, and not made. Plain data: it may cross to another process. */
export interface DescribedCall {
  readonly method: string
  /** Path and query, as in the request line. */
  readonly path: string
  /** Name and value of each header line. Host and Content-Length are added where they are missing. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
  /** The address that the call comes from; undefined is loopback. Behind a trusted proxy, that of the proxy. */
  readonly from?: string | undefined
  /** An access token: added as `Authorization: Bearer`. */
  readonly token?: string | undefined
  /** The caller to decide for, in place of a token. */
  readonly caller?: ClaimedCaller | undefined
  /** Whether what the service would be sent is shown too. */
  readonly sent?: boolean
}

/** `not reached`: what it needs is not known. `unknown`: it depends on what is not asked, such as an issuer. */
export type Verdict = 'passed' | 'failed' | 'not reached' | 'unknown'

/** The findings of a check, as facts and as a sentence. The function that makes them is next to the check. */
export interface CheckDescription {
  /** By name. Members that are undefined are not known. */
  readonly facts: Readonly<Record<string, unknown>>
  readonly words: string
}

/** The result of a check. Its description gets it, also for a check that is not reached. */
export interface CheckResult {
  readonly verdict: Verdict
  readonly fault: Fault | undefined
}

export interface ExplainedCheck extends CheckDescription {
  readonly clause: string
  /** The condition that must hold. */
  readonly title: string
  readonly verdict: Verdict
  /** True behind the first failure: the call would fail here too. */
  readonly wouldFailToo: boolean
  /** False in a report-only area, for a check that refuses nothing there. */
  readonly enforced: boolean
  /** Why it failed, as the log and the metrics name it. */
  readonly reason: FaultCode | undefined
}

export interface Refusal {
  readonly clause: string
  readonly reason: FaultCode
  readonly status: number
  /** The code of the error envelope. */
  readonly code: string
  readonly text: string
  /** After how many seconds the caller may try again. */
  readonly retryAfter: number | undefined
}

export interface ExplainedCaller {
  readonly client: string
  /** Undefined for a machine. */
  readonly subject: string | undefined
  readonly issuer: string
  readonly scope: string
  /** `b/ACME`, `f/ACME/SUPER1`. */
  readonly target: string | undefined
  /** `token`: verified. `claimed`: as the token endpoint would grant it. `refused`: only what a refused token says. */
  readonly by: 'token' | 'claimed' | 'refused token'
}

export interface ExplainedAction {
  readonly level: 'business' | 'fund'
  readonly area: string
  readonly action: string
  readonly backend: string
  readonly business: string
  readonly fund: string | undefined
}

/** The request that the service would be sent for a call that is let in, with `***` for values that are told to nobody. */
export type ExplainedSent =
  | (Omit<SentRequest, 'body'> & {
      /** As text. */
      readonly body?: string
      /** In place of `body`, where it is no text. */
      readonly bodyBase64?: string
    })
  /** Nothing would be sent, and the client would be answered this. */
  | { readonly refusal: Omit<Refusal, 'clause'> }
  /** Why it is not known here. */
  | { readonly unknown: string }

export interface Explanation {
  readonly outcome: 'let in' | 'refused' | 'unknown'
  readonly method: string
  readonly path: string
  /** `identity`: an identity endpoint, about which the gateway decides nothing. It is `unknown`, without checks. */
  readonly kind: 'call' | 'userinfo' | 'preflight' | 'identity'
  readonly refusal: Refusal | undefined
  /** Set in a report-only area: what the call would be refused for, if anything. */
  readonly reportOnly: { readonly area: string; readonly wouldRefuse: FaultCode | undefined } | undefined
  /** Undefined if nobody is known to call. */
  readonly caller: ExplainedCaller | undefined
  /** Undefined if the path is no action's. */
  readonly action: ExplainedAction | undefined
  /** In the order of the decision. */
  readonly checks: readonly ExplainedCheck[]
  /** Absent where it was not asked for, and where the call is not let in. */
  readonly sent?: ExplainedSent
}

/** Why no token is given to a client for a user: reasons of the token endpoint. */
export const NO_TOKEN = ['invalid_client', 'unauthorized_client', 'invalid_scope', 'invalid_grant'] as const
