import type { BackendError } from '../../contracts/backend.ts'

/** Code points of a message that a client is told (C8.8). */
const LONGEST_MESSAGE = 500
/** UTF-16 code units that hold as many in any case, and those that are removed before a message is cut. */
const LOOKED_AT = 8 * LONGEST_MESSAGE

const CODE = /^[A-Za-z0-9_.-]{1,64}$/
/** What becomes of a code that is not of this form. */
export const UNUSABLE_CODE = 'API_BAD_REQUEST'

/** Where words end, or a line. */
const BREAKS = /[\t-\r\x85\u2028\u2029]+/g
/**
 * What is no text, or shows text otherwise than it is written: control characters, half surrogate pairs, what Unicode
 * never assigns, marks that change the direction of text, tags that nobody sees.
 */
const NO_TEXT =
  /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\p{Bidi_Control}\u{FEFF}\u{FFF9}-\u{FFFB}\u{E0000}-\u{E007F}]/gu

/**
 * A message of an upstream as a client may read it (C8.8): one line without control characters, of at most 500 code
 * points. Undefined if nothing is left of it.
 */
export function cleanMessage(text: string): string | undefined {
  const clean = text.slice(0, LOOKED_AT).replaceAll(BREAKS, ' ').replaceAll(NO_TEXT, '').trim()
  if (clean === '') return undefined
  return clean.length <= LONGEST_MESSAGE ? clean : Array.from(clean).slice(0, LONGEST_MESSAGE).join('')
}

/** A code of an upstream as a client may read it (C8.8). */
export const cleanCode = (text: string): string => (CODE.test(text) ? text : UNUSABLE_CODE)

/** Whether a text tells an address of an upstream. */
export type TellsAddress = (text: string) => boolean

/** The same errors, without what tells an address of the upstream: the table's words stand in its place (C8.8). */
export const withoutAddresses = (
  errors: readonly BackendError[],
  tellsAddress: TellsAddress,
  text: string,
): readonly BackendError[] =>
  errors.map(({ code, message }) => ({
    code: tellsAddress(code) ? UNUSABLE_CODE : code,
    message: tellsAddress(message) ? text : message,
  }))
