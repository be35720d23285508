import { Buffer } from 'node:buffer'
import { NotJson } from '../body/json-check.ts'
import { answerJson, type JsonObject, type JsonValue } from '../body/json.ts'
import type { ItemNames } from './key-sequences.ts'
import { DECLARATION, escapeText } from './syntax.ts'
import { type Layout, unconvertible } from './writer-rules.ts'
import { xmlOfJson } from './xml-writer.ts'

/** One failure, as an envelope shows it (C2.1). */
export interface EnvelopeError {
  readonly code: string
  readonly message: string
}

const NO_NAMES: ItemNames = {}
/** So many objects and arrays may be within each other. A value is in memory already, so that it has no other limit. */
const LIMITS = { depth: 256, nodes: Infinity, most: Infinity }

/**
 * The XML document of a value (C7.5), with the XML declaration, as UTF-8. `readXml` is its inverse. It says what JSON says of
 * the value: NaN is null, and a `toJSON` counts.
 * @throws Fault `answer_unconvertible` for what JSON or XML 1.0 cannot hold, and for nesting deeper than 256
 */
export const writeXml = (value: JsonValue, root = 'ApiResponse', items: ItemNames = NO_NAMES): Buffer =>
  writeValue(value, { kind: 'document', root }, items)

/** The XML envelope of a success (C2.2). Throws as `writeXml`. */
export const writeXmlEnvelope = (data: JsonObject, items: ItemNames = NO_NAMES): Buffer =>
  writeValue(data, { kind: 'payload' }, items)

function writeValue(value: JsonValue, layout: Layout, items: ItemNames): Buffer {
  try {
    return xmlOfJson(Buffer.from(answerJson(value)), { ...LIMITS, layout, items })
  } catch (thrown) {
    throw thrown instanceof NotJson ? unconvertible(thrown.message) : thrown
  }
}

/** The XML envelope of a failure (C2.2), of texts that XML can hold. Its own elements have no marks. */
export function writeXmlErrors(errors: readonly EnvelopeError[]): string {
  const listed = errors.map(({ code, message }) =>
    element('Error', element('Code', escapeText(code)) + element('Message', escapeText(message))),
  )
  return `${DECLARATION}<ApiResponse>${element('Errors', listed.join(''))}<Data/></ApiResponse>`
}

const element = (name: string, content: string): string =>
  content === '' ? `<${name}/>` : `<${name}>${content}</${name}>`
