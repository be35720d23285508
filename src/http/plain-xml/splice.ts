import type { RootExtent } from './document.ts'

/**
 * What may be left out of a well-formed root, and CDATA, which may hold what looks like it. No other `<` of a well-formed
 * document is followed by `!` or `?`.
 */
const MARKUP = /<!--[^]*?-->|<\?[^]*?\?>|<!\[CDATA\[[^]*?\]\]>/g
const CDATA = '<![CDATA['
const EMPTY_CDATA = `${CDATA}]]>`

/**
 * The root of a well-formed document, without comments and processing instructions; all else stays as it is written.
 * Text on both sides of what is left out must not become one piece of markup: `]]<!---->>` would be `]]>`, which no text
 * may hold (XML 1.0 §2.4), and a carriage return and a line feed would be one line end (§2.11). An empty CDATA section
 * keeps them apart.
 */
export function rootText(text: string, { start, end }: RootExtent): string {
  const root = text.slice(start, end)
  if (!root.includes('<!--') && !root.includes('<?')) return root
  return root.replace(MARKUP, (found: string, at: number) => {
    if (found.startsWith(CDATA)) return found
    const before = root.charAt(at - 1)
    return before === ']' || before === '\r' ? EMPTY_CDATA : ''
  })
}

const REFERENCES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** The same with `\n` for every line end, and text in place of CDATA: for a parser that does not tell them apart. */
export const plainRootText = (text: string, { start, end }: RootExtent): string =>
  text
    .slice(start, end)
    .replaceAll(/\r\n?/g, '\n')
    .replace(MARKUP, (found) =>
      found.startsWith(CDATA)
        ? found
            .slice(CDATA.length, -']]>'.length)
            .replaceAll(/[&<>]/g, (character) => REFERENCES[character] ?? character)
        : '',
    )
