/** The audit trail: questions to it, which leave a record themselves (C12.5), its proof, and what is erased in it (C12.2.3). */
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import {
  type AuditedChange,
  byOperator,
  type Operator,
  plainFacts,
  recordGiving,
} from '../../base/contracts/records/audited-change.ts'
import {
  type AuditQuery,
  type AuditRow,
  type Position,
  type ReadProgress,
  type Redacted,
  type ScanEnd,
  type ScanStep,
  TrailReadError,
} from '../../base/contracts/records/audit-query.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { OperationContext, QueriedTrail, ServiceContext } from '../../operate/operation/context.ts'
import { AdminError } from '../../operate/operation/errors.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  commandLine,
  count,
  members,
  type Members,
  notFound,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  reject,
  type Schema,
  type SharedOperation,
  textSchema,
  WHO,
  listSchema,
} from '../../operate/operation/operation.ts'
import { LIMIT, MOST_ROWS, ROWS } from '../../operate/operation/paging.ts'
import { LINES } from '../../operate/operation/remote.ts'
import { countOf } from '../../operate/operation/terminal.ts'
import { UsageError } from '../../operate/operation/verb.ts'
import { type QueryTexts, readAuditQuery } from './read/query.ts'
import { planAudit } from './format/schema.ts'
import { QUESTION_LINES } from './question-lines.ts'

/** In place of `WHO`: `by` is a filter here. */
const ASKER: Members = {
  claimed: textSchema('Who asks, as they call themselves.'),
  reason: textSchema('Why, in at most 500 bytes; it goes to the audit trail.'),
}

const FILTERS: Members = {
  business: textSchema('The code of a business.'),
  fund: textSchema('The code of a fund.'),
  user: textSchema('A `sub`: who acted, or whom it is about.'),
  client: textSchema('A client id: through which it came, or that it is about.'),
  by: textSchema('Who acted, as it was proven: a `sub`, a client id or the name of an operator.'),
  action: textSchema('`action` or `area/action`.'),
  event: textSchema('Names of events, or groups such as `user.*`, divided by commas.'),
  outcome: textSchema('`success`, `refused`, `failed`, or `open`: an intent without an outcome.'),
  request: textSchema('A request id.'),
  changed: { enum: ['true', 'false'], description: 'Only what has changed something, or may have.' },
  month: textSchema('`2026-03`, in UTC.'),
  from: textSchema('From this month, day or time on, such as `2026-03-31` or `2026-03-31T18:00Z`.'),
  until: textSchema('Until the end of this month or day, or before this time.'),
}

const row: Schema = {
  type: 'object',
  description: 'A record with its personal values in their places; a call’s intent with its outcome.',
}
const rowsSchema = members(
  {
    rows: listSchema(row, 'By time, then writer, then seq.'),
    next: textSchema('The cursor of the next page. Absent after the last row.'),
    unreadable: { type: 'integer', description: 'Lines that are no records: verify the trail.' },
    uncovered: {
      type: 'object',
      description:
        'What the trail does not have of the time that was asked for: `all` of it or a part, when its first record `begins`, and `removedFrom`: since when it was kept, if the time before was removed by retention.',
    },
  },
  ['rows', 'unreadable'],
)

const NO_TRAIL = conflict('no audit trail is kept', ['see `audit.enabled`'])

/** Records who asked what. */
async function record(
  trail: QueriedTrail,
  event: AuditEvent,
  operator: Operator,
  asked: object,
): Promise<void> {
  const change = { asked: plainFacts(asked) }
  await trail.note({ event, outcome: 'success', ...byOperator(operator), change })
}

function withoutWho(query: AdminRequest['query']): QueryTexts & Readonly<Record<string, string | undefined>> {
  const names = [...Object.keys(FILTERS), 'limit', 'cursor']
  return Object.fromEntries(names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])))
}

/** The part of a position that the next page has to know. */
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

type Request = Parameters<QueriedTrail['query']>[0]

/** A page of an answer. */
interface Page extends ScanEnd {
  readonly found: readonly AuditRow[]
}

async function readPage(trail: QueriedTrail, request: Request): Promise<Page> {
  const found: AuditRow[] = []
  for await (const step of steps(trail, request)) {
    if (step.kind === 'end') return { ...step, found }
    found.push(...step.lines.map((line) => JSON.parse(line) as AuditRow))
  }
  throw new TrailReadError('the answer has no end')
}

/** The steps of an answer. Rejects with AdminError 503 if the trail cannot be read. */
async function* steps(trail: QueriedTrail, request: Request): AsyncGenerator<ScanStep> {
  try {
    yield* trail.query(request)
  } catch (thrown) {
    asAdminError(thrown)
  }
}

const answerOf = ({ found, last, unreadableCount: unreadable, uncovered }: Page): AdminAnswer =>
  ok({ rows: found, ...(last && { next: cursorOf(last) }), unreadable, ...(uncovered && { uncovered }) })

async function findPage(trail: QueriedTrail, { query: texts, operator }: AdminRequest): Promise<AdminAnswer> {
  const { query, problems } = readAuditQuery(texts)
  if (problems !== undefined) return reject(problems)
  const { limit, cursor } = texts
  const after = cursor === undefined ? undefined : readCursor(cursor)
  if (cursor !== undefined && after === undefined) return reject(['cursor  is none that an answer gave'])
  await record(trail, 'audit.queried', operator, withoutWho(texts))
  return answerOf(await readPage(trail, { query, after, limit: Number(limit ?? ROWS) }))
}

async function openIntents(trail: QueriedTrail, { operator }: AdminRequest): Promise<AdminAnswer> {
  await record(trail, 'audit.queried', operator, { outcome: 'open' })
  return answerOf(await readPage(trail, { query: { outcome: 'open' }, limit: MOST_ROWS }))
}

async function oneRequest(trail: QueriedTrail, { params, operator }: AdminRequest): Promise<AdminAnswer> {
  const request = params['requestId'] ?? ''
  await record(trail, 'audit.queried', operator, { request })
  const query: AuditQuery = { request, singly: true }
  const page = await readPage(trail, { query, limit: MOST_ROWS })
  return page.found.length > 0
    ? answerOf(page)
    : notFound('no record has this request id', [`requestId  ${request}`])
}

async function verify(
  trail: NonNullable<ServiceContext['trail']>,
  { operator }: AdminRequest,
): Promise<AdminAnswer> {
  const verdict = await trail.verify().catch(asAdminError)
  const { whole, found, records } = verdict
  const outcome = whole ? 'success' : 'failed'
  await trail.note({
    event: 'audit.verified',
    outcome,
    ...byOperator(operator),
    change: { whole, found, records },
  })
  return ok(verdict)
}

function asAdminError(thrown: unknown): never {
  if (!(thrown instanceof TrailReadError)) throw thrown
  throw new AdminError(503, 'the trail cannot be read', [thrown.message])
}

const line = (value: object): string => `${JSON.stringify(value)}\n`

/**
 * Rows as they come, one in a line: `{"row"}`, `{"progress"}`, last `{"end"}` or `{"failed"}`. Progress comes also while no
 * row is found.
 */
async function* streamed(trail: QueriedTrail, request: Request): AsyncGenerator<string> {
  let progress: ReadProgress | undefined
  let moved = Promise.withResolvers<undefined>()
  const found = trail.query(request, (read) => {
    progress = read
    moved.resolve(undefined)
  })
  const steps = found[Symbol.asyncIterator]()
  try {
    for (let next = steps.next(); ;) {
      const step = await Promise.race([next, moved.promise])
      if (progress !== undefined) yield line({ progress })
      progress = undefined
      moved = Promise.withResolvers()
      if (step === undefined) continue
      if (step.done === true) return
      if (step.value.kind === 'end') {
        yield line({ end: step.value })
        return
      }
      yield step.value.lines.map((each) => `{"row":${each}}\n`).join('')
      next = steps.next()
    }
  } catch (thrown) {
    if (!(thrown instanceof TrailReadError)) throw thrown
    yield line({ failed: thrown.message })
  } finally {
    await steps.return?.()
  }
}

async function stream(trail: QueriedTrail, { query: texts, operator }: AdminRequest): Promise<AdminAnswer> {
  const { query, problems } = readAuditQuery(texts)
  if (problems !== undefined) return reject(problems)
  const { purpose, singly } = texts
  await record(trail, purpose === 'find' ? 'audit.queried' : 'audit.exported', operator, withoutWho(texts))
  const request = { query: { ...query, singly: singly === 'true' } }
  return { status: 200, type: LINES, body: Readable.from(streamed(trail, request)) }
}

/** Erases the personal values of a subject. The log does not name the subject. */
async function redact(context: OperationContext, { body, operator }: AdminRequest): Promise<AdminAnswer> {
  const { audit, recorder, trailOwner } = context
  const { subject } = body as { readonly subject: string }
  if (trailOwner === undefined) return NO_TRAIL
  const redacted = await trailOwner.redact(subject, (change, erase) => {
    const act: AuditedChange = { event: 'audit.redacted', on: { subject }, change: plainFacts(change) }
    return recordGiving(audit, operator, act, erase)
  })
  recorder.note('info', 'audit_redacted', { ...redacted, ...operator })
  return ok(redacted)
}

const asking =
  (
    question: (trail: QueriedTrail, request: AdminRequest) => Promise<AdminAnswer>,
  ): SharedOperation['handle'] =>
  ({ trail }, request) =>
    trail === undefined ? NO_TRAIL : question(trail, request)

/** Why there is no trail to ask, for a configuration. */
const unfit = (configuration: Configuration): string | undefined =>
  planAudit(configuration) === undefined ? 'no audit trail is kept — see `audit.enabled`' : undefined

const QUESTION = { method: 'GET', needs: 'audit', namesPeople: true } as const

const REDACT: AdminOperation = {
  method: 'POST',
  path: '/audit/redact',
  operationId: 'redactSubject',
  needs: 'administer',
  summary: 'Erase the personal values of all records whose actor or object is a user',
  body: members({ subject: textSchema('The `sub` whose values are erased.'), ...WHO }, ['subject', 'reason']),
  answers: {
    200: [
      'Erased',
      members({ values: count('Values that were erased.'), files: count('Files that held them.') }),
    ],
    409: ['No trail is kept', problemsSchema],
  },
  runs: 'service or here',
  unfit,
  handle: redact,
  commands: [
    commandLine({
      words: ['audit redact'],
      summary: 'Erase the personal values of all records whose actor or object is this `sub`',
      notes: [
        'A running service does it, with your token; else the command itself. The trail still verifies.',
      ],
      arguments: [],
      options: {
        subject: {
          type: 'string',
          value: 'SUBJECT',
          help: 'Whose values are erased. Required, and so is --reason',
        },
      },
      examples: [
        {
          line: "postern audit redact --subject 45733adb-9b07-4d40-ae57-20cf9b802f51 --reason 'request 4711'",
          does: 'erase the values of one person',
        },
      ],
      input: ({ values }) => {
        const { subject, reason } = values
        if (!subject || !reason) throw new UsageError('expected --subject and --reason')
        return { body: { subject } }
      },
      text: ({ values, files }: Redacted, typed) =>
        `${countOf(values, 'personal value')} of ${typed.values.subject ?? ''} erased, in ${countOf(files, 'file')}\n`,
      json: (redacted: Redacted, { values: { subject } }) => ({ subject, ...redacted }),
    }),
  ],
}

export const OPERATIONS: readonly AdminOperation[] = [
  {
    ...QUESTION,
    path: '/audit',
    operationId: 'findRecords',
    summary: 'The records that answer, page by page',
    query: { ...FILTERS, limit: LIMIT, cursor: textSchema('`next` of the page before.'), ...ASKER },
    answers: { 200: ['One page', rowsSchema] },
    handle: asking(findPage),
  },
  {
    ...QUESTION,
    path: '/audit/open',
    operationId: 'listOpenIntents',
    summary: `The first ${MOST_ROWS} intents without an outcome: what was cut off, and what is under way`,
    query: ASKER,
    answers: { 200: ['One page', rowsSchema] },
    handle: asking(openIntents),
  },
  {
    ...QUESTION,
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
    runs: 'service or here',
    leavesRecord: true,
    unfit,
    handle: asking(stream),
    commands: QUESTION_LINES,
  },
  {
    method: 'POST',
    needs: 'audit',
    path: '/audit/verify',
    operationId: 'verifyTrail',
    summary: 'Whether the trail is whole: chains, gaps, signatures, and the anchors that stand in files',
    body: members(WHO),
    bodyOptional: true,
    answers: { 200: ['What was found', { type: 'object' }] },
    handle: ({ trail }, request) => (trail === undefined ? NO_TRAIL : verify(trail, request)),
  },
  {
    ...QUESTION,
    path: '/audit/:requestId',
    operationId: 'showRequest',
    summary: 'Every record of one request, in order',
    params: { requestId: textSchema('A request id.') },
    query: ASKER,
    answers: { 200: ['All', rowsSchema], 404: ['No record has it', { type: 'object' }] },
    handle: asking(oneRequest),
  },
  REDACT,
]
