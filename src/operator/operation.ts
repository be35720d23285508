/** What a route of the admin API consists of: requests, answers and their schemas. */
import type { BodySchema } from '../http/body-schema.ts'
import type { TagCondition } from '../http/entity-tag.ts'
import type { Operator } from '../audit/audited-change.ts'
import type { OperatorControl } from './operator-control.ts'
import type { Right } from './rights.ts'

/** Requests are checked against it, and the OpenAPI document publishes it. */
export type Schema = BodySchema

/** The schemas of an object's members, or of a route's query parameters. */
export type Members = Readonly<Record<string, Schema>>

export interface AdminRequest {
  readonly body: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, string | undefined>>
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string | undefined>>
  /** Of a route that is `conditional`: the versions that are meant (conditions.ts). Undefined if the request does not say. */
  readonly ifMatch: TagCondition | undefined
  readonly operator: Operator
}

export interface AdminAnswer {
  readonly status: number
  /** A stream is sent as it is. */
  readonly body: unknown
  /** The media type of a stream. Everything else is JSON. */
  readonly type?: string
  /** The version of what is answered, without quotes: the header `ETag`. */
  readonly tag?: string
  /** Where it is from now on: the header `Location`. */
  readonly location?: string
}

/** The media type of a JSON Merge Patch (RFC 7396). PATCH takes application/json for the same. */
export const MERGE_PATCH = 'application/merge-patch+json'

/** Headers of an answer that a route names in its `answers`, for the OpenAPI document. */
export type AnswerHeader = 'ETag' | 'Location'

export interface Operation {
  /** The body of PATCH is a JSON Merge Patch (RFC 7396). */
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  /** A parameter stands as `:name`. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** The right that an operator needs for it (C12.2.4). */
  readonly needs: Right
  /** Whether everybody who may use it is told names of people. Other answers leave them out for who lacks `administer`. */
  readonly namesPeople?: true
  /** The schema of the JSON body. Absent: no body is read. */
  readonly body?: Schema
  /** Whether `handle` checks the body, and tells every problem of it. Then `body` is only published. */
  readonly checksBody?: true
  /** Whether the body may be omitted. */
  readonly bodyOptional?: boolean
  /** The schema of each query parameter. */
  readonly query?: Members
  /** The schema of each parameter of the path. */
  readonly params?: Members
  /** Whether it reads `If-Match`, and answers 412 if no version that the request names is the latest. */
  readonly conditional?: true
  /** The meaning and the schema of each status. 400, 401, 403, 412 and 503 are the same for all routes and not repeated. */
  readonly answers: Readonly<
    Record<number, readonly [description: string, schema: Schema, headers?: readonly AnswerHeader[]]>
  >
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

/** 201: it was made. `path` is where it is from now on. */
export const made = (body: unknown, path: string, tag: string): AdminAnswer => ({
  status: 201,
  body,
  tag,
  location: path,
})

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
