/** One HTTP call, as a command makes it: the path as it was typed, which `fetch` would change. */
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { reasonInWords } from '../kernel/thrown.ts'
import { UsageError } from '../operator/verb.ts'

export interface Call {
  readonly method: string
  readonly path: string
  /** Header lines, as `Name: value`. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

export interface CallAnswer {
  readonly status: number
  readonly reason: string
  /** Name and value of each header line. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** Why the body is not all there; undefined if it is. */
  readonly cut: string | undefined
}

/** Bytes of a body that are read. */
const LONGEST_BODY = 1_048_576
/** For the whole answer: a stream of events has no end. */
const LONGEST_WAIT_MS = 30_000

/** Nobody answered. */
export class NoAnswer extends Error {}

/** @throws UsageError on a line that is no header line */
function headersOf(lines: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon <= 0) throw new UsageError(`--header: expected "Name: value", got "${line}"`)
    const name = line.slice(0, colon)
    headers[name] = [...(headers[name] ?? []), line.slice(colon + 1).trim()]
  }
  return headers
}

/** What a body without a type is, by how it begins: without one, Postern reads each as XML (C4.11). */
const BEGINNINGS: readonly (readonly [beginning: RegExp, type: string])[] = [
  [/^\s*[{[]/, 'application/json'],
  [/^\s*</, 'application/xml'],
]

const LONGEST_BEGINNING = 100

/** The header lines, and the Content-Type of a body of JSON or XML if they name none. */
export function headersWithType(lines: readonly string[], body: Buffer): readonly string[] {
  if (lines.some((line) => /^content-type:/i.test(line))) return lines
  const beginning = body.subarray(0, LONGEST_BEGINNING).toString('latin1')
  const [, type] = BEGINNINGS.find(([each]) => each.test(beginning)) ?? []
  return type === undefined ? lines : [...lines, `Content-Type: ${type}`]
}

/**
 * @param origin the URL of the API, without a path
 * @throws UsageError if a part of the call cannot be sent. Rejects with NoAnswer.
 */
export async function makeCall(origin: string, call: Call): Promise<CallAnswer> {
  const { protocol, hostname, port } = new URL(origin)
  const request = protocol === 'https:' ? requestHttps : requestHttp
  const { method, path, body } = call
  const length = body.length > 0 ? { 'Content-Length': String(body.length) } : {}
  const options: RequestOptions = {
    ...{ method, path, hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? undefined : port },
    ...{ headers: { ...length, ...headersOf(call.headers) }, agent: false },
    signal: AbortSignal.timeout(LONGEST_WAIT_MS),
  }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  try {
    request(options, resolve).on('error', reject).end(body)
  } catch (thrown) {
    throw new UsageError(`the call cannot be sent: ${(thrown as Error).message}`)
  }
  const message = await promise.catch((thrown: unknown) => {
    throw new NoAnswer(`there is no answer from ${origin} (${reasonInWords(thrown)})`)
  })
  return { ...headOf(message), ...(await bodyOf(message)) }
}

const headOf = ({ statusCode = 0, statusMessage = '', rawHeaders }: IncomingMessage) => ({
  status: statusCode,
  reason: statusMessage,
  headers: rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : [],
  ),
})

async function bodyOf(message: IncomingMessage): Promise<Pick<CallAnswer, 'body' | 'cut'>> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, LONGEST_BODY - length))
      length += chunk.length
      if (length > LONGEST_BODY) return { body: Buffer.concat(chunks), cut: 'only its first MiB is shown' }
    }
    return { body: Buffer.concat(chunks), cut: undefined }
  } catch (thrown) {
    const why =
      thrown instanceof Error && thrown.name === 'AbortError'
        ? `it had not ended after ${LONGEST_WAIT_MS / 1000} s`
        : `the connection broke (${reasonInWords(thrown)})`
    return { body: Buffer.concat(chunks), cut: why }
  }
}
