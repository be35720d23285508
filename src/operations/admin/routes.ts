import type { GuessingKey, Lockouts } from '../../contracts/lockouts.ts'
import type { Ended, RevokedTokens } from '../../contracts/tokens.ts'
import type { MaintenanceRecords, Operator } from '../maintenance/records.ts'
import type { ClosableNames } from '../maintenance/config.ts'
import type { BodySchema } from '../../http/body-schema.ts'
import { Fault } from '../../kernel/faults.ts'

/** `problems` are lines for people: where, what, what to do. They hold no secret. */
export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly warnings: readonly string[]; readonly revoked: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly workers: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

export interface RevokeOptions {
  /** Changes nothing. */
  readonly preview: boolean
  readonly consents: boolean
  /** Also where an id is not known. */
  readonly force: boolean
}

export type RevokeOutcome =
  | { readonly outcome: 'revoked' | 'previewed'; readonly ended: Ended }
  | { readonly outcome: 'unknown'; readonly problems: readonly string[] }

/** What operators can do to a service that runs: the admin API, signals and the watched files all come here. */
export interface OperatorControl {
  readonly maintenance: Pick<MaintenanceRecords, 'list' | 'set' | 'end'>
  readonly lockouts: Pick<Lockouts, 'list'>
  /** What switches may name, by the configuration in force. */
  closableNames(): ClosableNames
  /** Whether a client of this id was added to the store. Rejects if that cannot be read. */
  hasStoredClient(id: string): Promise<boolean>
  /** The configuration in force, without its secrets. */
  configuration(): unknown
  /**
   * Ends what is held (C6.3.3); `problems` has a line for each id that is not known, and then nothing has changed.
   * Rejects with Fault `identity_unavailable` if it is not done whole: it may be done in part then.
   */
  revoke(tokens: RevokedTokens, options: RevokeOptions, operator: Operator): Promise<RevokeOutcome>
  /** Forgets the failures of all that fit every member given; answers how many there were. */
  clearLockouts(which: Partial<GuessingKey>, operator: Operator): Promise<number>
  reload(operator: Operator): Promise<ReloadOutcome>
  /** Replaces every worker process, one after the other, without losing a call. */
  restart(operator: Operator): Promise<RestartOutcome>
}

/** What every route of the admin API is made of. */

/** Checked on the way in, published in the OpenAPI document. */
export type Schema = BodySchema

/** The schemas of an object's members, or of a route's query parameters. */
export type Members = Readonly<Record<string, Schema>>

export interface AdminRequest {
  readonly body: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, string | undefined>>
  readonly operator: Operator
}

export interface AdminAnswer {
  readonly status: number
  readonly body: unknown
}

export interface AdminRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** Of the JSON body; absent: none is read. */
  readonly body?: Schema
  /** A body that may be left out. */
  readonly bodyOptional?: boolean
  /** Of each query parameter. */
  readonly query?: Members
  /** What each status means, and its schema. 400, 401 and 503 are the same everywhere and not repeated. */
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

/** An object of known members; others are refused. */
export const members = (properties: Members, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

/** Told with every change. */
export const WHO: Members = {
  by: text('Who gives the order, as they call themselves.'),
  reason: text('Why; it goes to the log.'),
}

export const problemsSchema = members(
  {
    error: text('What is wrong.'),
    problems: { type: 'array', items: { type: 'string' }, description: 'Each problem, for people.' },
  },
  ['error', 'problems'],
)

export const ok = (body: unknown): AdminAnswer => ({ status: 200, body })

/** 409: understood, but the service is not in a state for it. */
export const refuse = (error: string, problems: readonly string[]): AdminAnswer => ({
  status: 409,
  body: { error, problems },
})

/** 404: what was named does not exist. */
export const notFound = (error: string, problems: readonly string[]): AdminAnswer => ({
  status: 404,
  body: { error, problems },
})

/** 400: what was sent does not fit. */
export const reject = (problems: readonly string[]): AdminAnswer => ({
  status: 400,
  body: { error: 'the request does not fit', problems },
})

/** What the admin listener says of errors: its own words only, never an exception's. */

/** An error in words that may be told. */
export class AdminError extends Error {
  readonly statusCode: number
  /** Each thing that is wrong: `body.until  must match …`. Echoes no value. */
  readonly problems: readonly string[] | undefined

  constructor(statusCode: number, message: string, problems?: readonly string[]) {
    super(message)
    this.statusCode = statusCode
    this.problems = problems
  }
}

/** What is read of Fastify's own errors. */
export interface FrameworkError extends Error {
  readonly statusCode?: number
}

export interface ErrorBody {
  readonly status: number
  readonly body: { readonly error: string; readonly problems?: readonly string[] }
}

/** What is told of errors that are not our own words. */
const PLAIN: Readonly<Record<number, string>> = {
  400: 'the request does not fit',
  413: 'the body is too large',
  415: 'send the body as application/json',
  500: 'something went wrong; the log tells more',
  503: 'the store is out of reach; what was asked is not done, or in part: try again',
}

/** The status and body that answer an error. */
export function errorBodyOf(thrown: Fault | AdminError | FrameworkError): ErrorBody {
  const status = (thrown instanceof Fault ? thrown.status : thrown.statusCode) ?? 500
  if (!(thrown instanceof AdminError))
    return { status, body: { error: PLAIN[status] ?? 'the request was refused' } }
  const { message: error, problems } = thrown
  return { status, body: problems === undefined ? { error } : { error, problems } }
}
