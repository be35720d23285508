/**
 * Cuts a long YAML text into pieces that mean the same when each is read alone. Its library needs 50 times the memory of
 * what it reads at once.
 */

interface YamlPiece {
  /** A text of its own. One that continues a section begins with the section's key again. */
  readonly text: string
  /** How many lines of the whole text are before its first one. */
  readonly linesBefore: number
  /** Whether it continues the last section of the piece before. */
  readonly continues: boolean
}

/** A line that begins an entry of a map, as far as it is written plainly. */
const ENTRY = /^[A-Za-z0-9_"'/]/
/** The key of a section that is below it. */
const HEADER = /^[A-Za-z0-9_.-]+:[ ]*(?:#.*)?$/
/** Directives and marks of documents. */
const MARK = /^(?:%|---|\.\.\.)/
/** Anchors and aliases, which mean something across pieces; also what only looks like one. */
const ALIAS = /(?:^|[\s[{,:-])[&*][^\s&*]/m

interface Line {
  readonly text: string
  /** Where it begins in the whole text. */
  readonly at: number
  /** Spaces before it; -1 where it is empty, or a comment. */
  readonly indent: number
}

function linesOf(source: string): readonly Line[] {
  let next = 0
  return source.split('\n').map((text) => {
    const at = next
    next += text.length + 1
    const indent = text.search(/[^ ]/)
    return { text, at, indent: indent < 0 || text[indent] === '#' || text[indent] === '\r' ? -1 : indent }
  })
}

/** Where the entries of a section begin, below its key; undefined if they are not all of one kind, or written otherwise. */
function entriesIn(lines: readonly Line[], begin: number, end: number): readonly number[] | undefined {
  if (!HEADER.test(lines[begin]?.text.trimEnd() ?? '')) return undefined
  const below = lines.slice(begin + 1, end)
  const first = below.find(({ indent }) => indent >= 0)
  if (first === undefined) return undefined
  const isList = first.text.slice(first.indent).startsWith('- ')
  const begins: number[] = []
  for (const [at, { text, indent }] of below.entries()) {
    if (indent < 0 || indent > first.indent) continue
    const own = text.slice(indent)
    if (indent < first.indent || own.startsWith('- ') !== isList || !(isList || ENTRY.test(own)))
      return undefined
    begins.push(begin + 1 + at)
  }
  return begins
}

/**
 * @param size letters of a piece, about
 * @returns undefined for a text that is short, or not written in a way that can be cut
 */
export function yamlPieces(source: string, size: number): readonly YamlPiece[] | undefined {
  if (source.length < 2 * size || ALIAS.test(source)) return undefined
  const lines = linesOf(source)
  const sections: number[] = []
  for (const [at, { text, indent }] of lines.entries()) {
    if (MARK.test(text)) return undefined
    if (indent === 0 && !text.startsWith('- ')) {
      if (!ENTRY.test(text)) return undefined
      sections.push(at)
    }
  }
  const pieces: YamlPiece[] = []
  const offsetOf = (line: number): number => lines[line]?.at ?? source.length
  const add = (begin: number, end: number, header?: string): void => {
    const own = source.slice(offsetOf(begin), offsetOf(end))
    pieces.push(
      header === undefined
        ? { text: own, linesBefore: begin, continues: false }
        : { text: `${header}\n${own}`, linesBefore: begin - 1, continues: true },
    )
  }
  for (const [index, begin] of sections.entries()) {
    const end = sections[index + 1] ?? lines.length
    const header = lines[begin]?.text
    let from = begin
    const entries = offsetOf(end) - offsetOf(begin) > size ? entriesIn(lines, begin, end) : undefined
    for (const entry of entries ?? [])
      if (offsetOf(entry) - offsetOf(from) > size) {
        add(from, entry, from === begin ? undefined : header)
        from = entry
      }
    add(from, end, from === begin ? undefined : header)
  }
  return pieces
}
