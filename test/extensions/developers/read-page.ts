/** What stands on a developer page (C11.4), read as a browser would. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
}

export const unescaped = (text: string): string =>
  text.replace(/&(?:lt|gt|quot|amp|#39);/g, (entity) => ENTITIES[entity] ?? entity)

export interface CodeBlock {
  /** `Shell`, `JSON`, `XML`, … */
  readonly kind: string
  readonly label: string
  readonly text: string
}

const BLOCK =
  /<figcaption>([^<]*)<\/figcaption>\s*<pre role="group" aria-label="([^"]*)"><code>([^<]*)<\/code>/g

/** The blocks of code of a page or of a part of it, in their order. */
export const codeBlocks = (html: string): readonly CodeBlock[] =>
  [...html.matchAll(BLOCK)].map(([, kind = '', label = '', text = '']) => ({
    kind,
    label: unescaped(label),
    text: unescaped(text),
  }))

/** The parts of a page, by their ids. */
export const partsOf = (html: string): ReadonlyMap<string, string> =>
  new Map(
    html
      .split('<section aria-labelledby="')
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf('"')), part]),
  )
