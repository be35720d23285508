/** `subset`: a document type declaration with an internal subset, which may declare entities and default attributes. */
export type Doctype = 'none' | 'plain' | 'subset'

/** What stands before the root, and how it ends. */
const SKIPPED: readonly (readonly [string, string])[] = [
  ['<!--', '-->'],
  ['<?', '?>'],
]
const BLANKS = /[\t\n\r ]*/y

/**
 * The document type declaration of a document (XML 1.0 §2.8). Looked for before the document is parsed: saxes tells of
 * one when it has read all of it, and does not tell its parts apart. Right for what saxes then accepts.
 */
export function doctypeOf(text: string): Doctype {
  let at = 0
  for (;;) {
    BLANKS.lastIndex = at
    BLANKS.test(text)
    at = BLANKS.lastIndex
    const skipped = SKIPPED.find(([start]) => text.startsWith(start, at))
    if (skipped === undefined) break
    const [start, end] = skipped
    const found = text.indexOf(end, at + start.length)
    if (found < 0) return 'none'
    at = found + end.length
  }
  return text.startsWith('<!DOCTYPE', at) ? kindOf(text, at) : 'none'
}

/** Whether a `[` comes before the declaration's end. Its system and public identifiers are quoted. */
function kindOf(text: string, start: number): Doctype {
  let quote = ''
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at)
    if (quote !== '') {
      if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '[') return 'subset'
    else if (character === '>') return 'plain'
  }
  return 'subset'
}
