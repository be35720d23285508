/** What can be asked of the trail (C12.5), and whether a record answers it. */
import type { AuditQuery, RowOutcome, TrailRecord } from '../../contracts/audit-query.ts'
import { AUDIT_EVENTS, type AuditEvent } from '../../kernel/audit-events.ts'
import { quoteClean } from '../../kernel/clean-text.ts'

/** Whether a line of JSON has what every record has. */
export function isTrailRecord(value: unknown): value is TrailRecord {
  if (typeof value !== 'object' || value === null) return false
  const { writer, seq, time, event, outcome, actor } = value as Partial<Record<keyof TrailRecord, unknown>>
  const texts = [writer, time, event, outcome]
  const isObject = typeof actor === 'object' && actor !== null
  return isObject && texts.every((text) => typeof text === 'string') && Number.isSafeInteger(seq)
}

/**
 * Records that go on with a call that was intended; `intent` names it. They are rows only if asked for by name. The outcome
 * of another act has the event of its intent.
 */
export const FOLLOWERS: ReadonlySet<string> = new Set<AuditEvent>([
  'call.settled',
  'call.body_ended',
  'tunnel.opened',
  'tunnel.closed',
])

const CHANGING_GROUPS = /^(?:client|user|keys|consent)\./
const CHANGING: ReadonlySet<AuditEvent> = new Set<AuditEvent>([
  'call.intended',
  'session.revoked',
  'lockout.cleared',
  'configuration.reloaded',
  'maintenance.switched',
  'revocation.ordered',
  'audit.redacted',
  'audit.segment_removed',
])

/** Events that change data, the directory, or how the service works. Tokens and logins change none of these. */
export const CHANGES: readonly AuditEvent[] = (Object.keys(AUDIT_EVENTS) as AuditEvent[]).filter(
  (event) => CHANGING.has(event) || CHANGING_GROUPS.test(event),
)
const IS_CHANGE: ReadonlySet<string> = new Set(CHANGES)

type Tested = 'business' | 'fund' | 'user' | 'client' | 'by' | 'action' | 'request'

const TESTS: Readonly<Record<Tested, (record: TrailRecord, wanted: string) => boolean>> = {
  business: ({ on }, wanted) => on?.business === wanted,
  fund: ({ on }, wanted) => on?.fund === wanted,
  user: ({ actor, on }, wanted) =>
    actor.subject === wanted || on?.subject === wanted || (on?.kind === 'user' && on.id === wanted),
  client: ({ actor, on }, wanted) =>
    actor.client === wanted || on?.client === wanted || (on?.kind === 'client' && on.id === wanted),
  by: ({ actor }, wanted) => [actor.operator, actor.subject, actor.client].includes(wanted),
  action: ({ on }, wanted) => on?.action === wanted || `${on?.area}/${on?.action}` === wanted,
  request: ({ requestId }, wanted) => requestId === wanted,
}
const TESTED = Object.keys(TESTS) as Tested[]

/** What every line begins with, in this order (C12.2.1). Nothing that a client sent stands there. */
export interface LineHead {
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly event: string
  readonly outcome: string
  /** The intent that the record belongs to. */
  readonly intent: number | undefined
}

const HEAD =
  /^\{"v":\d+,"writer":"[^"]*","seq":(\d+),"time":"([^"]*)","event":"([^"]*)","outcome":"([a-z]*)"(?:,"(?:reason|requestId|traceId)":"[^"]*")*(?:,"intent":(\d+))?/

/** Undefined if a text is not the beginning of a record. */
export function readHead(text: string): LineHead | undefined {
  const found = HEAD.exec(text)
  if (found === null) return undefined
  const [, seq, time = '', event = '', outcome = '', intent] = found
  return {
    seq: Number(seq),
    time: Date.parse(time),
    event,
    outcome,
    intent: intent === undefined ? undefined : Number(intent),
  }
}

/** Whether the beginning of a record fits the query. The outcome of an intent is in another record, and not asked here. */
export function headFits({ time, event, outcome, intent }: LineHead, query: AuditQuery): boolean {
  const { events, changed, from = -Infinity, until = Infinity } = query
  if (!(time >= from && time < until)) return false
  if (events !== undefined && !(events as readonly string[]).includes(event)) return false
  if (changed === true && !IS_CHANGE.has(event)) return false
  if (query.singly === true) return true
  return FOLLOWERS.has(event) ? events !== undefined : intent === undefined || outcome !== 'success'
}

/** Whether the query asks for more than the beginning of a record tells. */
export const asksMore = (query: AuditQuery): boolean => TESTED.some((name) => query[name] !== undefined)

/** Whether the rest of a record fits the query. */
export const fits = (record: TrailRecord, query: AuditQuery): boolean =>
  TESTED.every((name) => {
    const wanted = query[name]
    return wanted === undefined || TESTS[name](record, wanted)
  })

/** Whether the outcome of a row answers the query. */
export const fitsOutcome = (outcome: RowOutcome, { outcome: wanted, changed }: AuditQuery): boolean =>
  (wanted === undefined || wanted === outcome) &&
  (changed !== true || outcome === 'success' || outcome === 'open')

/** Texts that the line of every fitting record contains: one of each group. Most lines need not be parsed then. */
export function needlesOf(query: AuditQuery): readonly (readonly string[])[] {
  const member = (name: string, value: string | undefined): string[][] =>
    value === undefined ? [] : [[`"${name}":${quoteClean(value)}`]]
  const anywhere = (value: string | undefined): string[][] =>
    value === undefined ? [] : [[quoteClean(value)]]
  const events = (names: readonly string[] | undefined): string[][] =>
    names === undefined ? [] : [names.map((name) => `"event":"${name}"`)]
  return [
    ...member('requestId', query.request),
    ...member('fund', query.fund),
    ...anywhere(query.user),
    ...anywhere(query.by),
    ...anywhere(query.client),
    ...member('action', query.action?.slice(query.action.indexOf('/') + 1)),
    ...member('business', query.business),
    ...(query.outcome === 'open' ? [['"outcome":"pending"']] : []),
    ...events(query.events),
    ...(query.changed === true ? events(CHANGES) : []),
  ]
}
