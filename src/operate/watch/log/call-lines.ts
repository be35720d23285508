/**
 * The log line of a call. Every call has one, and an object for pino to serialize would cost as much as the decision. So
 * the line is concatenated, and pieces that many calls share are made once.
 */
import { isTargetValue } from '../../../base/config/scopes/scope-token.ts'
import type { Principal } from '../../../base/contracts/people/principal.ts'
import type { DecisionEvent } from '../../../base/contracts/records/recorder.ts'
import { SUPPORTED_METHODS } from '../../../base/http/head/head.ts'
import { cleanLine, quoteClean } from '../../../base/kernel/clean-text.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { redact } from './redact.ts'
import type { PastCall, PastCaller } from '../../../base/contracts/processes/reports.ts'

/** Makes the line of a call: JSON and its line feed, without characters that a terminal would act on (T2.7). */
type CallLine = (event: DecisionEvent, level: string) => string

/**
 * The line never holds the query or a refused target: both may hold secrets, and only a parsed target is known to be a
 * path. Each text that a client or a fault chooses is quoted by JSON.stringify and cleaned by itself. No credential can
 * reach over the quotes, so the whole line need not be cleaned again.
 */
export function compileCallLine({
  actions,
  clientAddress,
  timestamp,
}: {
  readonly actions: readonly { readonly area: string; readonly action: string }[]
  readonly clientAddress: boolean
  /** The current time as a member of a line, with the comma before it. */
  readonly timestamp: () => string
}): CallLine {
  const named = actions.map(({ area, action }) => member('area', area) + member('action', action))
  const caller = compileCaller()
  return (event, level) => {
    const { exchange, door, status, fault, slot, reported } = event
    const { principal, business, fund, upstreamMs, totalMs, traceId, version } = event
    const { id, head, target } = exchange
    const explained = fault ?? reported?.fault
    return (
      `{"level":"${level}"${timestamp()},"requestId":"${id}"` +
      (traceId === undefined ? '' : `,"traceId":"${traceId}"`) +
      member('clientRequestId', clientsOwnId(head.headers['x-request-id'])) +
      `,"door":"${door}"` +
      (METHODS.get(head.method) ?? member('method', head.method)) +
      (target instanceof Fault ? '' : `,"path":${target.quotedPath}`) +
      `,"status":${status}` +
      member('reason', fault?.code) +
      member('wouldRefuse', reported?.fault.code) +
      member('address', clientAddress ? exchange.clientAddress : undefined) +
      (principal === undefined ? member('business', business) : caller(principal, business)) +
      member('fund', fund) +
      (slot === undefined ? '' : (named[slot] ?? '')) +
      (version === undefined ? '' : `,"version":${version}`) +
      `,"ms":${milliseconds(totalMs)}` +
      (upstreamMs === undefined ? '' : `,"upstreamMs":${milliseconds(upstreamMs)}`) +
      (exchange.gone === true || fault?.code === 'client_gone' ? goneMembers(event) : '') +
      (explained === undefined ? '' : refusedMembers(event) + membersOf(faultFacts(explained))) +
      ',"event":"call"}\n'
    )
  }
}

/** How many characters of an `Accept` are logged. */
const MOST_ACCEPT = 256

/** What `postern explain --log` needs to ask for the decision again (C14.4). The scope has the token's target in it. */
const refusedMembers = ({ principal, exchange: { head } }: DecisionEvent): string =>
  member('scope', principal?.scope) + member('accept', head.headers.accept?.slice(0, MOST_ACCEPT))

/**
 * Members for a call whose client left: its status was sent to nobody. A `cancelled` call may have been carried out.
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

const METHODS: ReadonlyMap<string, string> = new Map(
  SUPPORTED_METHODS.map((method) => [method, member('method', method)]),
)

function membersOf(facts: Readonly<Record<string, unknown>>): string {
  const text = cleanLine(JSON.stringify(facts)).slice(1, -1)
  return text === '' ? '' : `,${text}`
}

interface Caller {
  readonly text: string
  /** The same with the business of the token's target, which almost every call names. */
  readonly atTarget: string
}

/** Members for the caller and the business. Cached by principal: all calls with one access token share one object. */
function compileCaller(): (principal: Principal, business: string | undefined) => string {
  const known = new WeakMap<Principal, Caller>()
  return (principal, business) => {
    let caller = known.get(principal)
    if (caller === undefined) known.set(principal, (caller = describeCaller(principal)))
    if (business !== undefined && business === principal.target?.business) return caller.atTarget
    return caller.text + member('business', business)
  }
}

function describeCaller({ isMachine, issuerName, client, subject, target }: Principal): Caller {
  const user = isMachine ? undefined : subject
  const text = member('issuer', issuerName) + member('client', client) + member('subject', user)
  return { text, atTarget: text + member('business', target?.business) }
}

export const faultFacts = ({ facts }: Fault): Record<string, unknown> => ({
  detail: redact(facts.detail),
  ...(facts.quotes !== true && {
    say: redact(facts.say),
    cause: facts.cause === undefined ? undefined : redact(facts.cause),
  }),
})

const MOST_ID = 128

/** The client's own X-Request-Id (C2.6), cut to MOST_ID characters. It is not trusted. */
const clientsOwnId = (value: string | readonly string[] | undefined): string | undefined =>
  value === undefined ? undefined : String(value).slice(0, MOST_ID)

export const round = (ms: number): number => Math.round(ms * 100) / 100

/** The fraction of a number, by hundredths: an empty text, `.5`, `.07`. */
const FRACTIONS: readonly string[] = Array.from({ length: 100 }, (_, hundredths) =>
  String(hundredths / 100).slice(1),
)
/** Below this number of hundredths a number has no exponent and every step is exact. */
const MOST_HUNDREDTHS = 1e12

/** `round` as text. The fraction is looked up, which is cheaper than formatting it. */
export function milliseconds(ms: number): string {
  const hundredths = Math.round(ms * 100)
  if (!(hundredths >= 0 && hundredths < MOST_HUNDREDTHS)) return String(round(ms))
  const whole = Math.floor(hundredths / 100)
  return `${whole}${FRACTIONS[hundredths - whole * 100] ?? ''}`
}

/** A call of the log, as it is needed to ask what would be decided about it now (C14.4). */
export interface LoggedCall extends PastCall {
  /** The business of the URL; that of the token's target if the URL names none. */
  readonly business: string | undefined
}

/** The text is no line of a call. The message says why. It repeats nothing of the text. */
export class NotACallLine extends Error {
  override readonly name = 'NotACallLine'
}

/** Reads one line. Text before its `{` is skipped: some collectors put a time there. Throws NotACallLine. */
export function readCallLine(line: string): LoggedCall {
  const members = parse(line)
  const text = (name: string): string | undefined => {
    const value = members[name]
    return typeof value === 'string' ? value : undefined
  }
  const [requestId, method] = [text('requestId'), text('method')]
  const { status, version } = members
  const wrong = WRONG.find(({ is }) => is(members))
  if (wrong !== undefined) throw new NotACallLine(wrong.why)
  if (requestId === undefined || method === undefined || typeof status !== 'number')
    throw new NotACallLine('it has no `requestId`, `method` or `status`')
  const at = Date.parse(text('time') ?? '')
  return {
    requestId,
    method,
    status,
    at: Number.isNaN(at) ? undefined : at,
    path: text('path'),
    reason: text('reason'),
    wouldRefuse: text('wouldRefuse'),
    detail: text('detail'),
    caller: callerOf(text),
    accept: text('accept'),
    contentType: undefined,
    websocket: false,
    traceId: text('traceId'),
    version: typeof version === 'number' ? version : undefined,
    business: text('business'),
  }
}

const WRONG: readonly { readonly is: (members: Members) => boolean; readonly why: string }[] = [
  { is: ({ event }) => event !== 'call', why: 'it is of another event: expected "event":"call"' },
  {
    is: ({ door }) => door === 'identity',
    why: 'it is of an identity endpoint, and only calls below /api are decided so',
  },
]

function callerOf(text: (name: string) => string | undefined): PastCaller | undefined {
  const [client, subject, scope] = [text('client'), text('subject'), text('scope')]
  if (client === undefined) return undefined
  return { client, subject, issuer: text('issuer'), scope, target: scope?.split(' ').find(isTargetValue) }
}

type Members = Readonly<Record<string, unknown>>

function parse(line: string): Members {
  try {
    const value: unknown = JSON.parse(line.slice(line.indexOf('{')))
    if (typeof value === 'object' && value !== null) return value as Members
  } catch {
    // thrown below
  }
  throw new NotACallLine('it is no JSON object')
}
