/** Handles each request of an operation, for the listener and for a command that runs here alike. */
import { Buffer } from 'node:buffer'
import type { Operator } from '../../base/contracts/records/audited-change.ts'
import { type AuditTrail, MOST_REASON } from '../../base/contracts/records/audit.ts'
import type { JsonValue } from '../../base/http/body/json.ts'
import { compileProblems } from '../../base/http/body/validate-body.ts'
import { readIfMatch } from './conditions.ts'
import { AdminError } from './errors.ts'
import {
  type AdminAnswer,
  type AdminRequest,
  members,
  type AdminOperation,
  type Schema,
  whoMember,
} from './operation.ts'
import { type AuthenticatedOperator, expiredOperator, hasRight, refusedOperator } from './operators.ts'

/** A request as it came. `body` is null where none was sent. */
interface Received {
  readonly params: JsonValue
  readonly query: JsonValue
  readonly body: JsonValue
  /** The header `If-Match`. */
  readonly ifMatch: string | undefined
  readonly operator: AuthenticatedOperator
  /** Where it came from, and by which way. */
  readonly from: Pick<Operator, 'via' | 'channel'>
}

/**
 * Throws AdminError 401 or 403, unless the operator's token is in force and its role has the right. Both are recorded;
 * guesses of tokens are not, so that nobody without one fills the trail.
 */
export function requireRight(
  operator: AuthenticatedOperator,
  expired: boolean,
  { needs, operationId: id, method }: AdminOperation,
  {
    audit,
    from: { via, channel },
  }: { readonly audit: Pick<AuditTrail, 'note'>; readonly from: Received['from'] },
): AuthenticatedOperator {
  if (!expired && hasRight(operator.role, needs)) return operator
  audit.note({
    event: 'operator.refused',
    outcome: 'refused',
    actor: { kind: 'operator', operator: operator.name, via: channel },
    on: { kind: 'operation', id, method },
    change: { role: operator.role, needs, expired },
    personal: { 'actor.address': via },
  })
  throw expired ? expiredOperator(operator) : refusedOperator(operator, needs)
}

/** Throws AdminError 400 with every problem of the value. */
type Check = (value: JsonValue) => void

function checkOf(part: string, schema: Schema): Check {
  const problemsOf = compileProblems(schema)
  return (value) => {
    const problems = problemsOf(value).map(
      ({ field, why }) => `${[part, field].filter(Boolean).join('.')}  ${why}`,
    )
    if (problems.length > 0) throw new AdminError(400, 'the request does not fit', problems)
  }
}

function bodyCheckOf({ body, bodyOptional, checksBody }: AdminOperation): Check | undefined {
  if (body === undefined) return undefined
  const check = checkOf('body', checksBody === true ? { type: 'object' } : body)
  return (value) => {
    if (bodyOptional !== true || value !== null) check(value)
  }
}

/** Carries out an operation for requests. Rejects as its handler does, and with AdminError 400 if a request does not fit. */
type Performer<C> = (context: C, received: Received) => Promise<AdminAnswer>

export function performerOf<C>(
  operation: AdminOperation,
  handle: (context: C, request: AdminRequest) => AdminAnswer | Promise<AdminAnswer>,
): Performer<C> {
  const checkParams = operation.params && checkOf('params', members(operation.params))
  const checkBody = bodyCheckOf(operation)
  const checkQuery = checkOf('querystring', members(operation.query ?? {}))
  return async (context, received) => {
    checkParams?.(received.params)
    checkBody?.(received.body)
    checkQuery(received.query)
    const answer = await handle(context, requestOf(operation, received))
    return tellsPeople(operation, received.operator)
      ? answer
      : { ...answer, body: withoutPeople(answer.body) }
  }
}

/** Whether an answer may name people: by the role of the operator who asks, or because the operation is for that. */
const tellsPeople = ({ namesPeople }: AdminOperation, { role }: AuthenticatedOperator): boolean =>
  namesPeople === true || hasRight(role, 'administer')

function requestOf(operation: AdminOperation, received: Received): AdminRequest {
  const body = (received.body ?? {}) as AdminRequest['body']
  const query = received.query as AdminRequest['query']
  const params = received.params as AdminRequest['params']
  const { [whoMember(operation) ?? 'by']: by, reason } = { ...query, ...body }
  const said = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const { operator, from } = received
  return {
    body,
    query,
    params,
    ifMatch: ifMatchOf(operation, received.ifMatch),
    operator: { operator: operator.name, by: said(by), reason: shortReason(said(reason)), ...from },
    authenticated: operator,
  }
}

/** Throws AdminError 400 where a version is named and the operation cannot check it: ignored, another would be changed. */
function ifMatchOf(
  { conditional, method }: AdminOperation,
  header: string | undefined,
): AdminRequest['ifMatch'] {
  if (conditional === true) return readIfMatch(header)
  if (header === undefined || method === 'GET') return undefined
  throw new AdminError(400, 'the request does not fit', [
    'If-Match  is not known here: this is done to the latest version',
  ])
}

/** Throws AdminError 400 on a reason that a record has no room for. */
function shortReason(reason: string | undefined): string | undefined {
  if (reason === undefined || Buffer.byteLength(reason) <= MOST_REASON) return reason
  throw new AdminError(400, 'the request does not fit', [`reason  is longer than ${MOST_REASON} bytes`])
}

const PERSON = '[person]'

/** Members whose value is a person's. */
const PERSONAL: ReadonlySet<string> = new Set(['subject', 'sub', 'user', 'username', 'email'])
/** Members with sentences, which may repeat such a value. */
const PROSE: ReadonlySet<string> = new Set(['words', 'detail', 'text'])
/**
 * Lines that tell of a place in the configuration: below these keys it is a person's name, and what follows may tell of
 * another one. File and line come before it.
 */
const OF_USERS = /\bdirectory\.(users|files\.users)\b.*/s

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null

/** Whether a member tells of a person: by its name, or as the row of a user among those who gain or lose access. */
const isPersonal = (key: string, member: unknown, { kind }: Members): member is string =>
  typeof member === 'string' && (PERSONAL.has(key) || (key === 'who' && kind === 'user'))

/** The texts that stand for a person in an answer. */
const personsIn = (value: unknown): readonly string[] =>
  !isMembers(value)
    ? []
    : Object.entries(value).flatMap(([key, member]) =>
        isPersonal(key, member, value) ? [member] : personsIn(member),
      )

/** As a whole word: a short one must not be found within others. */
const withoutWord = (text: string, word: string): string =>
  text.replace(new RegExp(`(?<![\\w-])${RegExp.escape(word)}(?![\\w-])`, 'g'), PERSON)

/**
 * An answer without names, subjects and claims of people, for operators who may not read of them (C12.2.4). Everything else
 * in it stays.
 */
function withoutPeople(answer: unknown): unknown {
  const persons = personsIn(answer)
  const copyText = (text: string, key: string): string => {
    const line = text.replace(OF_USERS, `directory.$1  ${PERSON}`)
    return PROSE.has(key) ? persons.reduce(withoutWord, line) : line
  }
  /** `key`: of the member that holds the value. */
  const copy = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return copyText(value, key)
    if (Array.isArray(value)) return value.map((each) => copy(each, key))
    if (!isMembers(value)) return value
    const entries = Object.entries(value).map(([name, member]) => {
      const isUsers = key === 'directory' && name === 'users'
      return [name, isUsers || isPersonal(name, member, value) ? PERSON : copy(member, name)]
    })
    return Object.fromEntries(entries) as unknown
  }
  return copy(answer, '')
}
