/** What every route of the admin API is made of. */
import type { BodySchema } from '../../http/body-schema.ts'
import type { Operator } from '../maintenance/records.ts'
import type { OperatorControl } from './operator-control.ts'
import { Fault } from '../../kernel/faults.ts'

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

export interface ToldError {
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
export function tellError(thrown: Fault | AdminError | FrameworkError): ToldError {
  const status = (thrown instanceof Fault ? thrown.status : thrown.statusCode) ?? 500
  if (!(thrown instanceof AdminError))
    return { status, body: { error: PLAIN[status] ?? 'the request was refused' } }
  const { message: error, problems } = thrown
  return { status, body: problems === undefined ? { error } : { error, problems } }
}
