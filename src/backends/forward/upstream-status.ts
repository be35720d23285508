import { Fault, type FaultCode, type FaultFacts } from '../../kernel/faults.ts'

/** What of the call the judgement of an upstream's status depends on. */
export interface StatusContext {
  /** The request carried If-None-Match or If-Modified-Since. */
  readonly conditional: boolean
  /** The request carried Range: the bytes of the answer reach the client as they are. */
  readonly ranged: boolean
  /** The client's Authorization was passed on: a 401 is then the client's to see. */
  readonly authorizationForwarded: boolean
}

/**
 * `answer`: it passes. `errors`: its own well-formed errors pass, else the fault. `fault`: always ours.
 */
export interface StatusVerdict {
  readonly kind: 'answer' | 'errors' | 'fault'
  readonly code: FaultCode
}

const ANSWER: StatusVerdict = { kind: 'answer', code: 'internal' }
const fault = (code: FaultCode): StatusVerdict => ({ kind: 'fault', code })
const errors = (code: FaultCode): StatusVerdict => ({ kind: 'errors', code })

/** Single statuses (C8.4). A 4xx takes the code of its row in the contract's table C2, if it has one. */
const BY_STATUS: ReadonlyMap<number, StatusVerdict> = new Map([
  [401, fault('upstream_broken')],
  [403, fault('upstream_forbade')],
  [404, errors('upstream_not_found')],
  [405, errors('upstream_method_not_allowed')],
  [406, errors('upstream_not_acceptable')],
  [407, fault('upstream_broken')],
  [413, errors('upstream_too_large')],
  [414, errors('upstream_too_large')],
  [415, errors('upstream_unsupported_media_type')],
  [429, errors('upstream_rate_limited')],
  [431, errors('upstream_too_large')],
  [503, fault('upstream_unavailable')],
])

const BROKEN = fault('upstream_broken')
const REFUSED = errors('upstream_refused')
const UNAUTHORISED = errors('upstream_unauthorised')

/** How an upstream's final status is told to the client: the table of C8.4, for every forwarding backend. */
export function judgeStatus(status: number, context: StatusContext): StatusVerdict {
  // A part that nobody asked for would pass for the whole.
  if (status === 206) return context.ranged ? ANSWER : BROKEN
  if (status >= 200 && status < 300) return ANSWER
  if (status === 304 && context.conditional) return ANSWER
  if (status === 401 && context.authorizationForwarded) return UNAUTHORISED
  return BY_STATUS.get(status) ?? (status >= 400 && status < 500 ? REFUSED : BROKEN)
}

type UpstreamHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** The fault of a verdict, with what of the upstream's headers a client needs to go on: Retry-After, Allow, Content-Range. */
export function statusFault(
  { kind, code }: StatusVerdict,
  status: number,
  headers: UpstreamHeaders,
  now: number,
): Fault {
  const retryAfter = retryAfterSeconds(first(headers['retry-after']), now)
  const allow = first(headers['allow'])
  const contentRange = first(headers['content-range'])
  const facts: FaultFacts = {
    detail: `the upstream answered ${status}`,
    ...(retryAfter !== undefined && (status === 503 || status === 429) && { retryAfter }),
    ...(status === 416 && contentRange !== undefined && UNSATISFIED.test(contentRange) && { contentRange }),
    ...(status === 405 && { allow: methodNames(allow ?? '') }),
    ...(kind === 'errors' && { status }),
  }
  return new Fault(code, facts)
}

/** How long the data is (RFC 9110 §14.4): a download that is complete already learns it so. */
const UNSATISFIED = /^bytes \*\/[0-9]{1,15}$/

const first = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.[0]

const methodNames = (allow: string): readonly string[] =>
  allow.split(',').flatMap((name) => (/^[A-Z]{1,20}$/.test(name.trim()) ? [name.trim()] : []))

const LONGEST_WAIT = 86_400

/** Retry-After as seconds or as a date (RFC 9110 §10.2.3), in whole seconds, at most a day; undefined if unreadable. */
export function retryAfterSeconds(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), LONGEST_WAIT)
}
