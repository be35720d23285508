/** A call that is tried: made with the path as it was typed, which `fetch` would change; and its answer for people. */
import { Buffer } from 'node:buffer'
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Explanation } from '../../base/contracts/calls/explanation.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { readHeaderLine, type TypedCall } from './described-call.ts'
import { explanationText } from './explanation-text.ts'
import type { CommandSession } from '../operation/operation.ts'
import { escapedForTerminal } from '../operation/terminal.ts'
import { UsageError } from '../operation/verb.ts'

export interface CallAnswer {
  readonly status: number
  readonly reason: string
  /** Name and value of each header line. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** Why the body is not all there; undefined if it is. */
  readonly cut: string | undefined
}

/** The most bytes of a body that are read. */
const LONGEST_BODY = 1_048_576
/** The longest wait for the whole answer: a stream of events has no end. */
const LONGEST_WAIT_MS = 30_000

/** Nobody answered. */
export class NoAnswer extends Error {}

/** @throws UsageError on a line that is no header line */
function headersOf(lines: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {}
  for (const line of lines) {
    const read = readHeaderLine(line)
    if (read === undefined) throw new UsageError(`--header: expected "Name: value", got "${line}"`)
    const [name, value] = read
    headers[name] = [...(headers[name] ?? []), value]
  }
  return headers
}

/**
 * @param origin the URL of the API, without a path
 * @throws UsageError if a part of the call cannot be sent. Rejects with NoAnswer.
 */
export async function makeCall(origin: string, call: TypedCall): Promise<CallAnswer> {
  const { protocol, hostname, port } = new URL(origin)
  const request = protocol === 'https:' ? requestHttps : requestHttp
  const { method, path, body } = call
  const length = body.length > 0 ? { 'Content-Length': String(body.length) } : {}
  const options: RequestOptions = {
    method,
    path,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? undefined : port,
    headers: { ...length, ...headersOf(call.headers) },
    agent: false,
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

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/** The body as text; undefined if it is none. */
function textOf({ body }: CallAnswer): string | undefined {
  try {
    return UTF_8.decode(body)
  } catch {
    return undefined
  }
}

/** JSON is indented. */
function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Lines and tabs stay: other characters that would change the terminal are escaped. */
const harmless = (text: string): string =>
  text
    .split(/(\r?\n|\t)/)
    .map((part, at) => (at % 2 === 1 ? part : escapedForTerminal(part)))
    .join('')

function bodyText(answer: CallAnswer): string {
  if (answer.body.length === 0) return ''
  const text = textOf(answer)
  return text === undefined
    ? `(${answer.body.length} bytes that are no text)\n`
    : `${harmless(laidOut(text))}\n`
}

export function answerText(answer: CallAnswer): string {
  const { status, reason, headers, cut } = answer
  return [
    `${escapedForTerminal(`${status} ${reason}`)}\n`,
    ...headers.map(([name, value]) => `${escapedForTerminal(`${name}: ${value}`)}\n`),
    '\n',
    bodyText(answer),
    cut === undefined ? '' : `(${cut})\n`,
  ].join('')
}

/** For programs: a body that is no text is base64. */
export function plainAnswer(answer: CallAnswer) {
  const { status, headers, body, cut } = answer
  const text = textOf(answer)
  const content = text === undefined ? { bodyBase64: body.toString('base64') } : { body: text }
  return { status, headers, ...content, ...(cut !== undefined && { cut }) }
}

/** What the answer of a backend lacks is in the record of the call. */
function askedText({ status, headers }: CallAnswer, commandFor: CommandSession['commandFor']): string {
  const [, id] = headers.find(([name]) => name.toLowerCase() === 'x-request-id') ?? []
  if (status < 400 || id === undefined) return ''
  return `. The ${status} came of that; what went wrong there: ${escapedForTerminal(commandFor(['explain', '--request', id]))}`
}

/** For a call that was let in, no check needs to be shown. */
export function whyText(
  explanation: Explanation,
  answer: CallAnswer,
  commandFor: CommandSession['commandFor'],
): string {
  const { outcome, action } = explanation
  if (outcome !== 'let in' || explanation.reportOnly?.wouldRefuse !== undefined)
    return `why: ${explanationText(explanation)}`
  const behind = action === undefined ? '' : `, and backend ${action.backend} was asked`
  return `why: let in: every check holds${behind}${askedText(answer, commandFor)}\n`
}
