/** The admin API's routes for the audit trail (C12.5). Each question leaves a record itself. */
import {
  type AuditQuery,
  type AuditRow,
  type Position,
  type Progress,
  type QueryTexts,
  type ScanEnd,
  type ScanStep,
  TrailReadError,
  type TrailReader,
} from '../contracts/audit-query.ts'
import { Readable } from 'node:stream'
import type { AuditTrail } from '../contracts/audit.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'
import { byOperator, type Operator } from '../audit/audited-change.ts'
import { AdminError } from './errors.ts'
import { LIMIT, MOST_ROWS, ROWS } from './paging.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  type Operation,
  type ServiceOperation,
  members,
  type Members,
  notFound,
  ok,
  refuse,
  reject,
  type Schema,
  text,
  WHO,
} from './operation.ts'

/** The trail that is asked, and where the question is recorded. */
export interface QueriedTrail {
  readonly reader: TrailReader
  readonly audit: Pick<AuditTrail, 'note'>
}

/** `by` is a filter here. */
const ASKER: Members = {
  claimed: text('Who asks, as they call themselves.'),
  reason: text('Why, in at most 500 bytes; it goes to the audit trail.'),
}

const FILTERS: Members = {
  business: text('The code of a business.'),
  fund: text('The code of a fund.'),
  user: text('A `sub`: who acted, or whom it is about.'),
  client: text('A client id: through which it came, or that it is about.'),
  by: text('Who acted, as it was proven: a `sub`, a client id or the name of an operator.'),
  action: text('`action` or `area/action`.'),
  event: text('Names of events, or groups such as `user.*`, divided by commas.'),
  outcome: text('`success`, `refused`, `failed`, or `open`: an intent without an outcome.'),
  request: text('A request id.'),
  changed: { enum: ['true', 'false'], description: 'Only what has changed something, or may have.' },
  month: text('`2026-03`, in UTC.'),
  from: text('From this month, day or time on, such as `2026-03-31` or `2026-03-31T18:00Z`.'),
  until: text('Until the end of this month or day, or before this time.'),
}

const row: Schema = {
  type: 'object',
  description: 'A record with its personal values in their places; a call’s intent with its outcome.',
}
const rowsSchema = members(
  {
    rows: { type: 'array', items: row, description: 'By time, then writer, then seq.' },
    next: text('The cursor of the next page. Absent after the last row.'),
    unreadable: { type: 'integer', description: 'Lines that are no records: verify the trail.' },
    uncovered: {
      type: 'object',
      description:
        'What the trail does not have of the time that was asked for: `all` of it or a part, when its first record `begins`, and `removedFrom`: since when it was kept, if the time before was removed by retention.',
    },
  },
  ['rows', 'unreadable'],
)

const NO_TRAIL = refuse('no audit trail is kept', ['see `audit.enabled`'])

/** Records who asked what. */
function record(trail: QueriedTrail, event: AuditEvent, operator: Operator, asked: object): void {
  const change = { asked: JSON.parse(JSON.stringify(asked)) as Record<string, string> }
  trail.audit.note({ event, outcome: 'success', ...byOperator(operator), change })
}

function withoutWho(query: AdminRequest['query']): QueryTexts & Readonly<Record<string, string | undefined>> {
  const names = [...Object.keys(FILTERS), 'limit', 'cursor']
  return Object.fromEntries(names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])))
}

/** As far as the next page has to know it. */
const cursorOf = ({ day, time, writer, seq }: Position): string =>
  Buffer.from(JSON.stringify([day, time, writer, seq])).toString('base64url')

function readCursor(cursor: string): Position | undefined {
  try {
    const [day, time, writer, seq] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    const whole =
      typeof day === 'string' &&
      typeof time === 'number' &&
      typeof writer === 'string' &&
      typeof seq === 'number'
    return whole ? { day, time, writer, seq } : undefined
  } catch {
    return undefined
  }
}

type Order = Parameters<TrailReader['query']>[0]

/** A page of an answer. */
interface Page extends ScanEnd {
  readonly found: readonly AuditRow[]
}

async function readPage(trail: QueriedTrail, order: Order): Promise<Page> {
  const found: AuditRow[] = []
  for await (const step of steps(trail, order)) {
    if (step.kind === 'end') return { ...step, found }
    found.push(...step.lines.map((line) => JSON.parse(line) as AuditRow))
  }
  throw new TrailReadError('the answer has no end')
}

/** The steps of an answer. Rejects with AdminError 503 if the trail cannot be read. */
async function* steps({ reader }: QueriedTrail, order: Order): AsyncGenerator<ScanStep> {
  try {
    yield* reader.query(order)
  } catch (thrown) {
    asAdminError(thrown)
  }
}

const answerOf = ({ found, last, unreadableCount: unreadable, uncovered }: Page): AdminAnswer =>
  ok({ rows: found, ...(last && { next: cursorOf(last) }), unreadable, ...(uncovered && { uncovered }) })

async function findPage(trail: QueriedTrail, { query: texts, operator }: AdminRequest): Promise<AdminAnswer> {
  const { query, problems } = trail.reader.readQuery(texts)
  if (problems !== undefined) return reject(problems)
  const { limit, cursor } = texts
  const after = cursor === undefined ? undefined : readCursor(cursor)
  if (cursor !== undefined && after === undefined) return reject(['cursor  is none that an answer gave'])
  record(trail, 'audit.queried', operator, withoutWho(texts))
  return answerOf(await readPage(trail, { query, after, limit: Number(limit ?? ROWS) }))
}

async function openIntents(trail: QueriedTrail, { operator }: AdminRequest): Promise<AdminAnswer> {
  record(trail, 'audit.queried', operator, { outcome: 'open' })
  return answerOf(await readPage(trail, { query: { outcome: 'open' }, limit: MOST_ROWS }))
}

async function oneRequest(trail: QueriedTrail, { params, operator }: AdminRequest): Promise<AdminAnswer> {
  const request = params['requestId'] ?? ''
  record(trail, 'audit.queried', operator, { request })
  const query: AuditQuery = { request, singly: true }
  const page = await readPage(trail, { query, limit: MOST_ROWS })
  return page.found.length > 0
    ? answerOf(page)
    : notFound('no record has this request id', [`requestId  ${request}`])
}

async function verify({ reader, audit }: QueriedTrail, { operator }: AdminRequest): Promise<AdminAnswer> {
  const verdict = await reader.verify().catch(asAdminError)
  const { whole, found, records } = verdict
  const outcome = whole ? 'success' : 'failed'
  audit.note({
    ...{ event: 'audit.verified', outcome, ...byOperator(operator) },
    change: { whole, found, records },
  })
  return ok(verdict)
}

function asAdminError(thrown: unknown): never {
  if (!(thrown instanceof TrailReadError)) throw thrown
  throw new AdminError(503, 'the trail cannot be read', [thrown.message])
}

const line = (value: object): string => `${JSON.stringify(value)}\n`

/** Rows as they come, one in a line: `{"row"}`, `{"progress"}`, last `{"end"}` or `{"failed"}`. */
async function* streamed({ reader }: QueriedTrail, order: Order): AsyncGenerator<string> {
  let progress: Progress | undefined
  try {
    for await (const step of reader.query(order, (told) => (progress = told))) {
      if (progress !== undefined) yield line({ progress })
      progress = undefined
      if (step.kind === 'end') yield line({ end: step })
      else yield step.lines.map((each) => `{"row":${each}}\n`).join('')
    }
  } catch (thrown) {
    if (!(thrown instanceof TrailReadError)) throw thrown
    yield line({ failed: thrown.message })
  }
}

const LINES = 'application/x-ndjson'

function stream(trail: QueriedTrail, { query: texts, operator }: AdminRequest): AdminAnswer {
  const { query, problems } = trail.reader.readQuery(texts)
  if (problems !== undefined) return reject(problems)
  const { purpose, singly } = texts
  record(trail, purpose === 'find' ? 'audit.queried' : 'audit.exported', operator, withoutWho(texts))
  const order = { query: { ...query, singly: singly === 'true' } }
  return { status: 200, type: LINES, body: Readable.from(streamed(trail, order)) }
}

const PAGE = {
  limit: LIMIT,
  cursor: text('`next` of the page before.'),
}

const verifyRoute = (trail: QueriedTrail | undefined): Operation => ({
  method: 'POST',
  needs: 'audit',
  path: '/audit/verify',
  operationId: 'verifyTrail',
  summary: 'Whether the trail is whole: chains, gaps, signatures, and the anchors that stand in files',
  body: members(WHO),
  bodyOptional: true,
  answers: { 200: ['What was found', { type: 'object' }] },
  handle: (_control, request) => (trail === undefined ? NO_TRAIL : verify(trail, request)),
})

/** The routes. Without a trail, each answers 409. */
export function auditRoutes(trail: QueriedTrail | undefined): readonly Operation[] {
  const asking =
    (
      ask: (trail: QueriedTrail, request: AdminRequest) => AdminAnswer | Promise<AdminAnswer>,
    ): ServiceOperation['handle'] =>
    (_control, request) =>
      trail === undefined
        ? NO_TRAIL
        : ask(trail, { ...request, operator: { ...request.operator, by: request.query['claimed'] } })
  const common = { method: 'GET', needs: 'audit', namesPeople: true } as const
  return [
    {
      ...common,
      path: '/audit',
      operationId: 'findRecords',
      summary: 'The records that answer, page by page',
      query: { ...FILTERS, ...PAGE, ...ASKER },
      answers: { 200: ['One page', rowsSchema] },
      handle: asking(findPage),
    },
    {
      ...common,
      path: '/audit/open',
      operationId: 'listOpenIntents',
      summary: `The first ${MOST_ROWS} intents without an outcome: what was cut off, and what is under way`,
      query: ASKER,
      answers: { 200: ['One page', rowsSchema] },
      handle: asking(openIntents),
    },
    {
      ...common,
      path: '/audit/stream',
      operationId: 'streamRecords',
      summary:
        'All records that answer, while they are found: one JSON object in a line, the last one is `end`',
      query: {
        ...FILTERS,
        ...ASKER,
        purpose: { enum: ['find', 'export'], description: 'What it is recorded as. Default: `export`.' },
        singly: {
          enum: ['true', 'false'],
          description: 'Each record by itself, not the records of a call as one.',
        },
      },
      answers: { 200: ['Lines with `row`, `progress`, `end` or `failed`', { type: 'object' }] },
      handle: asking(stream),
    },
    verifyRoute(trail),
    {
      ...common,
      path: '/audit/:requestId',
      operationId: 'showRequest',
      summary: 'Every record of one request, in order',
      params: { requestId: text('A request id.') },
      query: ASKER,
      answers: { 200: ['All', rowsSchema], 404: ['No record has it', { type: 'object' }] },
      handle: asking(oneRequest),
    },
  ]
}
