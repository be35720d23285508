import { Buffer } from 'node:buffer'
import type {
  AnswerFormat,
  BackendAnswer,
  Call,
  ErrorPlaces,
  ErrorSearch,
  UpstreamResponse,
} from '../../../base/contracts/calls/backend.ts'
import { hasNoContent } from '../../../base/http/head/head.ts'
import type { PieceSource } from '../../../base/http/body/pieces.ts'
import { after } from '../../../base/kernel/clock.ts'
import { formatOf, kindOf } from './response/answer-types.ts'
import { searchedPlaces } from './response/own-errors.ts'
import type { Refusals } from './refusal.ts'
import { bodyFor, hasPayload, type ResponseHeaders, successBody, unexpected } from './response/response.ts'
import type { HttpBackendRules } from './rules.ts'

type SuccessRules = Pick<
  HttpBackendRules,
  'name' | 'format' | 'payload' | 'types' | 'xml' | 'data' | 'errors' | 'ranges'
>

/** Whether all successes are in the backend's format, and pass or are converted as they are. */
const isPlain = (rules: SuccessRules): boolean =>
  rules.types === undefined &&
  (rules.payload === 'bare' || rules.payload === 'envelope') &&
  searchedPlaces(rules.errors) === undefined &&
  rules.ranges === 'bytes'

const PARTIAL_CONTENT = 206

/** The most bytes of a body that are dropped; a longer body closes its connection. */
const MOST_DROPPED = 1024 * 1024
/** How long the end of a dropped body is waited for, in milliseconds. */
const PATIENCE = 5000

/** Headers about bytes that nobody gets. */
const OF_BYTES: ReadonlySet<string> = new Set([
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-range',
  'accept-ranges',
])

/** Successes of an upstream that differ from one to the other (C8.8): in their type, or in whether they are one. */
export class SuccessReader {
  readonly #rules: SuccessRules
  readonly #refusals: Refusals
  readonly #places: ErrorPlaces | undefined
  readonly #formats: Readonly<Record<'json' | 'xml' | 'text', AnswerFormat | undefined>>

  private constructor(rules: SuccessRules, refusals: Refusals) {
    this.#rules = rules
    this.#refusals = refusals
    this.#places = searchedPlaces(rules.errors)
    this.#formats = {
      json: answerFormat('json', rules),
      xml: answerFormat('xml', rules),
      text: answerFormat('text', rules),
    }
  }

  /** Undefined: `successBody` alone says what they are. */
  static of(rules: SuccessRules, refusals: Refusals): SuccessReader | undefined {
    return isPlain(rules) ? undefined : new SuccessReader(rules, refusals)
  }

  /** @throws Fault `upstream_broken` for an answer that is not as the configuration says */
  answer(call: Call, response: UpstreamResponse, headers: ResponseHeaders): BackendAnswer {
    const { statusCode: status } = response
    const search = this.#searchOf(call, response)
    if (this.#rules.payload === 'none' && search === undefined) return dropped(response, headers)
    if (hasNoContent(status) || isPartOfBytes(call, status))
      return { status, headers, body: successBody(call, response, this.#rules.format) }
    const read = this.#read(call, response, search)
    if (call.method !== 'HEAD') return { status, headers, ...read }
    return this.#rules.payload === 'none' ? dropped(response, headers) : { status, headers, body: read.body }
  }

  #searchOf(call: Call, response: UpstreamResponse): ErrorSearch | undefined {
    const { statusCode, headers } = response
    const places = this.#places
    if (statusCode !== 200 || places === undefined || !hasPayload(call, response)) return undefined
    const format = formatOf(headers['content-type'], this.#rules)
    if (format === undefined) return undefined
    return {
      places,
      format,
      answerFound: (found) => this.#refusals.answerFound(found, { statusCode, headers }),
    }
  }

  #read(
    call: Call,
    response: UpstreamResponse,
    search: ErrorSearch | undefined,
  ): Pick<BackendAnswer, 'body' | 'answerFormat' | 'search'> {
    const { headers, body } = response
    const kind = kindOf(headers['content-type'], this.#rules)
    const format = kind && this.#formats[kind]
    const isThere = hasPayload(call, response)
    if (isThere && kind === undefined) throw unexpected('Content-Type', body)
    const coding = headers['content-encoding']?.toLowerCase() ?? 'identity'
    const mayBeCoded = format === undefined && search === undefined && 'accept-encoding' in call.headers
    if (isThere && coding !== 'identity' && !mayBeCoded) throw unexpected('Content-Encoding', body)
    if (response.statusCode === PARTIAL_CONTENT && /^bytes\b/i.test(headers['content-range'] ?? ''))
      throw unexpected('Content-Range', body)
    return { body: bodyFor(call, response), answerFormat: format, search }
  }
}

/** Undefined: it is what the backend says. */
function answerFormat(format: 'json' | 'xml' | 'text', rules: SuccessRules): AnswerFormat | undefined {
  const { name, payload, data, xml } = rules
  if (format === rules.format && payload !== 'text') return undefined
  return {
    name,
    format,
    payload: payload === 'text' ? 'bare' : payload,
    data,
    xml: format === 'xml' ? xml?.rules : undefined,
    exact: true,
  }
}

/** A part in bytes was asked for only where the upstream's own bytes reach the client. */
const isPartOfBytes = ({ headers }: Call, status: number): boolean =>
  status === PARTIAL_CONTENT && /^\s*bytes\s*=/i.test(headers['range'] ?? '')

function dropped({ statusCode, body }: UpstreamResponse, headers: ResponseHeaders): BackendAnswer {
  if (!Buffer.isBuffer(body)) drop(body)
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_BYTES.has(name)))
  return { status: statusCode, headers: kept, body: { kind: 'none' } }
}

/** Reads a body to its end, so that its connection can be used again, unless that costs more than a new one. */
function drop(body: PieceSource): void {
  let left = MOST_DROPPED
  const close = (): void => {
    stopTimer()
    body.cancel()
  }
  const stopTimer = after(PATIENCE, close)
  body.read({
    piece: ({ length }) => {
      left -= length
      if (left < 0) close()
    },
    end: stopTimer,
    fail: stopTimer,
  })
}
