import { successEnvelope } from '../../base/http/envelope.ts'
import type { JsonObject, JsonValue } from '../../base/http/body/json.ts'
import { Slices } from '../../base/kernel/slices.ts'
import type { ItemNames } from '../../base/http/xml/key-sequences.ts'
import { writeXml } from '../../base/http/xml/write.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import type { DocumentedOperation } from './document.ts'

export interface CodeExample {
  readonly kind: 'Shell' | 'JSON' | 'XML' | 'URL'
  readonly text: string
}

/**
 * Code as it is written. The browser wraps long lines, which changes nothing of what is copied.
 * @param label the name of its content, for screen readers
 */
export const codeBlock = ({ kind, text }: CodeExample, label: string): Html =>
  html`<figure class="code">
    <figcaption>${kind}</figcaption>
    <pre role="group" aria-label="${label}"><code>${text}</code></pre>
  </figure>`

export const facts = (rows: readonly (readonly [term: Slot, meaning: Slot])[]): Html =>
  html`<dl class="pairs">
    ${rows.map(
      ([term, meaning]) =>
        html`<div>
          <dt>${term}</dt>
          <dd>${meaning}</dd>
        </div>`,
    )}
  </dl>`

export const bullets = (items: readonly Slot[]): Html =>
  html`<ul>
    ${items.map((item) => html`<li>${item}</li>`)}
  </ul>`

export const table = (label: string, heads: readonly Slot[], rows: readonly (readonly Slot[])[]): Html =>
  html`<div class="table" tabindex="0" role="group" aria-label="${label}">
    <table>
      <thead>
        <tr>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell) => html`<td>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`

export const part = (id: string, title: Slot, ...body: readonly Slot[]): Html =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${body}
  </section>`

/** An operation in a list of links. */
export const contentsItem = ({ method, node }: DocumentedOperation, link: Html): Html =>
  html`<li>
    ${link}
    <span class="quiet"><span class="method">${method}</span> ${node['x-postern-action']}</span>
  </li>`

/** Names as code, with a space between two. */
export const codeWords = (names: readonly string[]): Slot =>
  names.map((name, at) => html`${at > 0 && ' '}<code>${name}</code>`)

/** The id of a code's part of the page about errors. @param key code and status: `API_NOT_FOUND 404` */
export const errorAnchor = (key: string): string => key.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')

/** JSON as people read it: with line ends and indents, which the service leaves out. */
export const inJson = (json: Buffer | string): CodeExample => ({
  kind: 'JSON',
  text: JSON.stringify(JSON.parse(String(json)), null, 2),
})

const TAG = /<[^<>]*>|[^<]+/g

/** Our own XML, one element a line. White space between elements means nothing (C7.5). */
export function inXml(xml: Buffer | string): CodeExample {
  const lines: string[] = []
  let depth = 0
  let open = false
  for (const [piece] of String(xml).matchAll(TAG)) {
    const closes = piece.startsWith('</')
    if (closes) depth -= 1
    // Text belongs to the element before it, and so does the end of an element that holds text or nothing.
    if (!piece.startsWith('<') || (closes && open)) lines.push((lines.pop() ?? '') + piece)
    else lines.push('  '.repeat(depth) + piece)
    open = !closes && !/^<\?|\/>$/.test(piece)
    if (open && piece.startsWith('<')) depth += 1
  }
  return { kind: 'XML', text: lines.join('\n') }
}

/** A value in both formats. The second is undefined if XML cannot hold it. */
export type InBoth = readonly [json: CodeExample, xml: CodeExample | undefined]

const bothOf = (json: Buffer | string, writeIt: () => Buffer | string): InBoth => {
  try {
    return [inJson(json), inXml(writeIt())]
  } catch {
    return [inJson(json), undefined]
  }
}

/** An answer with this `Data` (C2). */
export const answerInBoth = (data: JsonValue, items: ItemNames): InBoth =>
  bothOf(successEnvelope('json', data as JsonObject), () => successEnvelope('xml', data as JsonObject, items))

/** In XML the root may have any name (C7.5). */
export const bodyInBoth = (body: JsonValue, items: ItemNames): InBoth =>
  bothOf(JSON.stringify(body), () => writeXml(body, 'Request', items).toString())

/**
 * Makes a part of each item, in slices: an API may have thousands of operations, and other calls are served meanwhile.
 * @param steps how many steps of `Slices` one item counts as
 */
export async function inSlices<Item>(
  items: readonly Item[],
  steps: number,
  make: (item: Item) => Html,
): Promise<readonly Html[]> {
  const slices = new Slices()
  const made: Html[] = []
  for (const item of items) {
    made.push(make(item))
    const turn = slices.pause(steps)
    if (turn) await turn
  }
  return made
}
