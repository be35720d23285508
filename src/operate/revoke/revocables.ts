/** Sessions, token families and consents: listed and ended (C11.5.2). */
import {
  type AuditedChange,
  causeOf,
  type Operator,
  plainFacts,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import type { RevocableKind, RevocableRecord, RevocableWhere } from '../../base/contracts/records/tokens.ts'
import type { StoredRevocableRecords } from '../../identity/stored/revocable-records.ts'
import { instantText } from '../../base/kernel/units.ts'
import type { ServiceContext } from '../operation/context.ts'
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
  type CommandSession,
  textSchema,
  WHO,
  listSchema,
  textsSchema,
} from '../operation/operation.ts'
import { AFTER, LIMIT, pageBody, pageOf, pageSchema } from '../operation/paging.ts'
import { confirm, countOf, countOfFamilies, rowLines } from '../operation/terminal.ts'
import { EXIT, type Options, UsageError, type Values } from '../operation/verb.ts'

/** Records that one request ends at most: each gets a revocation rule and an audit record of its own. */
const MOST_ENDED = 1000

/** Rows that the answer to an end shows at most; their number is always shown. */
const MOST_SHOWN = 100

const BY_SUBJECT: Members = { subject: textSchema('The `sub` of a user.') }
const BY_ALL: Members = {
  ...BY_SUBJECT,
  client: textSchema('A client id.'),
  business: textSchema('The code of a business.'),
}

const SUBJECT_OPTION = {
  subject: { type: 'string', value: 'SUBJECT', help: 'Only of this user, by the `sub` of the tokens' },
} as const satisfies Options

const FILTER_OPTIONS = {
  ...SUBJECT_OPTION,
  client: { type: 'string', value: 'ID', help: 'Only of this client' },
  business: { type: 'string', value: 'CODE', help: 'Only for this business' },
} as const satisfies Options

const PAGE_OPTIONS = {
  limit: { type: 'string', kind: 'rows', help: 'Rows of a page, up to 1000. Default: 100' },
  after: { type: 'string', value: 'ID', help: 'The page behind this id' },
} as const satisfies Options

const END_OPTIONS = {
  preview: { type: 'boolean', help: 'Show what would end, and change nothing' },
  yes: { type: 'boolean', help: 'With a filter: do not ask' },
} as const satisfies Options

type Filters = Values<typeof FILTER_OPTIONS>

/** Headings, and the values below them. */
type Columns = Readonly<Record<string, (row: Row) => string>>

interface Noun {
  readonly kind: RevocableKind
  readonly one: string
  /** The end of the operation ids. */
  readonly name: string
  readonly what: string
  readonly ends: string
  readonly filters: Members
  /** What to do where too many match. */
  readonly instead: string
  /** The widest: sessions have one of them. */
  readonly filterOptions: typeof FILTER_OPTIONS
  /** What help says of the verbs, and an option of their examples. */
  readonly help: { readonly list: string; readonly end: string; readonly filter: string }
  readonly columns: Columns
}

/** A row as it is answered. */
type Row = Readonly<Partial<ReturnType<typeof rowOf>>>

const minute = (time: string | undefined): string => time?.slice(0, 16).concat('Z') ?? ''

const ID = ({ id = '' }: Row): string => id
const SUBJECT = ({ subject = '' }: Row): string => subject
const CLIENT = ({ client = '' }: Row): string => client
const PLACE = ({ business = '', fund }: Row): string =>
  fund === undefined ? business : `${business}/${fund}`
const SCOPES = ({ scopes = [] }: Row): string => scopes.join(' ')

const SESSIONS: Noun = {
  kind: 'sessions',
  one: 'session',
  name: 'Sessions',
  what: 'Logins in browsers',
  ends: 'Log browsers out. Families of refresh tokens stay',
  filters: BY_SUBJECT,
  instead: 'name a `subject`, or use POST /revoke',
  filterOptions: SUBJECT_OPTION as typeof FILTER_OPTIONS,
  help: {
    list: 'List logins in browsers',
    end: 'Log browsers out. Refresh tokens stay: see `postern families` and `postern revoke`',
    filter: '--subject 45733adb-9b07-4d40-ae57-20cf9b802f51',
  },
  columns: {
    ID,
    SUBJECT,
    BROWSER: ({ browser = '' }) => browser,
    BEGUN: ({ begun }) => minute(begun),
    'LAST USED': ({ lastUsed }) => minute(lastUsed),
    EXPIRES: ({ expires }) => minute(expires),
  },
}

const FAMILIES: Noun = {
  kind: 'families',
  one: 'family',
  name: 'Families',
  what: 'Families of refresh tokens',
  ends: 'End families of refresh tokens, each with its code and its access tokens',
  filters: BY_ALL,
  instead: 'name more filters, or use POST /revoke, which makes one rule for all',
  filterOptions: FILTER_OPTIONS,
  help: {
    list: 'List families of refresh tokens',
    end: 'End families of refresh tokens, with their codes and access tokens',
    filter: '--client acme-books --business ACME',
  },
  columns: {
    ID,
    CLIENT,
    SUBJECT,
    PLACE,
    SCOPES,
    BEGUN: ({ begun }) => minute(begun),
    'LAST USED': ({ lastUsed }) => minute(lastUsed),
    EXPIRES: ({ expires }) => minute(expires),
  },
}

const CONSENTS: Noun = {
  kind: 'consents',
  one: 'consent',
  name: 'Consents',
  what: 'What users have allowed clients',
  ends: 'Withdraw consents, each with the codes and the token families that it gave',
  filters: BY_ALL,
  instead: 'name more filters, or use POST /revoke with `consents`',
  filterOptions: FILTER_OPTIONS,
  help: {
    list: 'List what users have allowed clients',
    end: 'Withdraw consents, with the codes and the token families that they gave',
    filter: '--client ledgerline',
  },
  columns: { ID, CLIENT, SUBJECT, PLACE, SCOPES, GIVEN: ({ begun }) => minute(begun) },
}

const row: Schema = members(
  {
    id: textSchema('By which it is ended. It opens nothing.'),
    subject: textSchema('The `sub` of the user.'),
    client: textSchema('The client id.'),
    business: textSchema('The code of the business.'),
    fund: textSchema('The code of the fund.'),
    scopes: textsSchema('Scope values, without the target.'),
    browser: textSchema('Of a session: such as `Firefox on Windows`.'),
    begun: textSchema('When the user logged in; of a consent: when it was given last.'),
    lastUsed: textSchema('When a page of the session, or a refresh token of the family, was used last.'),
    expires: textSchema('When it ends by itself.'),
  },
  ['id', 'subject', 'begun'],
)

const endedSchema = members(
  {
    outcome: { enum: ['ended', 'previewed'] },
    count: count('How many were ended, or would be.'),
    families: count('Families of refresh tokens that ended with them.'),
    rows: listSchema(row, `The first ${MOST_SHOWN} of them.`),
  },
  ['outcome', 'count', 'families', 'rows'],
)

const rowOf = ({ begunAt, lastUsedAt, endsAt, ...record }: RevocableRecord) => ({
  ...record,
  begun: instantText(begunAt),
  lastUsed: instantText(lastUsedAt),
  expires: instantText(endsAt),
})

const whereOf = ({ subject, client, business }: AdminRequest['query']): RevocableWhere => ({
  ...(subject !== undefined && { subject }),
  ...(client !== undefined && { client }),
  ...(business !== undefined && { business }),
})

/** One by its id, or all that have these values. */
type Chosen = { readonly id: string } | { readonly where: RevocableWhere }

/** Undefined unless the request names either an id or filters. */
function chosenOf({ query }: AdminRequest): Chosen | undefined {
  const where = whereOf(query)
  const { id } = query
  if ((id === undefined) === (Object.keys(where).length === 0)) return undefined
  return id === undefined ? { where } : { id }
}

type EndOutcome =
  | {
      readonly outcome: 'ended' | 'previewed'
      readonly records: readonly RevocableRecord[]
      /** Families that ended with them. */
      readonly families: number
    }
  | { readonly outcome: 'unknown' }
  /** More than MOST_ENDED match: nothing has changed. */
  | { readonly outcome: 'too many' }

/** What the record of an end is about. The events are those of the user's own page, and of `revoke`. */
const CHANGES: Readonly<Record<RevocableKind, (record: RevocableRecord) => AuditedChange>> = {
  sessions: ({ id, subject }) => ({ event: 'session.revoked', on: { kind: 'session', id, subject } }),
  families: ({ id: family, subject, client, business }) => ({
    event: 'revocation.ordered',
    on: { kind: 'tokens', family, subject, client, business },
  }),
  consents: ({ subject, client, business, scopes }) => ({
    event: 'consent.withdrawn',
    on: { kind: 'consent', subject, client, business },
    change: plainFacts({ scopes }),
  }),
}

async function recordsOf(service: ServiceContext): Promise<StoredRevocableRecords> {
  // Only here: commands do not need the code that reads the store.
  const { StoredRevocableRecords } = await import('../../identity/stored/revocable-records.ts')
  return new StoredRevocableRecords(service)
}

/** Rejects with Fault `identity_unavailable` if the store cannot be reached; a part may be done then. */
async function endChosen(
  service: ServiceContext,
  kind: RevocableKind,
  chosen: Chosen,
  preview: boolean,
  operator: Operator,
): Promise<EndOutcome> {
  const { audit, recorder } = service
  const stored = await recordsOf(service)
  const records = await choose(stored, kind, chosen)
  if (records === undefined) return { outcome: 'unknown' }
  if (records.length > MOST_ENDED) return { outcome: 'too many' }
  if (preview) return { outcome: 'previewed', records, families: 0 }
  let families = 0
  for (const record of records) {
    const endOne = async (): Promise<number> => (await stored.end(kind, record, causeOf(operator))) ?? 0
    families += await recordTaking(audit, operator, CHANGES[kind](record), endOne, (ended) =>
      kind === 'sessions' ? {} : { families: ended },
    )
  }
  recorder.note('info', `${kind}_ended`, { count: records.length, families, ...operator })
  return { outcome: 'ended', records, families }
}

/** Undefined if there is none of this id. One more than MOST_ENDED at most. */
async function choose(
  stored: StoredRevocableRecords,
  kind: RevocableKind,
  chosen: Chosen,
): Promise<readonly RevocableRecord[] | undefined> {
  if ('id' in chosen) {
    const record = await stored.find(kind, chosen.id)
    return record && [record]
  }
  const found: RevocableRecord[] = []
  let after: string | undefined
  do {
    const page = await stored.list(kind, chosen.where, { after, limit: MOST_ENDED + 1 - found.length })
    found.push(...page.found)
    after = page.next
  } while (after !== undefined && found.length <= MOST_ENDED)
  return found
}

function answerOf(end: EndOutcome, { instead }: Noun): AdminAnswer {
  if (end.outcome === 'unknown')
    return notFound('there is none of this id', ['id  is not known, or has ended'])
  if (end.outcome === 'too many')
    return conflict('nothing has changed', [`more than ${MOST_ENDED} match: ${instead}`])
  const { outcome, records, families } = end
  return ok({ outcome, count: records.length, families, rows: records.slice(0, MOST_SHOWN).map(rowOf) })
}

const tableText = ({ columns }: Noun, rows: readonly Row[]): string =>
  rowLines(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
  ).join('')

/** The rows under the name of their kind. */
type Listed = Readonly<Partial<Record<RevocableKind, readonly Row[]>>> & { readonly next?: string }

function listText(noun: Noun, { next, ...answer }: Listed): string {
  const rows = answer[noun.kind] ?? []
  const more = next === undefined ? '' : `more: --after ${next}\n`
  return rows.length === 0 ? `no ${noun.kind}\n${more}` : tableText(noun, rows) + more
}

const filtersOf = ({ filters }: Noun, values: Filters): Filters =>
  Object.fromEntries(
    Object.entries(values).filter(([name, value]) => Object.hasOwn(filters, name) && value !== undefined),
  )

const listOperation = (noun: Noun): AdminOperation => ({
  method: 'GET',
  path: `/${noun.kind}`,
  operationId: `list${noun.name}`,
  needs: 'administer',
  summary: `${noun.what}, page by page: of all, or of those that have every given value`,
  query: {
    ...noun.filters,
    limit: LIMIT,
    after: AFTER,
  },
  answers: { 200: ['One page, which may be shorter than `limit`', pageSchema(noun.kind, row)] },
  handle: async (service, { query }) => {
    const stored = await recordsOf(service)
    const { found, next } = await stored.list(noun.kind, whereOf(query), pageOf(query))
    return ok(pageBody(noun.kind, { rows: found.map(rowOf), next }))
  },
  commands: [
    commandLine({
      words: [`${noun.kind} list`],
      summary: noun.help.list,
      arguments: [],
      options: { ...noun.filterOptions, ...PAGE_OPTIONS },
      examples: [
        { line: `postern ${noun.kind} list ${noun.help.filter}`, does: 'show the first 100 of them' },
      ],
      input: ({ values }) => ({
        query: { ...filtersOf(noun, values), after: values.after, limit: values.limit },
      }),
      text: (answer: Listed) => listText(noun, answer),
    }),
  ],
})

interface Ending {
  readonly outcome: 'ended' | 'previewed'
  readonly count: number
  readonly families: number
  readonly rows: readonly Row[]
}

function endText({ kind, one, ...noun }: Noun, answer: Ending): string {
  if (answer.count === 0) return `no ${kind} match\n`
  const { outcome, count: number, families, rows } = answer
  const more = number > rows.length ? `and ${number - rows.length} more\n` : ''
  const withFamilies = kind === 'sessions' ? '' : ` (${countOfFamilies(families)})`
  const counted = countOf(number, one, kind)
  const end = outcome === 'ended' ? `${counted} ended${withFamilies}` : `${counted} would end`
  return `${tableText({ kind, one, ...noun }, rows)}${more}${end}\n`
}

/** Shows what would end; of several, asks before it ends them. */
async function end(
  noun: Noun,
  operation: AdminOperation,
  { values, positionals: [id], ...session }: CommandSession<typeof FILTER_OPTIONS & typeof END_OPTIONS>,
): Promise<number> {
  const filters = filtersOf(noun, values)
  if ((id === undefined) === (Object.keys(filters).length === 0))
    throw new UsageError(
      `expected an id, or ${Object.keys(noun.filters)
        .map((name) => `--${name}`)
        .join(', ')}`,
    )
  const query = id === undefined ? filters : { id }
  const textOf = (answer: Ending): string => endText(noun, answer)
  const preview = (): Promise<Ending> => session.send(operation, { query: { ...query, preview: 'true' } })
  if (values.preview === true) {
    session.show(await preview(), textOf)
    return EXIT.done
  }
  if (id === undefined && values.yes !== true) {
    // What is asked about is for people, also with --json.
    session.terminal.stdout.write(textOf(await preview()))
    if (!(await confirm(false, session.terminal))) {
      session.terminal.stdout.write('nothing was changed\n')
      return EXIT.refused
    }
  }
  session.show(await session.send<Ending>(operation, { query }), textOf)
  return EXIT.done
}

function endOperation(noun: Noun): AdminOperation {
  const operation: AdminOperation = {
    method: 'DELETE',
    path: `/${noun.kind}`,
    operationId: `end${noun.name}`,
    needs: 'administer',
    summary: `${noun.ends}: one by its id, or those that have every given value`,
    query: {
      ...noun.filters,
      id: textSchema('Of one.'),
      preview: { enum: ['true', 'false'], description: 'Tell what would be ended; change nothing.' },
      ...WHO,
    },
    answers: {
      200: ['Ended in this process; everywhere within a second', endedSchema],
      404: ['There is none of this id', problemsSchema],
      409: [`More than ${MOST_ENDED} match: nothing has changed`, problemsSchema],
    },
    handle: async (service, request) => {
      const chosen = chosenOf(request)
      if (chosen === undefined)
        return reject([`expected \`id\`, or one of: ${Object.keys(noun.filters).join(', ')}`])
      const preview = request.query['preview'] === 'true'
      return answerOf(await endChosen(service, noun.kind, chosen, preview, request.operator), noun)
    },
    commands: [
      commandLine({
        words: [`${noun.kind} end`],
        summary: noun.help.end,
        usage: 'ID | FILTER… [OPTIONS]',
        notes: ['With several filters, only what matches all of them. At most 1,000 end at once.'],
        arguments: [{ name: 'ID', optional: true }],
        options: { ...noun.filterOptions, ...END_OPTIONS },
        examples: [
          { line: `postern ${noun.kind} end ${noun.help.filter} --preview`, does: 'show what would end' },
          {
            line: `postern ${noun.kind} end 3vHqk0Pz4yJmTnqf0b2Gfw`,
            does: 'end one, by the id that `list` shows',
          },
        ],
        run: (session) => end(noun, operation, session),
      }),
    ],
  }
  return operation
}

const operationsOf = (noun: Noun): readonly AdminOperation[] => [listOperation(noun), endOperation(noun)]

export const REVOCABLE_OPERATIONS: Readonly<Record<RevocableKind, readonly AdminOperation[]>> = {
  sessions: operationsOf(SESSIONS),
  families: operationsOf(FAMILIES),
  consents: operationsOf(CONSENTS),
}
