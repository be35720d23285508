import type { ErrorPlaces, FoundError } from '../../../../base/contracts/calls/backend.ts'
import {
  isJsonObject,
  type JsonPointer,
  type JsonValue,
  literalOf,
  parseJson,
  parseNumberLiteral,
  valueAt,
} from '../../../../base/http/body/json.ts'
import { decodeXml, doctypeOf } from '../../../../base/http/xml/decode.ts'
import {
  ANSWER_LIMITS,
  AS_WRITTEN,
  BODY_LIMITS,
  type PlainXmlRules,
} from '../../../../base/http/xml/plain-document.ts'
import { readPlainXml } from '../../../../base/http/xml/plain-read.ts'
import { Fault } from '../../../../base/kernel/faults.ts'

type Format = 'json' | 'xml'

/** Where errors are in an answer, and what they become (C8.8). */
export interface OwnErrors extends ErrorPlaces {
  /** The part of the text that is the code; undefined: all of it. */
  readonly codeOf: ((text: string) => string | undefined) | undefined
  /** The statuses that codes stand for. */
  readonly statuses: ReadonlyMap<string, number>
}

/** Where a 200 or 500 tells of errors (C8.8), as plain data; undefined: nowhere. */
export function searchedPlaces(errors: OwnErrors | 'problem' | undefined): ErrorPlaces | undefined {
  if (errors === undefined || errors === 'problem' || errors.present === undefined) return undefined
  const { present, list, code, messages } = errors
  return { present, list, code, messages }
}

/** XML of any kind, by the names of its elements without prefixes. */
const ANY_XML: PlainXmlRules = { ...AS_WRITTEN, stripNamespaces: true }

/** Limits for answers that are errors by their status, and for answers that must be searched, which may be large. */
const LIMITS = {
  refusal: { json: undefined, xml: BODY_LIMITS },
  answer: { json: { depth: ANSWER_LIMITS.depth, nodes: ANSWER_LIMITS.nodes }, xml: ANSWER_LIMITS },
}

/** @throws Fault where the bytes do not parse */
export function parseAny(
  bytes: Uint8Array,
  format: Format,
  contentType: string | undefined,
  kind: keyof typeof LIMITS,
): JsonValue {
  const limits = LIMITS[kind]
  if (format === 'json') return parseJson(bytes, limits.json)
  const document = decodeXml(bytes, contentType)
  if (doctypeOf(document.text) === 'subset') throw new Fault('body_malformed')
  return readPlainXml(document, limits.xml, ANY_XML)
}

const MOST_ERRORS = 100

/** The errors in a document that have a code or a message. */
export function errorsIn(document: JsonValue, places: ErrorPlaces, format: Format): readonly FoundError[] {
  const find = FINDERS[format]
  return itemsOf(find(document, places.list ?? []), places.list)
    .slice(0, MOST_ERRORS)
    .flatMap((item) => {
      const code = codeIn(item, places, find)
      const message = messageIn(item, places, find)
      return code === undefined && message === undefined ? [] : [{ code, message }]
    })
}

/** The errors of a 200 or 500; undefined if it is no error because `present` leads to nothing (C8.8). */
export function errorsWherePresent(
  document: JsonValue,
  places: ErrorPlaces,
  format: Format,
): readonly FoundError[] | undefined {
  if (places.present === undefined) return undefined
  const found = FINDERS[format](document, places.present)
  const isSomething = format === 'xml' ? isSomethingInXml(found) : isSomethingInJson(found)
  return isSomething ? errorsIn(document, places, format) : undefined
}

function isSomethingInJson(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === false || value === '') return false
  if (Array.isArray(value)) return value.length > 0
  return !isJsonObject(value) || Object.keys(value).length > 0
}

const NIL: ReadonlySet<JsonValue | undefined> = new Set(['true', '1'])

/** In XML all is text: an indented element has blanks, and a nil element (XSD) is null. */
function isSomethingInXml(value: JsonValue | undefined): boolean {
  if (typeof value === 'string') return !['', 'false'].includes(value.trim())
  if (isJsonObject(value) && NIL.has(value['@nil'])) return false
  return isSomethingInJson(value)
}

type Find = (value: JsonValue, pointer: JsonPointer) => JsonValue | undefined

/** In XML a list of one item cannot be distinguished from the item: a name is that of the first one, and 0 the only one. */
const FINDERS: Readonly<Record<Format, Find>> = {
  json: valueAt,
  xml: (value, pointer) => {
    let found: JsonValue | undefined = value
    for (const step of pointer) {
      if (found === undefined) return undefined
      const own = valueAt(found, [step])
      if (own !== undefined) found = own
      else if (Array.isArray(found)) found = valueAt(found, ['0', step])
      else if (step !== '0') return undefined
    }
    return found
  },
}

function itemsOf(found: JsonValue | undefined, list: JsonPointer | undefined): readonly JsonValue[] {
  if (found === undefined || (list !== undefined && found === null)) return []
  return list !== undefined && Array.isArray(found) ? found : [found]
}

/** How many UTF-16 code units of a code are looked at. */
const LONGEST_CODE = 1024

function codeIn(item: JsonValue, { code }: ErrorPlaces, find: Find): string | undefined {
  const value = code === undefined ? undefined : find(item, code)
  if (value === undefined || value === null) return undefined
  return textOf(value)?.slice(0, LONGEST_CODE) ?? UNUSABLE_CODE
}

function messageIn(item: JsonValue, { messages }: ErrorPlaces, find: Find): string | undefined {
  for (const pointer of messages) {
    const value = find(item, pointer)
    const text = value === undefined || value === null ? undefined : textOf(value)
    const clean = text === undefined ? undefined : cleanMessage(text)
    if (clean !== undefined) return clean
  }
  return undefined
}

/** The member that holds the text of an XML element with attributes. */
const XML_TEXT = '#text'

/**
 * The text of a value: a number as it is written; of a list, such as XML's repeated elements, the first one. Undefined if it
 * is no text.
 */
function textOf(value: JsonValue): string | undefined {
  if (Array.isArray(value)) return typeof value[0] === 'string' ? value[0] : undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number' || JSON.isRawJSON(value)) return literalOf(value)
  if (isJsonObject(value) && Object.hasOwn(value, XML_TEXT)) return textOf(value[XML_TEXT] ?? null)
  return undefined
}

/** The marks that end the name of a family before a code: `soap:Client`, `com.example#NotFound`. */
const MARKS = [':', '.', '#', '/']

/** The code of `statuses` that an upstream's code stands for: the whole code, or the part behind its last mark (C8.8). */
export function matchingCode(text: string, statuses: ReadonlyMap<string, number>): string | undefined {
  const code = text.trim()
  if (statuses.has(code)) return code
  // The part behind the point of a number is no code.
  if (parseNumberLiteral(code) !== undefined) return undefined
  const last = code.slice(Math.max(...MARKS.map((mark) => code.lastIndexOf(mark))) + 1)
  return statuses.has(last) ? last : undefined
}

/** The part behind the last `/`, `#` or `:` of a problem's type. `about:blank` says no more than the status. */
function codeOfType(type: string): string | undefined {
  if (type === 'about:blank') return undefined
  return type.split(/[/#:]/).findLast((part) => part !== '')
}

const NO_STATUSES: ReadonlyMap<string, number> = new Map()

/**
 * Problem details (RFC 9457 §3.1): the code is the last part of `type`, as in `https://example.com/probs/out-of-credit`; the
 * message is `detail`, which explains this occurrence, or, without it, `title`, which names the kind.
 * @param root the name of XML's root element; none in JSON
 */
const problemErrors = (root: readonly string[]): OwnErrors => ({
  present: undefined,
  list: undefined,
  code: [...root, 'type'],
  messages: [
    [...root, 'detail'],
    [...root, 'title'],
  ],
  codeOf: codeOfType,
  statuses: NO_STATUSES,
})

/** Problem details in JSON and in XML (RFC 9457 appendix B). */
export const PROBLEM: Readonly<Record<Format, OwnErrors>> = {
  json: problemErrors([]),
  xml: problemErrors(['problem']),
}

/** The most code points of a message that reaches a client (C8.8). */
const LONGEST_MESSAGE = 500
/** How many UTF-16 code units are looked at: enough for that message, and for what is removed before it is cut. */
const LOOKED_AT = 8 * LONGEST_MESSAGE

const CODE = /^[A-Za-z0-9_.-]{1,64}$/
export const UNUSABLE_CODE = 'API_BAD_REQUEST'

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
export const cleanCode = (text: string): string => (CODE.test(text) ? text : UNUSABLE_CODE)
