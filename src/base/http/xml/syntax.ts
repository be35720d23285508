export const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

/** The namespace of `xsi:nil` (XML Schema 1.0 part 1, §2.6). */
export const XSI = 'http://www.w3.org/2001/XMLSchema-instance'

/**
 * JSON keys as XML element names (C7.5). Characters that a name cannot hold are written `_xHHHH_`, one per UTF-16 code unit; the
 * underscore of a text that already looks so is written `_x005F_`; the empty key is `_x_`. A colon is escaped too,
 * because a prefixed element would mean a namespace.
 */
const START =
  'A-Za-z_\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\\u{37F}-\\u{1FFF}\\u{200C}\\u{200D}' +
  '\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}\\u{3001}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}'
const REST = `${START}\\-.0-9\\u{B7}\\u{300}-\\u{36F}\\u{203F}\\u{2040}`

/** Nearly every key there is: answered without the long pattern. */
const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/
const NAME = `[${START}][${REST}]*`
const QNAME = new RegExp(`^(?:${NAME}:)?${NAME}$`, 'u')

/** Whether a text is a name with at most one prefix (Namespaces in XML 1.0 §4). */
export const isQName = (text: string): boolean => PLAIN.test(text) || QNAME.test(text)

/**
 * What has to be escaped: an underscore that reading would take for the start of an escape (the sixth character after
 * it is an underscore, or becomes one by being escaped), a character that no name holds, one that none starts with.
 */
const UNFIT = new RegExp(`_(?=x[0-9A-Fa-f]{4}(?:_|[^${REST}]))|[^${REST}]|^[^${START}]`, 'gu')
const ESCAPE = /_x([0-9A-Fa-f]{4})_/g
const EMPTY = '_x_'

const escapeUnits = (text: string): string => {
  let escaped = ''
  for (let at = 0; at < text.length; at++)
    escaped += `_x${text.charCodeAt(at).toString(16).toUpperCase().padStart(4, '0')}_`
  return escaped
}

/** The element name of a key: always an NCName (XML 1.0 fifth edition), different for different keys. */
export function escapeName(key: string): string {
  if (PLAIN.test(key) && !isEscaped(key)) return key
  if (key === '') return EMPTY
  return key === EMPTY ? '_x005F_x_' : key.replace(UNFIT, escapeUnits)
}

/** Whether a name may spell another key than it is. */
export const isEscaped = (name: string): boolean => name.includes('_x')

/** The key of an element name: the inverse of `escapeName`. Ill-formed (`isWellFormed`) only if the name says so. */
export function unescapeName(name: string): string {
  if (!isEscaped(name)) return name
  if (name === EMPTY) return ''
  return name.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** Characters that XML 1.0 §2.2 excludes, lone surrogates among them (with `u`, a pair is one character). */
const UNFIT_CHARACTERS = /[\0-\x08\x0B\x0C\x0E-\x1F\u{D800}-\u{DFFF}\u{FFFE}\u{FFFF}]/u
const ALL_UNFIT = new RegExp(UNFIT_CHARACTERS, 'gu')
/** `>` too, because `]]>` may not be in text; CR, because parsers turn a bare one into a line feed (XML 1.0 §2.11). */
const SPECIAL = /[&<>\r]/
const ALL_SPECIAL = /[&<>\r]/g
const REFERENCES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\r': '&#13;',
}

/** Whether XML 1.0 can hold a text at all: there is no reference for NUL, U+FFFE or half a surrogate pair. */
export const isXmlText = (text: string): boolean => !UNFIT_CHARACTERS.test(text)

/** A text with U+FFFD for what XML cannot hold: for messages, which must always be said. */
export const toXmlText = (text: string): string => text.replace(ALL_UNFIT, '\u{FFFD}')

/** Character data that every XML parser reads back as this text. */
export const escapeText = (text: string): string =>
  SPECIAL.test(text) ? text.replace(ALL_SPECIAL, (character) => REFERENCES[character] ?? character) : text

/** Whether a text may hold more references than `limit`: every `&` counts. */
export function hasMoreReferences(text: string, limit: number): boolean {
  let at = -1
  for (let count = 0; count <= limit; count++) {
    at = text.indexOf('&', at + 1)
    if (at < 0) return false
  }
  return true
}

const IN_ATTRIBUTE: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/** An attribute's value between double quotes, which every parser reads back as this text. */
export const escapeAttribute = (value: string): string =>
  value.replaceAll(/[&<>"\t\n\r]/g, (character) => IN_ATTRIBUTE[character] ?? character)

const BLANK = /^[\t\n\r ]*$/

/** White space alone, or nothing (XML 1.0 §2.3). */
export const isBlank = (text: string): boolean => text === '' || BLANK.test(text)
