/**
 * The log's line of a call. One is written for every call, and making an object for pino to walk costs as much as the
 * decision itself: so it is put together from pieces, of which those that are the same for many calls are made once.
 */
import type { DecisionEvent } from '../../contracts/recorder.ts'
import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import { cleanLine, quoteClean, redact } from './redact.ts'

export interface CallLineParts {
  /** By slot: how a call's action is named. */
  readonly actions: readonly { readonly area: string; readonly action: string }[]
  /** Whether lines name the client's address. */
  readonly clientAddress: boolean
  /** The current time as a member of a line, with the comma before it. */
  readonly timestamp: () => string
}

/** Writes the line of a call: JSON and its line feed, nothing in it that a reader could act on (T2.7). */
export type CallLine = (event: DecisionEvent, level: string) => string

/**
 * Never the query, nor a target that was refused: both may hold secrets, and only what was judged is known to be a
 * path. Whatever a client or a fault can choose is quoted by the engine's own JSON and looked at by itself: no trick
 * and no credential reaches over the quotes around it, so that the line need not be looked at as a whole.
 */
export function compileCallLine({ actions, clientAddress, timestamp }: CallLineParts): CallLine {
  const named = actions.map(({ area, action }) => member('area', area) + member('action', action))
  const caller = compileCaller()
  return (event, level) => {
    const { exchange, door, status, fault, slot, reported } = event
    const { principal, business, fund, upstreamMs, totalMs } = event
    const { id, head, target } = exchange
    const told = fault ?? reported?.fault
    return (
      `{"level":"${level}"${timestamp()},"requestId":"${id}"` +
      member('clientRequestId', clientsOwnId(head.headers['x-request-id'])) +
      `,"door":"${door}"` +
      member('method', head.method) +
      member('path', target instanceof Fault ? undefined : target.path) +
      `,"status":${status}` +
      member('reason', fault?.code) +
      member('wouldRefuse', reported?.fault.code) +
      member('address', clientAddress ? exchange.clientAddress : undefined) +
      (principal === undefined ? member('business', business) : caller(principal, business)) +
      member('fund', fund) +
      (slot === undefined ? '' : (named[slot] ?? '')) +
      `,"ms":${milliseconds(totalMs)}` +
      (upstreamMs === undefined ? '' : `,"upstreamMs":${milliseconds(upstreamMs)}`) +
      (exchange.gone === true || fault?.code === 'client_gone' ? goneMembers(event) : '') +
      (told === undefined ? '' : membersOf(faultFacts(told))) +
      ',"event":"call"}\n'
    )
  }
}

/**
 * Of a call that its client did not wait for: the status was sent to nobody, and what counts is what became of it
 * upstream. `cancelled` may have been carried out.
 */
function goneMembers({ fault, upstreamMs, upstreamStatus }: DecisionEvent): string {
  const gone = ',"clientGone":true'
  if (upstreamMs === undefined) return gone
  const upstream = upstreamStatus ?? fault?.facts.upstream
  if (typeof upstream === 'number') return `${gone},"upstream":"answered","upstreamStatus":${upstream}`
  return `${gone},"upstream":"${upstream ?? (fault?.code === 'client_gone' ? 'cancelled' : 'failed')}"`
}

const member = (name: string, value: string | undefined): string =>
  value === undefined ? '' : `,"${name}":${quoteClean(value)}`

/** The members of an object, as further ones of a line. */
function membersOf(facts: Readonly<Record<string, unknown>>): string {
  const text = cleanLine(JSON.stringify(facts)).slice(1, -1)
  return text === '' ? '' : `,${text}`
}

interface Caller {
  readonly text: string
  /** With the business of the token's target, which almost every call of it is about. */
  readonly atTarget: string
}

/** Who calls, and which business. A principal is one object for all calls with one access token. */
function compileCaller(): (principal: Principal, business: string | undefined) => string {
  const known = new WeakMap<Principal, Caller>()
  return (principal, business) => {
    let caller = known.get(principal)
    if (caller === undefined) known.set(principal, (caller = describeCaller(principal)))
    if (business !== undefined && business === principal.target?.business) return caller.atTarget
    return caller.text + member('business', business)
  }
}

function describeCaller({ client, subject, target }: Principal): Caller {
  const text = member('client', client) + member('subject', subject)
  return { text, atTarget: text + member('business', target?.business) }
}

/** What the log alone is told of a fault. */
export const faultFacts = ({ facts }: Fault): Record<string, unknown> => ({
  detail: redact(facts.detail),
  ...(facts.quotes !== true && {
    say: redact(facts.say),
    cause: facts.cause === undefined ? undefined : redact(facts.cause),
  }),
})

const MOST_ID = 128

/** A client's own X-Request-Id (C2.6), cut: it is the client's to choose, and nobody's to believe. */
const clientsOwnId = (value: string | readonly string[] | undefined): string | undefined =>
  value === undefined ? undefined : String(value).slice(0, MOST_ID)

export const round = (ms: number): number => Math.round(ms * 100) / 100

/** What follows the whole part of a number of hundredths: nothing, `.5`, `.07`. */
const FRACTIONS: readonly string[] = Array.from({ length: 100 }, (_, hundredths) =>
  String(hundredths / 100).slice(1),
)
/** In hundredths: below it a number is written without an exponent, and every step between is exact. */
const MOST_HUNDREDTHS = 1e12

/** `round` as text: a fraction's digits cost more to find than to look up. */
export function milliseconds(ms: number): string {
  const hundredths = Math.round(ms * 100)
  if (!(hundredths >= 0 && hundredths < MOST_HUNDREDTHS)) return String(round(ms))
  const whole = Math.floor(hundredths / 100)
  return `${whole}${FRACTIONS[hundredths - whole * 100] ?? ''}`
}
