import type { JsonObject, JsonValue } from './json-value.ts'

/** The names and indexes that lead to a part of a value (RFC 6901 §3), unescaped. None: the whole value. */
export type JsonPointer = readonly string[]

/** RFC 6901 §3, for the schema of the configuration. */
export const POINTER_PATTERN = '^(/([^~/]|~[01])*)*$'

/** @param text a pointer as RFC 6901 writes it: it matches `POINTER_PATTERN` */
export const parseJsonPointer = (text: string): JsonPointer =>
  text
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

/** As RFC 6901 writes it. */
export const pointerText = (pointer: JsonPointer): string =>
  pointer.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

const INDEX = /^(?:0|[1-9][0-9]{0,9})$/

/** The part that a pointer leads to (RFC 6901 §4); undefined if it leads nowhere. */
export function valueAt(value: JsonValue, pointer: JsonPointer): JsonValue | undefined {
  let found: JsonValue | undefined = value
  for (const step of pointer) {
    found = memberOf(found, step)
    if (found === undefined) return undefined
  }
  return found
}

function memberOf(value: JsonValue, step: string): JsonValue | undefined {
  if (Array.isArray(value)) return INDEX.test(step) ? value[Number(step)] : undefined
  return isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
}

export const isJsonObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
