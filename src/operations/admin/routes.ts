/** What a route of the admin API consists of: orders, requests, answers, schemas and errors. */
import type { GuessingKey, Lockouts } from '../../contracts/lockouts.ts'
import type { Ended, RevokedTokens } from '../../contracts/tokens.ts'
import type { DescribedCall, Explanation } from '../../contracts/explanation.ts'
import type { MaintenanceRecords } from '../maintenance/records.ts'
import type { Operator } from '../operator.ts'
import type { ReportedActs } from '../reported-acts.ts'
import type { Right } from './rights.ts'
import type { LoggedCall } from '../log/read-call-line.ts'
import type { ClosableNames } from '../maintenance/config.ts'
import type { PastAnswer } from '../past-calls.ts'
import type { BodySchema } from '../../http/body-schema.ts'
import { Fault } from '../../kernel/faults.ts'

/** Each line of `problems` says where the problem is, what it is and what to do. It holds no secret. */
export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly warnings: readonly string[]; readonly revoked: number }
  | {
      readonly outcome: 'refused'
      readonly problems: readonly string[]
      /** It has no problem, but the audit trail cannot be written now. */
      readonly unavailable?: true
    }

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly workers: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export interface RevokeOptions {
  /** Count what would be ended, change nothing. */
  readonly preview: boolean
  /** End consents too. */
  readonly consents: boolean
  /** Make the rule even if an id is not known. */
  readonly force: boolean
}

export type RevokeOutcome =
  | { readonly outcome: 'revoked' | 'previewed'; readonly ended: Ended }
  | { readonly outcome: 'unknown'; readonly problems: readonly string[] }

/** Of an erasure: personal values, and the files that held them. */
export interface Redacted {
  readonly values: number
  readonly files: number
}

/** What operators can do to a running service. The admin API, signals and file changes all use it. */
export interface OperatorControl {
  readonly maintenance: Pick<MaintenanceRecords, 'list' | 'set' | 'end'>
  readonly lockouts: Pick<Lockouts, 'list'>
  /** What commands report. */
  readonly acts: ReportedActs
  /** The names that switches may close in the configuration in force. */
  closableNames(): ClosableNames
  /** Whether the store has a client with this id. Rejects if the store cannot be read. */
  hasStoredClient(id: string): Promise<boolean>
  /** The configuration in force, without its secrets. */
  configuration(): unknown
  /**
   * Revokes tokens, sessions, codes and families (C6.3.3). If an id is not known, nothing changes and `problems` has a
   * line for each such id. Rejects with Fault `identity_unavailable` if the store failed; a part may be done then.
   */
  revoke(tokens: RevokedTokens, options: RevokeOptions, operator: Operator): Promise<RevokeOutcome>
  /**
   * Decides a call that is described, and explains it (C14). Rejects with AdminError 503 if no process can be asked, and
   * with an error if the explanation is not what was decided: a defect.
   */
  explain(call: DescribedCall, operator: Operator): Promise<Explanation>
  /**
   * What was decided about a call of the past, and what would be now (C14.4): of the call of this request id, if a
   * process keeps it, or of that of a line of the log. Undefined if no process keeps it. Rejects as `explain` does.
   */
  explainPast(past: string | LoggedCall, operator: Operator): Promise<PastAnswer | undefined>
  /** Forgets the failed logins that match every given member. Resolves with their number. */
  clearLockouts(which: Partial<GuessingKey>, operator: Operator): Promise<number>
  /**
   * Erases the personal values of a subject in the audit trail. Undefined if this service does not sign the trail. Rejects
   * with Fault `audit_unavailable` or AdminError 503, with nothing erased.
   */
  redact(subject: string, operator: Operator): Promise<Redacted | undefined>
  reload(operator: Operator): Promise<ReloadOutcome>
  /** Replaces every worker process, one after the other, without losing a call. */
  restart(operator: Operator): Promise<RestartOutcome>
}

/** Requests are checked against it, and the OpenAPI document publishes it. */
export type Schema = BodySchema

/** The schemas of an object's members, or of a route's query parameters. */
export type Members = Readonly<Record<string, Schema>>

export interface AdminRequest {
  readonly body: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, string | undefined>>
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string | undefined>>
  readonly operator: Operator
}

export interface AdminAnswer {
  readonly status: number
  /** A stream is sent as it is. */
  readonly body: unknown
  /** The media type of a stream. Everything else is JSON. */
  readonly type?: string
}

export interface AdminRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** A parameter stands as `:name`. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** The right that an operator needs for it (C12.2.4). */
  readonly needs: Right
  /** The schema of the JSON body. Absent: no body is read. */
  readonly body?: Schema
  /** Whether the body may be omitted. */
  readonly bodyOptional?: boolean
  /** The schema of each query parameter. */
  readonly query?: Members
  /** The schema of each parameter of the path. */
  readonly params?: Members
  /** The meaning and the schema of each status. 400, 401, 403 and 503 are the same for all routes and not repeated. */
  readonly answers: Readonly<Record<number, readonly [description: string, schema: Schema]>>
  readonly handle: (control: OperatorControl, request: AdminRequest) => AdminAnswer | Promise<AdminAnswer>
}

export const text = (description: string, more: Schema = {}): Schema => ({
  type: 'string',
  minLength: 1,
  maxLength: 1000,
  description,
  ...more,
})

export const count = (description: string): Schema => ({ type: 'integer', minimum: 0, description })

/** The schema of an object. Members that it does not name are refused. */
export const members = (properties: Members, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

/** Members that every change may carry. */
export const WHO: Members = {
  by: text('Who gives the order, as they call themselves: the records name it as claimed.'),
  reason: text('Why, in at most 500 bytes; it goes to the log and to the audit trail.'),
}

export const problemsSchema = members(
  {
    error: text('What is wrong.'),
    problems: { type: 'array', items: { type: 'string' }, description: 'Each problem, for people.' },
  },
  ['error', 'problems'],
)

export const ok = (body: unknown): AdminAnswer => ({ status: 200, body })

/** 409: the request is valid, but the service cannot carry it out in its present state. */
export const refuse = (error: string, problems: readonly string[]): AdminAnswer => ({
  status: 409,
  body: { error, problems },
})

/** 503: what must be recorded cannot be recorded now. */
export const notNow = (error: string, problems: readonly string[]): AdminAnswer => ({
  status: 503,
  body: { error, problems },
})

/** 404: the named thing does not exist. */
export const notFound = (error: string, problems: readonly string[]): AdminAnswer => ({
  status: 404,
  body: { error, problems },
})

/** 400: the request does not fit its schema. */
export const reject = (problems: readonly string[]): AdminAnswer => ({
  status: 400,
  body: { error: 'the request does not fit', problems },
})

/** An error whose message and problems the client may see. */
export class AdminError extends Error {
  readonly statusCode: number
  /** A line for each problem, such as `body.until  must match …`. Repeats no value. */
  readonly problems: readonly string[] | undefined

  constructor(statusCode: number, message: string, problems?: readonly string[]) {
    super(message)
    this.statusCode = statusCode
    this.problems = problems
  }
}

/** The part of Fastify's own errors that is used. */
export interface FrameworkError extends Error {
  readonly statusCode?: number
}

export interface ErrorBody {
  readonly status: number
  readonly body: { readonly error: string; readonly problems?: readonly string[] }
}

/** Texts for all other errors, whose messages the client must not see. */
const PLAIN: Readonly<Record<number, string>> = {
  400: 'the request does not fit',
  413: 'the body is too large',
  415: 'send the body as application/json',
  500: 'something went wrong; the log tells more',
  503: 'the store is out of reach; what was asked is not done, or in part: try again',
}

const NO_TRAIL_NOW = 'the audit trail cannot be written, so this is not done: try again when it can'

/** The status and body of the answer to an error. */
export function errorBodyOf(thrown: Fault | AdminError | FrameworkError): ErrorBody {
  const status = (thrown instanceof Fault ? thrown.status : thrown.statusCode) ?? 500
  if (thrown instanceof Fault && thrown.code === 'audit_unavailable')
    return { status, body: { error: NO_TRAIL_NOW } }
  if (!(thrown instanceof AdminError))
    return { status, body: { error: PLAIN[status] ?? 'the request was refused' } }
  const { message: error, problems } = thrown
  return { status, body: problems === undefined ? { error } : { error, problems } }
}
