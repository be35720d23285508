/** An upstream's own XML (C7.7): what becomes of its answers, and of the bodies that it is sent. */
import type { Format } from '../../http/accept.ts'
import { spliceEnvelope, successEnvelope, wrapPayload } from '../../http/envelope.ts'
import type { JsonObject, JsonPointer, JsonValue } from '../../http/json.ts'
import { decodeBodyXml, decodeXml } from '../../http/plain-xml/decode.ts'
import { checkDocument } from '../../http/plain-xml/document.ts'
import { partText } from '../../http/plain-xml/part.ts'
import { doctypeOf } from '../../http/plain-xml/prolog.ts'
import { ANSWER_LIMITS, BODY_LIMITS, type PlainXmlRules } from '../../http/plain-xml/rules.ts'
import { rootText } from '../../http/plain-xml/splice.ts'
import { readPlainXml } from '../../http/plain-xml/to-json.ts'
import type { BodyValidator } from '../../http/validate-body.ts'
import { Fault, toFault } from '../../kernel/faults.ts'
import { nothingAt, partAt } from './part.ts'

const refused = (say: string): Fault => new Fault('body_malformed', { say })

/**
 * The envelope of an upstream's document: in XML with its root as it is, in JSON by the mapping.
 * @param data the part that is the data; undefined: all of it
 * @throws Fault `upstream_broken` where there is no such part; `answer_unmappable`; `answer_too_large`; `body_malformed`
 *   for what is not well-formed or cannot be read
 */
export function plainEnvelope(
  bytes: Uint8Array,
  contentType: string | undefined,
  rules: PlainXmlRules,
  to: Format,
  data?: JsonPointer,
): Buffer {
  if (bytes.length === 0) return successEnvelope(to, {})
  const document = decodeXml(bytes, contentType)
  if (doctypeOf(document.text) === 'subset') throw refused('XML: a DOCTYPE has an internal subset')
  if (to === 'json') {
    const value = readPlainXml(document, ANSWER_LIMITS, rules)
    return successEnvelope('json', data === undefined ? value : wrapPayload(partAt(value, data)))
  }
  if (data === undefined || data.length === 0)
    return spliceEnvelope(rootText(document.text, checkDocument(document, ANSWER_LIMITS)))
  const part = partText(document, ANSWER_LIMITS, data, rules)
  if (part === undefined) throw nothingAt(data)
  return spliceEnvelope(part)
}

/**
 * Checks a client's document, which then goes on byte for byte.
 * @param validate the check of the action's schema, for the value of the document
 * @throws Fault `body_malformed`, `unsupported_media_type`; what `validate` throws
 */
export function checkPlainBody(
  bytes: Uint8Array,
  rules: PlainXmlRules,
  validate: BodyValidator | undefined,
): void {
  const document = decodePlainBody(bytes)
  if (validate === undefined) checkDocument(document, BODY_LIMITS)
  else validate(valueOf(readMapped(document, rules), rules))
}

/** The value of a client's document. @throws Fault `body_malformed`, `unsupported_media_type` */
export const plainBodyValue = (bytes: Uint8Array, rules: PlainXmlRules): JsonValue =>
  valueOf(readMapped(decodePlainBody(bytes), rules), rules)

function decodePlainBody(bytes: Uint8Array): ReturnType<typeof decodeBodyXml> {
  const document = decodeBodyXml(bytes)
  if (doctypeOf(document.text) !== 'none') throw refused('XML: a document type declaration is not allowed')
  return document
}

function readMapped(document: Parameters<typeof readPlainXml>[0], rules: PlainXmlRules): JsonObject {
  try {
    return readPlainXml(document, BODY_LIMITS, rules)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    if (code !== 'answer_unmappable') throw thrown
    throw new Fault('body_malformed', { say: facts.detail ?? '', quotes: true })
  }
}

/** What a JSON body of the same meaning holds: with a configured root its content, without the configured attributes. */
function valueOf(document: JsonObject, { root, attributes }: PlainXmlRules): JsonValue {
  if (root === undefined) return document
  const [content = ''] = Object.values(document)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return content
  const own = Object.entries<JsonValue>(content as JsonObject).filter(
    ([name, value]) => !(name.startsWith('@') && attributes[name.slice(1)] === value),
  )
  const [first] = own
  if (own.length === 1 && first?.[0] === '#text') return first[1]
  return Object.setPrototypeOf(Object.fromEntries(own), null) as JsonObject
}
