import { type JsonPointer, type JsonValue, pointerText, valueAt } from '../../http/json.ts'
import { Fault } from '../../kernel/faults.ts'

/** The fault of an answer without the part that is the data: empty data would hide that the upstream has changed. */
export const nothingAt = (pointer: JsonPointer): Fault =>
  new Fault('upstream_broken', { detail: `the upstream's answer has nothing at ${pointerText(pointer)}` })

/** The part of an upstream's answer that is the data (C8.8). @throws Fault `upstream_broken` */
export function partAt(value: JsonValue, pointer: JsonPointer): JsonValue {
  const part = valueAt(value, pointer)
  if (part !== undefined) return part
  throw nothingAt(pointer)
}
