/** The admin API as its clients call it: how commands send the request of an operation to a service. */
import { faultOfToken } from '../../base/files/text-file.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { OperationError } from './errors.ts'
import type { AdminOperation, OperationInput } from './operation.ts'

/** An admin API, and the token for it. */
export interface AdminAccess {
  readonly address: string
  readonly token: string
}

interface Refusal {
  readonly error?: string
  readonly problems?: readonly string[]
}

/** How long a command waits for a store that is locked, in seconds. */
const PATIENCE = 10

/** The path of an operation with its parameters in their places. */
const pathOf = ({ path }: Pick<AdminOperation, 'path'>, { params = {} }: OperationInput): string =>
  path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))

/** Sends a request. Rejects with OperationError if nobody answers, or the service refuses. */
export async function sendTo(
  { address, token }: AdminAccess,
  operation: Pick<AdminOperation, 'method' | 'path'>,
  input: OperationInput,
): Promise<Response> {
  const { query = {}, body, ifMatch } = input
  const url = new URL(pathOf(operation, input), address)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  const headers = {
    Authorization: `Bearer ${token}`,
    'Postern-Via': 'cli',
    Prefer: `wait=${PATIENCE}`,
    ...(ifMatch !== undefined && { 'If-Match': `"${ifMatch}"` }),
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const fault = faultOfToken(token)
  if (fault !== undefined) throw new OperationError(`this token cannot be sent: it ${fault}`)
  const response = await fetch(url, {
    method: operation.method,
    headers,
    // A redirect would carry the body elsewhere: a password, or a new secret.
    redirect: 'error',
    ...(body && { body: JSON.stringify(body) }),
  }).catch((thrown: unknown) => {
    const { cause = thrown } = thrown as Error
    throw new OperationError(
      `there is no answer from ${address} (${reasonInWords(cause)}): is the service running, and is this its configuration?`,
    )
  })
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => ({}))
  const { error = `status ${response.status}`, problems = [] } = answer as Refusal
  throw new OperationError(error, { status: response.status, problems })
}

/** The media type of a stream of JSON, a value in each line. */
export const LINES = 'application/x-ndjson'

export const BROKEN_OFF = 'the answer of the service broke off: what was shown is not all'

/** The lines of a stream, without their ends. Rejects with OperationError if it breaks off. */
export async function* linesOf(stream: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of stream) {
      const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
      const lines = `${rest}${text}`.split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (cause) {
    throw new OperationError(BROKEN_OFF, { cause })
  }
}
