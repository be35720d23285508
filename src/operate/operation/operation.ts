/**
 * What an operation consists of: one thing that operators can do, by the admin API, by commands, or by both. Its literal is
 * the only place that describes it. The listener, the OpenAPI document, what a command line takes, `--help`, the completion
 * of shells, `--json` and exit codes are made from it. README.md says how to add one, and where each command runs.
 */
import type { Operator } from '../../base/contracts/records/audited-change.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import type { TagCondition } from '../../base/http/head/entity-tag.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { OperationError } from './errors.ts'
import type { OperationContext, ServiceContext } from './context.ts'
import type { AuthenticatedOperator, Right } from './operators.ts'
import type { Terminal } from './terminal.ts'
import type { Options, Values, Verb } from './verb.ts'

/** Requests are checked against it, and the OpenAPI document publishes it. */
export type Schema = BodySchema

/** The schemas of an object's members, or of a route's query parameters. */
export type Members = Readonly<Record<string, Schema>>

export interface AdminRequest {
  readonly body: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, string | undefined>>
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string | undefined>>
  /** The versions that are meant, for a route that is `conditional` (conditions.ts). Undefined if the request does not say. */
  readonly ifMatch: TagCondition | undefined
  readonly operator: Operator
  /** Whose token was shown: for parts that need another right than the operation. */
  readonly authenticated: AuthenticatedOperator
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

interface OperationFacts {
  /** The body of PATCH is a JSON Merge Patch (RFC 7396). */
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  /** A parameter is written as `:name`. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** The right that an operator needs for it (C12.2.4). */
  readonly needs: Right
  /** Whether it names people to everybody who may use it. Other answers leave them out for an operator without `administer`. */
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
  /** Its command lines. Absent: only the admin API has it. */
  readonly commands?: readonly CommandLine[]
}

type Handler<C> = (context: C, request: AdminRequest) => AdminAnswer | Promise<AdminAnswer>

/** Only a running service carries it out. */
export interface ServiceOperation extends OperationFacts {
  readonly runs?: 'service'
  readonly handle: Handler<ServiceContext>
}

/** A running service carries it out; where none runs, a command does, in its own process. */
export interface SharedOperation extends OperationFacts {
  readonly runs: 'service or here'
  readonly handle: Handler<OperationContext>
  /** A GET that leaves a record: it is carried out under the lock of the trail too. */
  readonly leavesRecord?: true
  /** Why the operation does not fit a configuration. `here`: no service runs. */
  readonly unfit?: (configuration: Configuration, here: boolean) => string | undefined
}

export type AdminOperation = ServiceOperation | SharedOperation

/** A request of an operation, as its schemas describe it. Who asks for it, and why, is added (`WHO`). */
export interface OperationInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
  /** The version that is meant: the tag of an answer. */
  readonly ifMatch?: string
}

/** An answer to a request that was not refused. */
export interface OperationAnswer<A> {
  readonly body: A
  /** The version of what is answered: for `ifMatch`. */
  readonly tag: string | undefined
}

/** What was typed. `--json` is an option of every command line of an operation, `--reason` of most. */
export interface Typed<O extends Options = Options> {
  readonly values: Values<O> & { readonly json?: boolean | undefined; readonly reason?: string | undefined }
  readonly positionals: readonly string[]
}

/** The means of a command line that sends several requests, or asks its user. */
export interface CommandSession<O extends Options = Options> extends Typed<O> {
  /** The operation of the command line. */
  readonly operation: AdminOperation
  /**
   * Sends a request of an operation. Resolves with the body of the answer, of a stream with an AsyncIterable of its lines;
   * both reject with OperationError.
   */
  readonly send: <A>(operation: AdminOperation, input?: OperationInput) => Promise<A>
  /** The same, with the version of what is answered. */
  readonly answer: <A>(operation: AdminOperation, input?: OperationInput) => Promise<OperationAnswer<A>>
  /** The folder of the trail that answers; undefined if it is on another machine, or not known. */
  readonly trailFolder: () => Promise<string | undefined>
  /** A command line for the same service, as it can be typed where this one was. `words` follow `postern`. */
  readonly commandFor: (words: readonly string[]) => string
  /** Prints an answer: as it is with `--json`, otherwise what `text` makes of it. */
  readonly show: <A>(answer: A, text: (answer: A) => string) => void
  readonly terminal: Terminal
}

interface CommandLiteral<O extends Options, A> extends Verb {
  /** What follows `postern`, such as `lockouts clear`. Several mean the same. */
  readonly words: readonly string[]
  /** Its own options. Those that many commands have are added: `--json`, `--reason`, `--config` … */
  readonly options: O
  /** The request. Default: an empty one. @throws UsageError on what the options cannot tell by themselves */
  readonly input?: (typed: Typed<O>) => OperationInput
  /** The answer for people; absent: as JSON. */
  readonly text?: (answer: A, typed: Typed<O>) => string
  /** The answer for programs. Default: as it is. */
  readonly json?: (answer: A, typed: Typed<O>) => unknown
  /** The exit code after an answer. Default: 0. */
  readonly exit?: (answer: A) => number
  /** The exit code where there is no answer, or the request is refused. Default: 1. */
  readonly trouble?: number
  /** The message and the exit code where it is refused. Default: the error and its problems, and `trouble`. */
  readonly refused?: (error: OperationError) => { readonly message: string; readonly code: number }
  /** In place of `input`, `text` and `exit`: several requests, or a dialog. Resolves with the exit code. */
  readonly run?: (session: CommandSession<O>) => Promise<number>
}

/** What is typed for an operation, as one of many: made by `commandLine`. */
export type CommandLine = CommandLiteral<Options, never>

/** A command line. Its texts and requests know the types of its own options and of the answer. */
export const commandLine = <const O extends Options, A = unknown>(
  literal: CommandLiteral<O, A>,
): CommandLine => literal as unknown as CommandLine

export const textSchema = (description: string, more: Schema = {}): Schema => ({
  type: 'string',
  minLength: 1,
  maxLength: 1000,
  description,
  ...more,
})

export const count = (description: string): Schema => ({ type: 'integer', minimum: 0, description })

export const flagSchema = (description: string): Schema => ({ type: 'boolean', description })

export const listSchema = (items: Schema, description: string): Schema => ({
  type: 'array',
  items,
  description,
})

/** The schema of a list of texts. */
export const textsSchema = (description: string): Schema => listSchema({ type: 'string' }, description)

/** The schema of an object. Members that it does not name are refused. */
export const members = (properties: Members, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

/** Members that every change may carry. */
export const WHO: Members = {
  by: textSchema('Who gives the order, as they call themselves: the records name it as claimed.'),
  reason: textSchema('Why, in at most 500 bytes; it goes to the log and to the audit trail.'),
}

/** The member of a request that says who asks for it, as they call themselves. Undefined if it cannot say so. */
export function whoMember({ query = {}, body }: OperationFacts): 'by' | 'claimed' | undefined {
  if (query['claimed'] !== undefined) return 'claimed'
  return query['by'] === undefined && body?.properties?.['by'] === undefined ? undefined : 'by'
}

export const problemsSchema = members(
  {
    error: textSchema('What is wrong.'),
    problems: textsSchema('Each problem, for people.'),
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

const refusal =
  (status: number) =>
  (error: string, problems: readonly string[]): AdminAnswer => ({ status, body: { error, problems } })

/** 409: the request is valid, but the service cannot carry it out in its present state. */
export const conflict = refusal(409)

/** 503: what must be recorded cannot be recorded now. */
export const notNow = refusal(503)

/** 404: the named thing does not exist. */
export const notFound = refusal(404)

/** 400: the request does not fit its schema. */
export const reject = (problems: readonly string[]): AdminAnswer =>
  refusal(400)('the request does not fit', problems)
