/** Characters that XML 1.0 §2.2 excludes, lone surrogates among them (with `u`, a pair is one character). */
const UNFIT = /[\0-\x08\x0B\x0C\x0E-\x1F\u{D800}-\u{DFFF}\u{FFFE}\u{FFFF}]/u
const ALL_UNFIT = new RegExp(UNFIT, 'gu')
/** `>` too, since `]]>` may not stand in text; CR, since parsers turn a bare one into a line feed (XML 1.0 §2.11). */
const SPECIAL = /[&<>\r]/
const ALL_SPECIAL = /[&<>\r]/g
const REFERENCES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\r': '&#13;',
}

/** Whether XML 1.0 can hold a text at all: there is no reference for NUL, U+FFFE or half a surrogate pair. */
export const isXmlText = (text: string): boolean => !UNFIT.test(text)

/** A text with U+FFFD for what XML cannot hold: for messages, which must always be said. */
export const toXmlText = (text: string): string => text.replace(ALL_UNFIT, '\u{FFFD}')

/** Character data that every XML parser reads back as this text. */
export const escapeText = (text: string): string =>
  SPECIAL.test(text) ? text.replace(ALL_SPECIAL, (character) => REFERENCES[character] ?? character) : text
