import type { RawNumber } from '../../http/json-value.ts'
import { Fault } from '../../kernel/faults.ts'

/** A module's code is trusted, but its mistakes must not take the process with them: a circle ends here. */
export const MOST_LEVELS = 200
export const MOST_VALUES = 1_000_000
/** Of one object: listing the names of 100,000 takes 10 ms, which cannot be interrupted, and of 400,000 takes 64. */
const MOST_MEMBERS = 100_000
const TOLD_LENGTH = 200

/** What a module did wrong, for the log; the client gets a 500. */
export const broken = (detail: string, cause?: unknown): Fault =>
  new Fault('upstream_broken', { detail: `the module ${detail.slice(0, TOLD_LENGTH)}`, cause })

/** A value's place, put together only where it is told. */
export type Place = () => string

/**
 * What a module's value is as JSON, its members unread: `toJSON` is heeded, as JSON.stringify does. What that writes as
 * null or leaves out behind one's back (NaN, functions, maps) is refused.
 * @throws Fault upstream_broken, naming the place for the log
 */
export function jsonPartOf(
  given: unknown,
  place: Place,
): null | string | boolean | number | RawNumber | readonly unknown[] | Readonly<Record<string, unknown>> {
  let part = given
  for (let level = 0; hasToJson(part); level++) {
    if (level > MOST_LEVELS) throw broken(`answered a toJSON without end at ${place()}`)
    part = part.toJSON()
  }
  if (part === null || typeof part === 'string' || typeof part === 'boolean') return part
  if (typeof part === 'number') {
    if (Number.isFinite(part)) return part
    throw broken(`answered ${part} at ${place()}; JSON has no word for it`)
  }
  if (typeof part !== 'object') throw broken(`answered a ${typeof part} at ${place()}`)
  if (JSON.isRawJSON(part) || Array.isArray(part)) return part
  const prototype: unknown = Object.getPrototypeOf(part)
  if (prototype === null || prototype === Object.prototype) return part as Readonly<Record<string, unknown>>
  throw broken(`answered a ${part.constructor.name} at ${place()}; expected plain objects`)
}

const hasToJson = (given: unknown): given is { readonly toJSON: () => unknown } =>
  typeof given === 'object' && given !== null && 'toJSON' in given && typeof given.toJSON === 'function'

/** Array.isArray does not tell readonly lists from the rest. */
export const isList = (part: object): part is readonly unknown[] => Array.isArray(part)

/**
 * The names of an object's members.
 * @throws Fault upstream_broken for more than 100,000
 */
export function memberNames(given: Readonly<Record<string, unknown>>): readonly string[] {
  const names = Object.keys(given)
  if (names.length > MOST_MEMBERS) throw broken(`answered an object of more than ${MOST_MEMBERS} members`)
  return names
}
