/** Errors of the admin API, and what its clients see of them. */
import { Fault } from '../../base/kernel/faults.ts'

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
const PLAIN = {
  400: 'the request does not fit',
  413: 'the body is too large',
  415: 'send the body as application/json',
  500: 'something went wrong; the log tells more',
  503: 'the store is out of reach; what was asked is not done, or in part: try again',
} as const satisfies Readonly<Record<number, string>>

/** The store did not answer in time. */
export const NO_STORE_NOW = PLAIN[503]

const plainText = (status: number): string =>
  new Map<string, string>(Object.entries(PLAIN)).get(String(status)) ?? 'the request was refused'

/** An operation that gives something cannot be recorded, and so it is not done. */
export const NO_TRAIL_NOW = 'the audit trail cannot be written, so this is not done: try again when it can'
/** The same for a record that may be written yet. */
const LATE =
  'the record of this came late, so this is not done: the disk of the audit trail is slow. Try again'

/** The status and body of the answer to an error. */
export function errorBodyOf(thrown: Fault | AdminError | FrameworkError): ErrorBody {
  const status = (thrown instanceof Fault ? thrown.status : thrown.statusCode) ?? 500
  if (thrown instanceof Fault && thrown.code === 'audit_unavailable')
    return { status, body: { error: thrown.facts.late === true ? LATE : NO_TRAIL_NOW } }
  if (!(thrown instanceof AdminError)) return { status, body: { error: plainText(status) } }
  const { message: error, problems } = thrown
  return { status, body: problems === undefined ? { error } : { error, problems } }
}

interface ErrorFacts {
  /** The status of the answer; undefined if there was none. */
  readonly status?: number
  readonly problems?: readonly string[]
  readonly cause?: unknown
}

/** An operation was not carried out: nobody answers, or it was refused. The message is for stderr, and the exit code is 1. */
export class OperationError extends Error {
  /** What is wrong, without the problems that are below it in the message. */
  readonly error: string
  readonly status: number | undefined
  readonly problems: readonly string[]

  constructor(error: string, { status, problems = [], cause }: ErrorFacts = {}) {
    super([error, ...problems.map((problem) => `  ${problem}`)].join('\n'), { cause })
    this.error = error
    this.status = status
    this.problems = problems
  }
}
