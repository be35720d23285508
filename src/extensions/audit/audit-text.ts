/** Rows of the trail as people read them, and as CSV. They hold no characters that the terminal would act on. */
import type { AuditRow } from '../../base/contracts/records/audit-query.ts'
import { AUDIT_EVENTS } from '../../base/kernel/audit-events.ts'
import { quoteClean } from '../../base/kernel/clean-text.ts'
import { csvLine } from '../../operate/operation/csv.ts'

/** A value of a record as text, with control characters and marks of direction as escapes such as `\u001b`. */
export function visible(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return quoteClean(text).slice(1, -1).replaceAll('\\"', '"')
}

const joined = (parts: readonly (string | undefined)[], between = ' '): string =>
  parts.filter((part) => part !== undefined && part !== '').join(between)

const after = (word: string, value: unknown): string | undefined =>
  value === undefined ? undefined : `${word} ${visible(value)}`

/** `user 4573… through acme-books`, `operator anna (says: Anna)` */
function whoText({ actor, erased = [] }: AuditRow): string {
  const name = actor.operator ?? actor.subject ?? (actor.kind === 'client' ? actor.client : undefined)
  const through = actor.kind === 'client' ? undefined : actor.client
  const address = erased.includes('actor.address') ? '(erased)' : addressOf(actor)
  return joined([
    visible(actor.kind),
    name === undefined ? undefined : visible(name),
    after('through', through),
    actor.claimed === undefined ? undefined : `(says: ${visible(actor.claimed)})`,
    after('from', address),
  ])
}

const addressOf = (actor: object): string | undefined =>
  'address' in actor && typeof actor.address === 'string' ? actor.address : undefined

/** `POST member-data/member-list of fund SUPER1 at ACME`, `client.added client acme-books` */
function whatText({ event, on, grant }: AuditRow): string {
  const place = joined([after('of fund', on?.fund), after('at', on?.business)])
  if (on?.action !== undefined)
    return joined([
      event.startsWith('call.intended') ? undefined : visible(event),
      visible(on.method),
      visible(joined([on.area, on.action], '/')),
      place,
    ])
  return joined([
    visible(event),
    after(visible(on?.kind), on?.id),
    after('of user', on?.subject),
    after('of client', on?.client),
    place,
    after('by grant', grant?.grant),
  ])
}

/** `success 200`, `refused: insufficient_scope`, `open` */
const outcomeText = ({ outcome, reason, call }: AuditRow): string =>
  joined([reason === undefined ? outcome : `${outcome}:`, visible(reason), visible(call?.status)])

export const HEADS = ['TIME (UTC)', 'WHO', 'WHAT', 'OUTCOME', 'REQUEST']

export const cellsOf = (row: AuditRow): readonly string[] => [
  visible(row.time),
  whoText(row),
  whatText(row),
  outcomeText(row),
  visible(row.requestId),
]

const isTitled = (event: string): event is keyof typeof AUDIT_EVENTS => Object.hasOwn(AUDIT_EVENTS, event)

const DETAILS = ['reason', 'on', 'grant', 'call', 'change', 'why', 'erased', 'altered', 'traceId'] as const

/** One record in plain words, with all that it holds: a line for what happened, and one for each detail below it. */
export function recordText(row: AuditRow): string {
  const title = isTitled(row.event) ? AUDIT_EVENTS[row.event].title : ''
  const details = DETAILS.flatMap((name) => {
    const value = row[name]
    return value === undefined ? [] : [`    ${name.padEnd(8)} ${detailText(value)}\n`]
  })
  return `${visible(row.time)}  ${visible(row.event)}  ${visible(row.outcome)}\n    ${title}\n    by       ${whoText(row)}\n${details.join('')}    record   ${visible(row.writer)} ${row.seq}\n`
}

/** `status 200, ms 12`; for a nested value `params.memberId 17`. */
function detailText(value: unknown, path = ''): string {
  if (typeof value !== 'object' || value === null) return joined([path, visible(value)])
  if (Array.isArray(value)) return joined([path, value.map((each) => visible(each)).join(', ')])
  return Object.entries(value)
    .map(([name, inner]) => detailText(inner, joined([path, visible(name)], '.')))
    .join(', ')
}

/** The columns of CSV, and where each is in a row. */
const COLUMNS: Readonly<Record<string, (row: AuditRow) => unknown>> = {
  time: ({ time }) => time,
  event: ({ event }) => event,
  outcome: ({ outcome }) => outcome,
  reason: ({ reason }) => reason,
  actor: ({ actor }) => actor.kind,
  subject: ({ actor }) => actor.subject,
  client: ({ actor }) => actor.client,
  operator: ({ actor }) => actor.operator,
  claimed: ({ actor }) => actor.claimed,
  via: ({ actor }) => actor.via,
  address: ({ actor }) => ('address' in actor ? actor.address : undefined),
  business: ({ on }) => on?.business,
  fund: ({ on }) => on?.fund,
  area: ({ on }) => on?.area,
  action: ({ on }) => on?.action,
  method: ({ on }) => on?.method,
  kind: ({ on }) => on?.kind,
  id: ({ on }) => on?.id,
  'of user': ({ on }) => on?.subject,
  'of client': ({ on }) => on?.client,
  grant: ({ grant }) => grant?.grant,
  scope: ({ grant }) => grant?.scope,
  target: ({ grant }) => grant?.target,
  status: ({ call }) => call?.status,
  bytes: ({ call }) => call?.bytes,
  body: ({ call }) => call?.body,
  change: ({ change }) => change,
  why: ({ why }) => why,
  erased: ({ erased }) => erased?.join(' '),
  requestId: ({ requestId }) => requestId,
  traceId: ({ traceId }) => traceId,
  writer: ({ writer }) => writer,
  seq: ({ seq }) => seq,
  hash: ({ hash }) => hash,
}

const cell = (value: unknown): string | number | undefined =>
  typeof value === 'number' ? value : visible(value)

export const CSV_HEAD = csvLine(Object.keys(COLUMNS))

export const csvRow = (row: AuditRow): string =>
  csvLine(Object.values(COLUMNS).map((read) => cell(read(row))))
