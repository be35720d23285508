import { Readable, Transform, type TransformCallback } from 'node:stream'
import type { BackendAnswer, BackendBody, BackendError } from '../contracts/backend.ts'
import { Fault } from '../kernel/faults.ts'
import type { ResponseHeaders } from './response-headers.ts'
import { broken, jsonValueOf } from './module-value.ts'
import { judgeStatus, statusFault } from './upstream-status.ts'

export interface AnswerRules {
  /** Headers that reach the client, by lower-case name. */
  readonly passed: ReadonlySet<string>
  /** The request was a conditional one, and may be answered 304. */
  readonly conditional: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

type Members = Readonly<Record<string, unknown>>

/**
 * What a module answered, checked (C8.4): user code has no types when it runs, and its mistakes are a 500 for one
 * client, never the end of the process.
 * @throws Fault upstream_broken for what is no answer; the fault of C8.4 for a status that means one
 */
export function checkAnswer(given: unknown, rules: AnswerRules): BackendAnswer {
  const { status = 200, headers = {}, body = NONE } = membersOf(given, 'an answer')
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599)
    throw broken(`answered the status ${String(status)}`)
  const checked = checkHeaders(membersOf(headers, 'headers'))
  const content = checkBody(membersOf(body, 'a body'))
  const verdict = judgeStatus(status, { ...rules, authorizationForwarded: false })
  if (verdict.kind === 'errors' && content.kind === 'errors') return { status, headers: {}, body: content }
  if (verdict.kind !== 'answer') {
    discard(content)
    throw statusFault(verdict, status, checked, rules.now)
  }
  if (content.kind === 'errors') throw broken(`answered errors with the status ${status}`)
  return { status, headers: passing(checked, rules.passed), body: content }
}

const NONE = { kind: 'none' } as const

function membersOf(given: unknown, expected: string): Members {
  if (typeof given === 'object' && given !== null) return given as Members
  throw broken(`answered ${given === null ? 'null' : typeof given} for ${expected}`)
}

/** RFC 9110 §5.6.2 and §5.5. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

const isFieldValue = (value: unknown): value is string => typeof value === 'string' && FIELD_VALUE.test(value)

function checkHeaders(given: Members): ResponseHeaders {
  const checked: ResponseHeaders = {}
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const lines: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (!TOKEN.test(name) || !lines.every(isFieldValue))
      throw broken(`answered a header that HTTP cannot say: ${JSON.stringify(name)}`)
    checked[name.toLowerCase()] = lines.length === 1 ? (lines[0] ?? '') : lines
  }
  return checked
}

const passing = (headers: ResponseHeaders, passed: ReadonlySet<string>): ResponseHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => passed.has(name)))

type BodyCheck = (body: Members) => BackendBody

const BODIES: Readonly<Record<BackendBody['kind'], BodyCheck>> = {
  none: () => NONE,
  value: ({ value }) => ({ kind: 'value', value: jsonValueOf(value) }),
  bytes: ({ bytes, contentType }) => {
    if (!(bytes instanceof Uint8Array)) throw broken('answered bytes that are no Uint8Array')
    return { kind: 'bytes', bytes: bufferOf(bytes), contentType: mediaTypeOf(contentType) }
  },
  stream: ({ stream, contentType, length }) => {
    if (!(stream instanceof Readable)) throw broken('answered a stream that is no Readable of node:stream')
    const checked = { contentType: mediaTypeOf(contentType), length: lengthOf(length) }
    return { kind: 'stream', stream: bytesOf(stream), ...checked }
  },
  errors: ({ errors }) => {
    if (!Array.isArray(errors) || errors.length === 0) throw broken('answered an empty list of errors')
    return { kind: 'errors', errors: errors.map(errorOf) }
  },
}

function checkBody(body: Members): BackendBody {
  const { kind } = body
  if (typeof kind === 'string' && Object.hasOwn(BODIES, kind))
    return BODIES[kind as BackendBody['kind']](body)
  throw broken(`answered a body of the kind ${String(kind)}`)
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

function mediaTypeOf(given: unknown): string | undefined {
  if (given === undefined) return undefined
  if (isFieldValue(given) && given.includes('/')) return given
  throw broken('answered a contentType that is no media type')
}

function lengthOf(given: unknown): number | undefined {
  if (given === undefined || (typeof given === 'number' && Number.isSafeInteger(given) && given >= 0))
    return given
  throw broken('answered a stream whose length is no number of bytes')
}

function errorOf(given: unknown): BackendError {
  const { code, message } = membersOf(given, 'an error')
  if (typeof code === 'string' && typeof message === 'string') return { code, message }
  throw broken('answered an error without a code and a message')
}

/** A stream of objects (Readable.from makes one of any list) would throw where it is written, and end the process. */
function bytesOf(stream: Readable): Readable {
  if (!stream.readableObjectMode) return stream
  const bytes = new Transform({ writableObjectMode: true, transform: onlyBytes })
  stream.once('error', (error) => bytes.destroy(error))
  bytes.once('close', () => stream.destroy())
  return stream.pipe(bytes)
}

function onlyBytes(chunk: unknown, _encoding: BufferEncoding, done: TransformCallback): void {
  if (typeof chunk === 'string' || chunk instanceof Uint8Array) done(null, chunk)
  else done(broken(`streamed a ${typeof chunk}; expected text or bytes`))
}

/** Lets go of a body that nobody will read. */
export function discard(body: BackendBody): void {
  if (body.kind !== 'stream') return
  body.stream.once('error', () => undefined)
  body.stream.destroy()
}

/** What a module threw, as its client's fault; it stands whole in the log. */
export const faultOf = (thrown: unknown): Fault =>
  thrown instanceof Fault
    ? thrown
    : new Fault('upstream_broken', { cause: thrown, detail: 'the module threw' })
