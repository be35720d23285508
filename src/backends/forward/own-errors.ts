import type { BackendError } from '../../contracts/backend.ts'
import { isJsonObject, type JsonPointer, type JsonValue, literalOf, valueAt } from '../../http/json.ts'
import { cleanCode, cleanMessage, UNUSABLE_CODE } from './error-text.ts'

/** Where an upstream's own 4xx tells its errors (C8.8). */
export interface OwnErrors {
  /** Where several errors are listed; the others then start at each item. Undefined: there is one. */
  readonly list: JsonPointer | undefined
  readonly code: JsonPointer | undefined
  /** Of several the first one that leads to a text. */
  readonly messages: readonly JsonPointer[]
  /** What of the text is the code; undefined: all of it. */
  readonly codeOf: ((text: string) => string | undefined) | undefined
}

/** What is told of an error where the upstream tells nothing: the row's of its status. */
export interface RowText {
  readonly wire: string
  readonly text: string
}

/** Errors of an answer that are told. */
const MOST_ERRORS = 100

/** The errors that a document tells; undefined if it tells none. */
export function readOwnErrors(
  document: JsonValue,
  rules: OwnErrors,
  row: RowText,
): readonly BackendError[] | undefined {
  const errors = itemsOf(document, rules.list)
    .slice(0, MOST_ERRORS)
    .flatMap((item) => errorOf(item, rules, row))
  return errors.length === 0 ? undefined : errors
}

/** In XML one item is no list, and there is no telling. */
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
  const told = codeOf === undefined ? text : codeOf(text)
  return told === undefined ? undefined : cleanCode(told)
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
 * Problem details (RFC 9457 §3.1): the code is the last part of `type`, as in `https://example.com/probs/out-of-credit`;
 * the message is `detail`, which explains this occurrence, else `title`, which tells the kind.
 * @param root the name of XML's root element; none in JSON
 */
export const problemErrors = (root: readonly string[]): OwnErrors => ({
  list: undefined,
  code: [...root, 'type'],
  messages: [
    [...root, 'detail'],
    [...root, 'title'],
  ],
  codeOf: codeOfType,
})
