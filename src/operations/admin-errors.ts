/** What the admin listener says of errors: its own words only, never an exception's. */
import { Fault } from '../kernel/faults.ts'

/** An error in words that may be told. */
export class AdminError extends Error {
  readonly statusCode: number

  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/** One complaint of fastify's schema validation. */
interface Complaint {
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

/** What of fastify's errors is looked at. */
export interface FrameworkError extends Error {
  readonly statusCode?: number
  readonly validation?: readonly Complaint[]
  /** `body` or `querystring`. */
  readonly validationContext?: string
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

/** `body.until  must match …`: where, and what is expected. Echoes no value. */
function problemText({ instancePath, message, params }: Complaint, part = 'request'): string {
  const { additionalProperty, missingProperty } = params
  const name = additionalProperty ?? missingProperty
  const at = `${part}${instancePath.replaceAll('/', '.')}${typeof name === 'string' ? `.${name}` : ''}`
  const wrong = typeof additionalProperty === 'string' ? 'is not a known member here' : message
  return `${at}  ${wrong ?? 'does not fit'}`
}

export function tellError(thrown: Fault | AdminError | FrameworkError): ToldError {
  const status = (thrown instanceof Fault ? thrown.status : thrown.statusCode) ?? 500
  if (thrown instanceof AdminError) return { status, body: { error: thrown.message } }
  const error = PLAIN[status] ?? 'the request was refused'
  if (thrown instanceof Fault || thrown.validation === undefined) return { status, body: { error } }
  const { validation, validationContext } = thrown
  return { status, body: { error, problems: validation.map((each) => problemText(each, validationContext)) } }
}
