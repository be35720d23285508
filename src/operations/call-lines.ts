/**
 * The log's line of a call. One is written for every call, and making an object for pino to walk costs as much as the
 * decision itself: so it is put together from pieces, of which those that are the same for many calls are made once.
 */
import type { DecisionEvent } from '../contracts/recorder.ts'
import type { Principal } from '../contracts/principal.ts'
import { Fault } from '../kernel/faults.ts'
import { cleanLine, redact } from './redact.ts'

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
 * path. Whatever a client can choose is quoted by the engine's own JSON, and the line looked at as a whole.
 */
export function compileCallLine({ actions, clientAddress, timestamp }: CallLineParts): CallLine {
  const named = actions.map(({ area, action }) => member('area', area) + member('action', action))
  const caller = compileCaller()
  return ({ exchange, door, status, fault, slot, reported, ...found }, level) => {
    const { id, head, target } = exchange
    const { principal, business, fund, upstreamMs, totalMs } = found
    const told = fault ?? reported?.fault
    return cleanLine(
      `{"level":"${level}"${timestamp()},"requestId":"${id}"` +
        member('clientRequestId', clientsOwnId(head.headers['x-request-id'])) +
        `,"door":"${door}"` +
        member('method', head.method) +
        member('path', target instanceof Fault ? undefined : target.path) +
        `,"status":${status}` +
        member('reason', fault?.code) +
        member('wouldRefuse', reported?.fault.code) +
        member('address', clientAddress ? exchange.clientAddress : undefined) +
        (principal === undefined ? '' : caller(principal)) +
        member('business', business) +
        member('fund', fund) +
        (slot === undefined ? '' : (named[slot] ?? '')) +
        `,"ms":${round(totalMs)}` +
        (upstreamMs === undefined ? '' : `,"upstreamMs":${round(upstreamMs)}`) +
        (told === undefined ? '' : membersOf(faultFacts(told))) +
        ',"event":"call"}\n',
    )
  }
}

const member = (name: string, value: string | undefined): string =>
  value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`

/** The members of an object, as further ones of a line. */
function membersOf(facts: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(facts).slice(1, -1)
  return text === '' ? '' : `,${text}`
}

/** A principal is one object for all calls with one access token. */
function compileCaller(): (principal: Principal) => string {
  const known = new WeakMap<Principal, string>()
  return (principal) => {
    const made = known.get(principal)
    if (made !== undefined) return made
    const { client, subject } = principal
    const text = member('client', client) + member('subject', subject)
    known.set(principal, text)
    return text
  }
}

/** What the log alone is told of a fault. */
export const faultFacts = ({ facts }: Fault): Record<string, unknown> => ({
  detail: redact(facts.detail),
  say: redact(facts.say),
  cause: facts.cause === undefined ? undefined : redact(facts.cause),
})

const MOST_ID = 128

/** A client's own X-Request-Id (C2.6), cut: it is the client's to choose, and nobody's to believe. */
const clientsOwnId = (value: string | readonly string[] | undefined): string | undefined =>
  value === undefined ? undefined : String(value).slice(0, MOST_ID)

export const round = (ms: number): number => Math.round(ms * 100) / 100
