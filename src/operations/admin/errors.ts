/** What the admin listener says of errors: its own words only, never an exception's. */
import { Fault } from '../../kernel/faults.ts'

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
