/** Reads a query as people write it: on the command line, and as the parameters of a URL (C12.5). */
import {
  type AuditQuery,
  type QueryRead,
  type QueryTexts,
  ROW_OUTCOMES,
  type RowOutcome,
} from '../../contracts/audit-query.ts'
import { didYouMean } from '../../config/problem-text.ts'
import { AUDIT_EVENTS, type AuditEvent } from '../../kernel/audit-events.ts'
import { MOST_TEXT } from '../record.ts'
import { DAY_MS } from '../../kernel/units.ts'

const PLAIN = ['business', 'fund', 'user', 'client', 'by', 'action', 'request'] as const

/** Reads the texts of the filters. */
export function readQuery(texts: QueryTexts): QueryRead {
  const problems: string[] = []
  for (const name of PLAIN) checkPlain(name, texts[name], problems)
  const query: AuditQuery = {
    ...Object.fromEntries(PLAIN.flatMap((name) => (texts[name] === undefined ? [] : [[name, texts[name]]]))),
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

/** Milliseconds since the epoch: from the first to before the last. */
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
