/** Rows of the trail as CSV. */
import type { AuditRow } from '../../contracts/audit-query.ts'
import { csvLine } from '../csv.ts'
import { visible } from './row-text.ts'

/** The columns, and where each stands in a row. */
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
