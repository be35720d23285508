import { Readable } from 'node:stream'
import type { BackendAnswer, BackendBody, BackendError } from '../../base/contracts/calls/backend.ts'
import { isHeaderValue, isToken } from '../../base/http/head/header-text.ts'
import { StreamInPieces } from '../../base/http/body/pieces.ts'
import { bufferOf } from '../../base/http/body/read-body.ts'
import {
  checkStatus,
  type ResponseHeaders,
  statusFault,
} from '../../gateway/backends/forward/response/response.ts'
import { broken, ModuleStream, type StreamRules } from './stream.ts'
import { jsonBodyOf } from './value.ts'

export interface AnswerRules {
  /** Headers that reach the client, by lower-case name. */
  readonly passed: ReadonlySet<string>
  /** The request was a conditional one, and may be answered 304. */
  readonly conditional: boolean
  /** The request carried Range, and may be answered 206. */
  readonly ranged: boolean
  /** The current time, in milliseconds since the epoch. */
  readonly now: () => number
  readonly streams: StreamRules
  /** Most bytes of a value as JSON. */
  readonly limit: number
}

type Members = Readonly<Record<string, unknown>>

/**
 * Checks the answer of a module (C8.4): user code has no types when it runs, and its mistakes are a 500 for one client,
 * never the end of the process.
 * @throws Fault upstream_broken for what is no answer, answer_too_large; the fault of C8.4 for a status that means one
 */
export async function checkAnswer(given: unknown, rules: AnswerRules): Promise<BackendAnswer> {
  const { status = 200, headers = {}, body = NONE } = membersOf(given, 'an answer')
  const code = checkStatusOf(status)
  const checked = checkHeaders(membersOf(headers, 'headers'))
  const content = await checkBody(membersOf(body, 'a body'), rules)
  const verdict = checkStatus(code, { ...rules, authorizationForwarded: false })
  if (verdict.kind === 'errors' && content.kind === 'errors')
    return { status: code, headers: {}, body: content }
  if (verdict.kind !== 'answer') {
    discard(content)
    throw statusFault(verdict, { given: code }, checked, rules.now())
  }
  if (content.kind === 'errors') throw broken(`answered errors with the status ${code}`)
  return { status: code, headers: passing(checked, rules.passed), body: content }
}

const NONE = { kind: 'none' } as const

/** @throws Fault upstream_broken for what is no final status */
export function checkStatusOf(given: unknown): number {
  if (typeof given === 'number' && Number.isInteger(given) && given >= 200 && given <= 599) return given
  throw broken(`answered the status ${String(given)}`)
}

export function membersOf(given: unknown, expected: string): Members {
  if (typeof given === 'object' && given !== null) return given as Members
  throw broken(`answered ${given === null ? 'null' : typeof given} for ${expected}`)
}

/** The limit of all headers together, in characters and in lines: as much as an upstream of the `http` backend may send. */
export const MOST_HEAD = 16 * 1024
export const MOST_LINES = 100

const isSendable = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MOST_HEAD && isHeaderValue(value)

export function checkHeaders(given: Members): ResponseHeaders {
  const checked: ResponseHeaders = {}
  let size = 0
  let count = 0
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const lines = Array.isArray(value) ? itemsOf(value, MOST_LINES, 'lines of a header') : [value]
    if (name.length > MOST_HEAD || !isToken(name) || !lines.every(isSendable))
      throw broken(`answered a header that HTTP cannot say: ${JSON.stringify(name.slice(0, 100))}`)
    for (const line of lines) size += name.length + line.length + 4
    count += lines.length
    if (size > MOST_HEAD || count > MOST_LINES)
      throw broken(`answered headers of more than ${MOST_HEAD} characters or ${MOST_LINES} lines`)
    checked[name.toLowerCase()] = lines.length === 1 ? (lines[0] ?? '') : lines
  }
  return checked
}

/** A list of its own, as long as it may be: of one with a length of billions and no items, each place would be visited. */
function itemsOf(given: readonly unknown[], most: number, what: string): unknown[] {
  if (given.length > most) throw broken(`answered more than ${most} ${what}`)
  return Array.from(given)
}

const passing = (headers: ResponseHeaders, passed: ReadonlySet<string>): ResponseHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => passed.has(name)))

type BodyCheck = (body: Members, rules: AnswerRules) => BackendBody | Promise<BackendBody>

const BODIES: Readonly<Record<BackendBody['kind'], BodyCheck>> = {
  none: () => NONE,
  value: ({ value }, { limit }) => jsonBodyOf(value, limit),
  bytes: ({ bytes, contentType }) => {
    if (!(bytes instanceof Uint8Array)) throw broken('answered bytes that are no Uint8Array')
    return { kind: 'bytes', bytes: bufferOf(bytes), contentType: mediaTypeOf(contentType) }
  },
  stream: ({ stream, contentType, length }, { streams }) => {
    if (!(stream instanceof Readable)) throw broken('answered a stream that is no Readable of node:stream')
    const passed = new ModuleStream(stream, streams)
    try {
      return {
        kind: 'stream',
        pieces: new StreamInPieces(passed),
        contentType: mediaTypeOf(contentType),
        length: lengthOf(length),
      }
    } catch (thrown) {
      passed.destroy()
      throw thrown
    }
  },
  errors: ({ errors }) => {
    if (!Array.isArray(errors) || errors.length === 0) throw broken('answered an empty list of errors')
    return { kind: 'errors', errors: itemsOf(errors, MOST_ERRORS, 'errors').map(errorOf) }
  },
}

function checkBody(body: Members, rules: AnswerRules): BackendBody | Promise<BackendBody> {
  const { kind } = body
  if (typeof kind === 'string' && Object.hasOwn(BODIES, kind))
    return BODIES[kind as BackendBody['kind']](body, rules)
  throw broken(`answered a body of the kind ${String(kind)}`)
}

export function mediaTypeOf(given: unknown): string | undefined {
  if (given === undefined) return undefined
  if (isSendable(given) && given.length <= MOST_TYPE && given.includes('/')) return given
  throw broken('answered a contentType that is no media type')
}

const MOST_TYPE = 256

export function lengthOf(given: unknown): number | undefined {
  if (given === undefined || (typeof given === 'number' && Number.isSafeInteger(given) && given >= 0))
    return given
  throw broken('answered a stream whose length is no number of bytes')
}

const MOST_ERRORS = 100
/** The longest code of an error, and the longest message, in characters. */
const MOST_CODE = 100
const MOST_MESSAGE = 4000

function errorOf(given: unknown): BackendError {
  const { code, message } = membersOf(given, 'an error')
  if (typeof code !== 'string' || typeof message !== 'string')
    throw broken('answered an error without a code and a message')
  if (code.length > MOST_CODE || message.length > MOST_MESSAGE)
    throw broken(`answered an error of more than ${MOST_CODE} and ${MOST_MESSAGE} characters`)
  return { code, message }
}

export function discard(body: BackendBody): void {
  if (body.kind === 'stream') body.pieces.cancel()
}

export function withoutStream(answer: BackendAnswer): BackendAnswer {
  if (answer.body.kind !== 'stream') return answer
  discard(answer.body)
  return { ...answer, body: { kind: 'none' } }
}
