/** The admin API as its clients call it: how commands send the request of an operation to a service. */
import type { Operation, OperationInput } from './operation.ts'

/** An admin API, and the token for it. */
export interface AdminAccess {
  readonly address: string
  readonly token: string
}

interface Refusal {
  readonly error?: string
  readonly problems?: readonly string[]
}

interface ErrorFacts {
  /** Of the answer; undefined if there was none. */
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

/** The path of an operation with its parameters in their places. */
const pathOf = ({ path }: Pick<Operation, 'path'>, { params = {} }: OperationInput): string =>
  path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))

/** Sends a request. Rejects with OperationError if nobody answers, or the service refuses. */
export async function sendTo(
  { address, token }: AdminAccess,
  operation: Pick<Operation, 'method' | 'path'>,
  input: OperationInput,
): Promise<Response> {
  const { query = {}, body } = input
  const url = new URL(pathOf(operation, input), address)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const { method } = operation
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }).catch(
    () => {
      throw new OperationError(
        `there is no answer from ${address}: is the service running, and is this its configuration?`,
      )
    },
  )
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => ({}))
  const { error = `status ${response.status}`, problems = [] } = answer as Refusal
  throw new OperationError(error, { status: response.status, problems })
}
