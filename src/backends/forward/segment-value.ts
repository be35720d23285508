/** Values of a call as they stand in a request to an upstream (C8.7): none that C3.4 would refuse as a segment. */
import { canonicalSegment } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'
import { unsendable } from './template.ts'

/** Unreserved characters (RFC 3986 §2.3), and no dot segment: nobody reads these in two ways. */
const PLAIN = /^(?!\.{1,2}$)[A-Za-z0-9._~-]+$/

/**
 * A value as one percent-encoded segment: UTF-8, unreserved characters as they are, all others encoded, so that decoding
 * it once gives the value.
 * @throws Fault `unsendable_value`
 */
export const encodeSegment = (value: string, name: string): string =>
  PLAIN.test(value) ? value : checkSegment(percentEncoded(value, name), name)

/**
 * A segment that a value is part of. Judged as a whole, because text beside a value may give it another meaning.
 * @param name of the placeholder to blame
 * @throws Fault `unsendable_value`
 */
export function checkSegment(segment: string, name: string): string {
  if (PLAIN.test(segment)) return segment
  try {
    if (canonicalSegment(segment) === segment) return segment
  } catch (thrown) {
    throw unsendable(name, thrown instanceof Fault ? (thrown.facts.say ?? thrown.code) : String(thrown))
  }
  throw unsendable(name, 'it has another canonical form')
}

/** Whether a value stands for itself wherever it is put. */
export const isPlain = (value: string): boolean => PLAIN.test(value)

/** Throws Fault `unsendable_value` for a value that C3.4 would refuse as a segment. */
export const checkValue = (value: string, name: string): void => void encodeSegment(value, name)

/** Whether a text would be another one if somebody decoded it: `%41`, and IIS's `%u0041`. */
export const holdsEscape = (text: string): boolean => /%(?:[0-9A-Fa-f]{2}|[Uu][0-9A-Fa-f]{4})/.test(text)

/** What encodeURIComponent leaves, though it is reserved (RFC 3986 §2.2). */
const LEFT = /[!'()*]/g

/** A text, percent-encoded: only unreserved characters stay. @throws URIError for half a surrogate pair */
export const percentEncode = (text: string): string =>
  PLAIN.test(text)
    ? text
    : encodeURIComponent(text).replace(
        LEFT,
        (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
      )

function percentEncoded(value: string, name: string): string {
  try {
    return percentEncode(value)
  } catch {
    throw unsendable(name, 'it is no Unicode text')
  }
}
