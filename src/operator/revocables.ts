/** The admin API's routes for sessions, token families and consents (C11.5.2). */
import type { RevocableKind, RevocableRecord, RevocableWhere } from '../contracts/revocable.ts'
import { instantText } from '../kernel/units.ts'
import { type Chosen, type EndOutcome, MOST_ENDED } from './revocable-orders.ts'
import { AFTER, LIMIT, pageBody, pageOf, pageSchema } from './paging.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  type Operation,
  count,
  members,
  type Members,
  notFound,
  ok,
  problemsSchema,
  refuse,
  reject,
  type Schema,
  text,
  WHO,
} from './operation.ts'

/** Rows that the answer to an end shows at most; their number is always told. */
const MOST_SHOWN = 100

const BY_SUBJECT: Members = { subject: text('The `sub` of a user.') }
const BY_ALL: Members = {
  ...BY_SUBJECT,
  client: text('A client id.'),
  business: text('The code of a business.'),
}

interface Noun {
  readonly kind: RevocableKind
  /** The end of the operation ids. */
  readonly name: string
  readonly what: string
  readonly ends: string
  readonly filters: Members
  /** What to do where too many match. */
  readonly instead: string
}

const NOUNS: readonly Noun[] = [
  {
    kind: 'sessions',
    name: 'Sessions',
    what: 'Logins in browsers',
    ends: 'Log browsers out. Families of refresh tokens stay',
    filters: BY_SUBJECT,
    instead: 'name a `subject`, or use POST /revoke',
  },
  {
    kind: 'families',
    name: 'Families',
    what: 'Families of refresh tokens',
    ends: 'End families of refresh tokens, each with its code and its access tokens',
    filters: BY_ALL,
    instead: 'name more filters, or use POST /revoke, which makes one rule for all',
  },
  {
    kind: 'consents',
    name: 'Consents',
    what: 'What users have allowed clients',
    ends: 'Withdraw consents, each with the codes and the token families that it gave',
    filters: BY_ALL,
    instead: 'name more filters, or use POST /revoke with `consents`',
  },
]

const row: Schema = members(
  {
    id: text('By which it is ended. It opens nothing.'),
    subject: text('The `sub` of the user.'),
    client: text('The client id.'),
    business: text('The code of the business.'),
    fund: text('The code of the fund.'),
    scopes: { type: 'array', items: { type: 'string' }, description: 'Scope values, without the target.' },
    browser: text('Of a session: such as `Firefox on Windows`.'),
    begun: text('When the user logged in; of a consent: when it was given last.'),
    lastUsed: text('When a page of the session, or a refresh token of the family, was used last.'),
    expires: text('When it ends by itself.'),
  },
  ['id', 'subject', 'begun'],
)

const endedSchema = members(
  {
    outcome: { enum: ['ended', 'previewed'] },
    count: count('How many were ended, or would be.'),
    families: count('Families of refresh tokens that ended with them.'),
    rows: { type: 'array', items: row, description: `The first ${MOST_SHOWN} of them.` },
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

/** Undefined unless the request names an id, or filters: not both, and not nothing. */
function chosenOf({ query }: AdminRequest): Chosen | undefined {
  const where = whereOf(query)
  const { id } = query
  if ((id === undefined) === (Object.keys(where).length === 0)) return undefined
  return id === undefined ? { where } : { id }
}

function answerOf(end: EndOutcome, { instead }: Noun): AdminAnswer {
  if (end.outcome === 'unknown')
    return notFound('there is none of this id', ['id  is not known, or has ended'])
  if (end.outcome === 'too many')
    return refuse('nothing has changed', [`more than ${MOST_ENDED} match: ${instead}`])
  const { outcome, records, families } = end
  return ok({ outcome, count: records.length, families, rows: records.slice(0, MOST_SHOWN).map(rowOf) })
}

const listRoute = ({ kind, name, what, filters }: Noun): Operation => ({
  method: 'GET',
  path: `/${kind}`,
  operationId: `list${name}`,
  needs: 'administer',
  summary: `${what}, page by page: of all, or of those that have every given value`,
  query: {
    ...filters,
    limit: LIMIT,
    after: AFTER,
  },
  answers: { 200: ['One page, which may be shorter than `limit`', pageSchema(kind, row)] },
  handle: async ({ revocables }, { query }) => {
    const { found, next } = await revocables.list(kind, whereOf(query), pageOf(query))
    return ok(pageBody(kind, { rows: found.map(rowOf), next }))
  },
})

const endRoute = (noun: Noun): Operation => ({
  method: 'DELETE',
  path: `/${noun.kind}`,
  operationId: `end${noun.name}`,
  needs: 'administer',
  summary: `${noun.ends}: one by its id, or those that have every given value`,
  query: {
    ...noun.filters,
    id: text('Of one.'),
    preview: { enum: ['true', 'false'], description: 'Tell what would be ended; change nothing.' },
    ...WHO,
  },
  answers: {
    200: ['Ended in this process; everywhere within a second', endedSchema],
    404: ['There is none of this id', problemsSchema],
    409: [`More than ${MOST_ENDED} match: nothing has changed`, problemsSchema],
  },
  handle: async ({ revocables }, request) => {
    const chosen = chosenOf(request)
    if (chosen === undefined)
      return reject([`expected \`id\`, or one of: ${Object.keys(noun.filters).join(', ')}`])
    const preview = request.query['preview'] === 'true'
    return answerOf(await revocables.end(noun.kind, chosen, preview, request.operator), noun)
  },
})

export const REVOCABLE_ROUTES: readonly Operation[] = NOUNS.flatMap((noun) => [
  listRoute(noun),
  endRoute(noun),
])
