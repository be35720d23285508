/** Examples as people read them: with line ends and indents, which the service leaves out. */
import { successEnvelope } from '../../http/envelope.ts'
import type { JsonObject, JsonValue } from '../../http/json.ts'
import { writeXml, type ItemNames } from '../../http/xml-write.ts'

export const prettyJson = (json: Buffer | string): string => JSON.stringify(JSON.parse(String(json)), null, 2)

const TAG = /<[^<>]*>|[^<]+/g

/**
 * Our own XML with each element on a line of its own; elements that hold only text stay on one line. White space
 * between elements means nothing (C7.5).
 */
export function prettyXml(xml: Buffer | string): string {
  const lines: string[] = []
  let depth = 0
  let open = false
  for (const [piece] of String(xml).matchAll(TAG)) {
    const closes = piece.startsWith('</')
    if (closes) depth -= 1
    // Text belongs to the element before it, and so does the end of an element that holds text or nothing.
    if (!piece.startsWith('<') || (closes && open)) lines.push((lines.pop() ?? '') + piece)
    else lines.push('  '.repeat(depth) + piece)
    open = !closes && !/^<\?|\/>$/.test(piece)
    if (open && piece.startsWith('<')) depth += 1
  }
  return lines.join('\n')
}

/** Undefined for a value that XML cannot hold. */
function unlessUnfit(write: () => Buffer | string): string | undefined {
  try {
    return prettyXml(write())
  } catch {
    return undefined
  }
}

/** An answer with this `Data` (C2.1). */
export const answerInJson = (data: JsonValue): string =>
  prettyJson(successEnvelope('json', data as JsonObject))

/** The same in XML (C2.2); undefined if XML cannot hold it. */
export const answerInXml = (data: JsonValue, items: ItemNames): string | undefined =>
  unlessUnfit(() => successEnvelope('xml', data as JsonObject, items))

export const bodyInJson = (body: JsonValue): string => JSON.stringify(body, null, 2)

/** The root may have any name (C7.5). */
export const bodyInXml = (body: JsonValue, items: ItemNames): string | undefined =>
  unlessUnfit(() => writeXml(body, 'Request', items))
