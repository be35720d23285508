import { Buffer } from 'node:buffer'
import type { BackendAnswer, BackendError } from '../../contracts/backend.ts'
import { errorsOf } from '../../http/envelope.ts'
import {
  isJsonObject,
  type JsonPointer,
  type JsonValue,
  literalOf,
  parseJson,
  valueAt,
} from '../../http/json.ts'
import { type PieceSource, readableOf } from '../../http/pieces.ts'
import { readBody } from '../../http/read-body.ts'
import { decodeXml, doctypeOf } from '../../http/xml/decode.ts'
import { BODY_LIMITS, type PlainXmlRules } from '../../http/xml/plain-document.ts'
import { readPlainXml } from '../../http/xml/plain-read.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../http/xml/read.ts'
import { after, type Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import type { RedirectRules } from './redirects.ts'
import { isOfFormat, statusFault, type StatusVerdict, verdictOfStatus } from './response.ts'
import { compileHoldsAddress, type HoldsAddress } from './upstream-addresses.ts'

/** Where the errors stand in an upstream's own 4xx (C8.8). */
export interface OwnErrors {
  /** Where several errors are listed; the others then start at each item. Undefined: there is one. */
  readonly list: JsonPointer | undefined
  readonly code: JsonPointer | undefined
  /** Of several the first one that leads to a text. */
  readonly messages: readonly JsonPointer[]
  /** What of the text is the code; undefined: all of it. */
  readonly codeOf: ((text: string) => string | undefined) | undefined
}

type Format = 'json' | 'xml'

/** What a refusal's answer depends on, besides its status (C8.4, C8.8). */
interface RefusalRules {
  readonly format: Format
  readonly targets: readonly UpstreamAddress[]
  readonly host: string | undefined
  /** Their origins are addresses of the upstream, too. */
  readonly redirects: RedirectRules | undefined
  /** Where errors stand in the upstream's own 4xx; undefined: in envelopes only. */
  readonly errors: OwnErrors | 'problem' | undefined
  /** Statuses that stand for the upstream's own 4xx; undefined: none. */
  readonly errorStatus: ReadonlyMap<number, number> | undefined
}

export interface UpstreamRefusal {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer | PieceSource
}

/** Bytes of a refusal that are read. */
const LONGEST = 64 * 1024
/** Milliseconds for which the rest of a refusal that comes slowly is waited for. */
const PATIENCE = 5000

/** RFC 9457 appendix B. */
const PROBLEM: Readonly<Record<Format, OwnErrors>> = {
  json: problemErrors([]),
  xml: problemErrors(['problem']),
}

type Parsers = Readonly<Record<Format, (bytes: Buffer, contentType: string | undefined) => JsonValue>>

const ENVELOPE_PARSERS: Parsers = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes) => readXml(bytes, ENVELOPE_SCHEMA),
}

/** XML of any kind, by the names of its elements without prefixes. */
const ANY_XML: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: true,
  paths: { type: undefined, isArray: false, children: new Map() },
}

const OWN_PARSERS: Parsers = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes, contentType) => {
    const document = decodeXml(bytes, contentType)
    if (doctypeOf(document.text) === 'subset') throw new Fault('body_malformed')
    return readPlainXml(document, BODY_LIMITS, ANY_XML)
  },
}

export class Refusals {
  readonly #rules: RefusalRules
  readonly #clock: Clock
  readonly #errors: OwnErrors | undefined
  readonly #holdsAddress: HoldsAddress

  constructor(rules: RefusalRules, clock: Clock) {
    this.#rules = rules
    this.#clock = clock
    this.#errors = rules.errors === 'problem' ? PROBLEM[rules.format] : rules.errors
    this.#holdsAddress = compileHoldsAddress(rules.targets, rules.host, rules.redirects?.origins)
  }

  /**
   * What the client gets of a refusal (C8.4, C8.8): the upstream's own errors where its verdict lets them pass and they
   * can be read. A promise only where the rest of its body is waited for.
   * @param stopped why a redirect was not followed, for the log
   * @throws Fault that of the verdict, where there are none
   */
  answer(
    given: StatusVerdict,
    refusal: UpstreamRefusal,
    stopped?: string,
  ): BackendAnswer | Promise<BackendAnswer> {
    const { statusCode, headers, body } = refusal
    const replaced = this.#rules.errorStatus?.get(statusCode)
    const verdict = replaced === undefined ? given : verdictOfStatus(replaced)
    const fault = statusFault(verdict, { given: statusCode, replaced, stopped }, headers, this.#clock.now())
    const isRead = verdict.kind === 'errors' && this.#isReadable(refusal)
    const contentType = contentTypeOf(headers)
    if (Buffer.isBuffer(body)) return this.#answerWith(isRead ? body : undefined, contentType, fault)
    if (!isRead) {
      body.cancel()
      throw fault
    }
    return readSlow(body).then((bytes) => this.#answerWith(bytes, contentType, fault))
  }

  #isReadable({ headers, body }: UpstreamRefusal): boolean {
    // Envelopes are taken from whole bodies of any type.
    if (this.#errors === undefined) return Buffer.isBuffer(body)
    const { 'content-encoding': coding = 'identity', 'content-length': length } = headers
    return (
      String(coding).toLowerCase() === 'identity' &&
      isOfFormat(contentTypeOf(headers), this.#rules.format) &&
      !(Number(length) > LONGEST)
    )
  }

  #answerWith(bytes: Buffer | undefined, contentType: string | undefined, fault: Fault): BackendAnswer {
    const isEmpty = bytes === undefined || bytes.length === 0
    const errors = isEmpty ? undefined : this.#errorsIn(bytes, contentType, fault)
    if (errors === undefined) throw fault
    return {
      status: fault.status,
      headers: errorHeaders(fault),
      body: { kind: 'errors', errors: withoutAddresses(errors, this.#holdsAddress, fault.row.text) },
    }
  }

  #errorsIn(
    bytes: Buffer,
    contentType: string | undefined,
    { row }: Fault,
  ): readonly BackendError[] | undefined {
    const { format } = this.#rules
    try {
      return this.#errors === undefined
        ? errorsOf(ENVELOPE_PARSERS[format](bytes, contentType))
        : readOwnErrors(OWN_PARSERS[format](bytes, contentType), this.#errors, row)
    } catch {
      return undefined
    }
  }
}

const contentTypeOf = ({ 'content-type': type }: UpstreamRefusal['headers']): string | undefined =>
  type === undefined ? undefined : String(type)

/** The whole of a body that comes slowly; undefined if it is too long, breaks off, or does not end in time. */
async function readSlow(body: PieceSource): Promise<Buffer | undefined> {
  const stream = readableOf(body)
  const cancel = after(PATIENCE, () => stream.destroy())
  try {
    return await readBody(stream, LONGEST)
  } catch {
    return undefined
  } finally {
    cancel()
    stream.destroy()
  }
}

const errorHeaders = ({ facts }: Fault): Record<string, string> => ({
  ...(facts.retryAfter !== undefined && { 'retry-after': String(facts.retryAfter) }),
  ...(facts.allow && { allow: facts.allow.join(', ') }),
  ...(facts.contentRange !== undefined && { 'content-range': facts.contentRange }),
})

/** The code and text of a status, for what an upstream's error does not have. */
interface RowText {
  readonly wire: string
  readonly text: string
}

const MOST_ERRORS = 100

/** The errors in a document; undefined if there are none. */
function readOwnErrors(
  document: JsonValue,
  rules: OwnErrors,
  row: RowText,
): readonly BackendError[] | undefined {
  const errors = itemsOf(document, rules.list)
    .slice(0, MOST_ERRORS)
    .flatMap((item) => errorOf(item, rules, row))
  return errors.length === 0 ? undefined : errors
}

/** In XML a list of one item cannot be distinguished from the item. */
function itemsOf(document: JsonValue, list: JsonPointer | undefined): readonly JsonValue[] {
  if (list === undefined) return [document]
  const found = valueAt(document, list)
  if (found === undefined || found === null) return []
  return Array.isArray(found) ? found : [found]
}

function errorOf(item: JsonValue, rules: OwnErrors, row: RowText): readonly BackendError[] {
  const code = codeIn(item, rules)
  const message = messageIn(item, rules)
  if (code === undefined && message === undefined) return []
  return [{ code: code ?? row.wire, message: message ?? row.text }]
}

function codeIn(item: JsonValue, { code, codeOf }: OwnErrors): string | undefined {
  const value = code === undefined ? undefined : valueAt(item, code)
  if (value === undefined || value === null) return undefined
  const text = textOf(value)
  if (text === undefined) return UNUSABLE_CODE
  const own = codeOf === undefined ? text : codeOf(text)
  return own === undefined ? undefined : cleanCode(own)
}

function messageIn(item: JsonValue, { messages }: OwnErrors): string | undefined {
  for (const pointer of messages) {
    const value = valueAt(item, pointer)
    const text = value === undefined || value === null ? undefined : textOf(value)
    const clean = text === undefined ? undefined : cleanMessage(text)
    if (clean !== undefined) return clean
  }
  return undefined
}

/** The member that holds the text of an XML element with attributes. */
const XML_TEXT = '#text'

/** Numbers as they are written; of a list, as XML's repeated elements are, the first one. Undefined for what is no text. */
function textOf(value: JsonValue): string | undefined {
  if (Array.isArray(value)) return typeof value[0] === 'string' ? value[0] : undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number' || JSON.isRawJSON(value)) return literalOf(value)
  if (isJsonObject(value) && Object.hasOwn(value, XML_TEXT)) return textOf(value[XML_TEXT] ?? null)
  return undefined
}

/** What stands behind the last `/`, `#` or `:` of a problem's type. `about:blank` says no more than the status. */
function codeOfType(type: string): string | undefined {
  if (type === 'about:blank') return undefined
  return type.split(/[/#:]/).findLast((part) => part !== '')
}

/**
 * Problem details (RFC 9457 §3.1): the code is the last part of `type`, as in
 * `https://example.com/probs/out-of-credit`; the message is `detail`, which explains this occurrence, else `title`,
 * which names the kind.
 * @param root the name of XML's root element; none in JSON
 */
function problemErrors(root: readonly string[]): OwnErrors {
  return {
    list: undefined,
    code: [...root, 'type'],
    messages: [
      [...root, 'detail'],
      [...root, 'title'],
    ],
    codeOf: codeOfType,
  }
}

/** Code points of a message that reaches a client (C8.8). */
const LONGEST_MESSAGE = 500
/** UTF-16 code units that are enough for them, and for what is removed before a message is cut. */
const LOOKED_AT = 8 * LONGEST_MESSAGE

const CODE = /^[A-Za-z0-9_.-]{1,64}$/
const UNUSABLE_CODE = 'API_BAD_REQUEST'

/** Where words end, or a line. */
const BREAKS = /[\t-\r\x85\u2028\u2029]+/g
/** Characters that are no text, or change how it is shown: controls, half surrogate pairs, marks of direction. */
const NO_TEXT =
  /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\p{Bidi_Control}\u{FEFF}\u{FFF9}-\u{FFFB}\u{E0000}-\u{E007F}]/gu

/** One line of at most 500 code points without controls (C8.8). Undefined if nothing is left. */
function cleanMessage(text: string): string | undefined {
  const clean = text.slice(0, LOOKED_AT).replaceAll(BREAKS, ' ').replaceAll(NO_TEXT, '').trim()
  if (clean === '') return undefined
  return clean.length <= LONGEST_MESSAGE ? clean : Array.from(clean).slice(0, LONGEST_MESSAGE).join('')
}

/** A code of an upstream as a client may read it (C8.8). */
const cleanCode = (text: string): string => (CODE.test(text) ? text : UNUSABLE_CODE)

/** Replaces what holds an address of the upstream by the words of the table (C8.8). */
const withoutAddresses = (
  errors: readonly BackendError[],
  holdsAddress: HoldsAddress,
  text: string,
): readonly BackendError[] =>
  errors.map(({ code, message }) => ({
    code: holdsAddress(code) ? UNUSABLE_CODE : code,
    message: holdsAddress(message) ? text : message,
  }))
