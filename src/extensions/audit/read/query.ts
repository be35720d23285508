/** The questions that the trail answers (C12.5), and whether a record answers one. */
import { Buffer } from 'node:buffer'
import { didYouMean } from '../../../base/config/problem-text.ts'
import {
  type AuditQuery,
  ROW_OUTCOMES,
  type RowOutcome,
  type TrailRecord,
} from '../../../base/contracts/records/audit-query.ts'
import { AUDIT_EVENTS, type AuditEvent } from '../../../base/kernel/audit-events.ts'
import { quoteClean } from '../../../base/kernel/clean-text.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import { MOST_TEXT } from '../format/record.ts'
import type { LineHead } from '../format/record-line.ts'

/** The record of a line; undefined if it is none. */
export function parseTrailRecord(line: string): TrailRecord | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isTrailRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Whether a line of JSON has what every record has. */
function isTrailRecord(value: unknown): value is TrailRecord {
  if (typeof value !== 'object' || value === null) return false
  const { writer, seq, time, event, outcome, actor } = value as Partial<Record<keyof TrailRecord, unknown>>
  const texts = [writer, time, event, outcome]
  const isObject = typeof actor === 'object' && actor !== null
  return isObject && texts.every((text) => typeof text === 'string') && Number.isSafeInteger(seq)
}

/**
 * Records that continue a call that was intended; `intent` names it. They are rows only if asked for by name. The outcome
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

/** Whether the beginning of a record fits the query. The outcome of an intent is in another record, and not asked here. */
export function headFits(head: LineHead, query: AuditQuery): boolean {
  const { event, outcome, intent } = head
  const { events, changed, from = -Infinity, until = Infinity } = query
  const time = Date.parse(head.time)
  if (!(time >= from && time < until)) return false
  if (events !== undefined && !(events as readonly string[]).includes(event)) return false
  if (changed === true && !IS_CHANGE.has(event)) return false
  if (query.singly === true) return true
  return FOLLOWERS.has(event) ? events !== undefined : intent === undefined || outcome !== 'success'
}

/** Whether the query asks for more than the beginning of a record says. */
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

/** The filters by their names, as texts. `changed` is on if it is given and not `false`. */
export interface QueryTexts extends Pick<
  AuditQuery,
  'business' | 'fund' | 'user' | 'client' | 'by' | 'action' | 'request'
> {
  /** Names of events, or `user.*`, divided by commas. */
  readonly event?: string | undefined
  readonly outcome?: string | undefined
  readonly changed?: string | undefined
  /** `2026-03` */
  readonly month?: string | undefined
  /** `2026-03`, `2026-03-31` or a time with its zone. */
  readonly from?: string | undefined
  readonly until?: string | undefined
}

/** The query, or a line for each problem: the filter, then what is wrong with it. */
type QueryRead =
  | { readonly query: AuditQuery; readonly problems?: undefined }
  | { readonly query?: undefined; readonly problems: readonly string[] }

/** Reads the texts of the filters, as people write them: on the command line, and as the parameters of a URL (C12.5). */
export function readAuditQuery(texts: QueryTexts): QueryRead {
  const problems: string[] = []
  for (const name of TESTED) checkPlain(name, texts[name], problems)
  const query: AuditQuery = {
    ...Object.fromEntries(TESTED.flatMap((name) => (texts[name] === undefined ? [] : [[name, texts[name]]]))),
    events: readEvents(texts.event, problems),
    outcome: readOutcome(texts.outcome, problems),
    changed: texts.changed !== undefined && texts.changed !== 'false',
    ...readTimes(texts, problems),
  }
  return problems.length > 0 ? { problems } : { query }
}

function checkPlain(name: string, value: string | undefined, problems: string[]): void {
  if (value === '') problems.push(`${name}  is empty`)
  if (value !== undefined && Buffer.byteLength(value) > MOST_TEXT)
    problems.push(`${name}  is longer than ${MOST_TEXT} bytes: no record has that`)
}

const EVENTS = Object.keys(AUDIT_EVENTS) as AuditEvent[]
const GROUPS = [...new Set(EVENTS.map((event) => `${event.slice(0, event.indexOf('.'))}.*`))]

function readEvents(text: string | undefined, problems: string[]): readonly AuditEvent[] | undefined {
  if (text === undefined) return undefined
  return text.split(',').flatMap((word) => {
    const name = word.trim()
    const found = GROUPS.includes(name)
      ? EVENTS.filter((event) => event.startsWith(name.slice(0, -1)))
      : EVENTS.filter((event) => event === name)
    if (found.length === 0) problems.push(`event  ${unknown(name, [...EVENTS, ...GROUPS])}`)
    return found
  })
}

function readOutcome(text: string | undefined, problems: string[]): RowOutcome | undefined {
  const outcome = ROW_OUTCOMES.find((each) => each === text)
  if (text !== undefined && outcome === undefined) {
    const hint = didYouMean(text, ROW_OUTCOMES)
    problems.push(
      `outcome  expected one of ${ROW_OUTCOMES.join(', ')}, got ${quoted(text)}${hint === undefined ? '' : ` — ${hint}`}`,
    )
  }
  return outcome
}

const MOST_SHOWN = 60

function quoted(text: string): string {
  return JSON.stringify(text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text)
}

function unknown(name: string, known: readonly string[]): string {
  const hint = name.length > MOST_SHOWN ? undefined : didYouMean(name, known)
  return `there is no event ${quoted(name)}${hint === undefined ? '' : ` — ${hint}`}`
}

/** A span of time in milliseconds since the epoch, without `until` itself. */
interface Span {
  readonly from: number
  readonly until: number
}

function readTimes(
  { month, from, until }: QueryTexts,
  problems: string[],
): Pick<AuditQuery, 'from' | 'until'> {
  if (month !== undefined && (from !== undefined || until !== undefined))
    problems.push('month  names a whole month; without it, `from` and `until` can be given')
  const whole = spanOf('month', month, problems)
  const first = spanOf('from', from, problems)
  const last = spanOf('until', until, problems)
  const times = { from: (whole ?? first)?.from, until: (whole ?? last)?.until }
  if (times.from !== undefined && times.until !== undefined && times.from >= times.until)
    problems.push('until  is not after `from`')
  return times
}

const MONTH = /^\d{4}-\d{2}$/
const DAY = /^\d{4}-\d{2}-\d{2}$/
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/

const EXPECTED = {
  month: 'a month such as 2026-03',
  from: 'a month, a day or a time with its zone, such as 2026-03, 2026-03-31 or 2026-03-31T18:00Z',
  until: 'a month, a day or a time with its zone, such as 2026-03, 2026-03-31 or 2026-03-31T18:00Z',
}

/** A month or a day is all of it, in UTC; a time is that moment. */
function spanOf(name: keyof typeof EXPECTED, text: string | undefined, problems: string[]): Span | undefined {
  if (text === undefined) return undefined
  const span = monthOf(text) ?? (name === 'month' ? undefined : (dayOf(text) ?? instantOf(text)))
  if (span === undefined) problems.push(`${name}  ${whyNot(text, EXPECTED[name])}`)
  return span
}

function monthOf(text: string): Span | undefined {
  const first = new Date(`${text}-01T00:00Z`)
  if (!MONTH.test(text) || Number.isNaN(first.getTime())) return undefined
  const next = new Date(first)
  next.setUTCMonth(first.getUTCMonth() + 1)
  return { from: first.getTime(), until: next.getTime() }
}

function dayOf(text: string): Span | undefined {
  if (!DAY.test(text) || !isDay(text)) return undefined
  const from = Date.parse(text)
  return { from, until: from + DAY_MS }
}

/** Date.parse takes 30 February for 2 March. */
const isDay = (day: string): boolean => {
  const time = Date.parse(`${day}T00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day)
}

function instantOf(text: string): Span | undefined {
  if (!INSTANT.test(text) || !isDay(text.slice(0, 10))) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : { from: time, until: time }
}

function whyNot(text: string, expected: string): string {
  if (MONTH.test(text)) return `there is no month ${text}: expected ${expected}`
  if (/^\d{4}-\d{2}-\d{2}(?:T|$)/.test(text) && !isDay(text.slice(0, 10)))
    return `there is no day ${text.slice(0, 10)}: expected ${expected}`
  return `expected ${expected}, got ${quoted(text)}`
}
