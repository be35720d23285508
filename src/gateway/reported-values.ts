/** What an upstream tells the audit trail of a change by its header X-Postern-Audit (C12.2.2). */
import { isJsonObject, type JsonObject, parseJson, plainText } from '../http/json.ts'

/** Bytes of the JSON. */
const MOST_BYTES = 4096
const BASE64URL = /^[A-Za-z0-9_-]+={0,2}$/
/** Objects within each other, and values of any kind. */
const LIMITS = { depth: 8, nodes: 200 }
/** Names of objects that become part of a value's name; what is deeper is kept as JSON. */
const MOST_LEVELS = 3
const MOST_VALUES = 64

/**
 * The values by their names, `before.Status`. A text is as it is, all else is JSON.
 * @param header base64url of a JSON object
 * @returns undefined if it cannot be read
 */
export function readReportedValues(
  header: string | readonly string[],
): ReadonlyMap<string, string> | undefined {
  if (typeof header !== 'string' || header.length > MOST_BYTES * 1.4 || !BASE64URL.test(header))
    return undefined
  const bytes = Buffer.from(header, 'base64url')
  if (bytes.length > MOST_BYTES) return undefined
  const reported = parsed(bytes)
  const values = new Map<string, string>()
  if (reported !== undefined) addAll(values, reported, '', 1)
  return reported === undefined || values.size > MOST_VALUES ? undefined : values
}

function parsed(bytes: Buffer): JsonObject | undefined {
  try {
    const value = parseJson(bytes, LIMITS)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function addAll(values: Map<string, string>, from: JsonObject, above: string, level: number): void {
  for (const [name, value] of Object.entries(from)) {
    const whole = above + name
    if (level < MOST_LEVELS && isJsonObject(value)) addAll(values, value, `${whole}.`, level + 1)
    else values.set(whole, plainText(value))
  }
}
