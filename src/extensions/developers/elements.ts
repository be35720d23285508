import type { OperationDescription } from '../../base/contracts/calls/api-description.ts'
import { successEnvelope } from '../../base/http/envelope.ts'
import type { JsonObject, JsonValue } from '../../base/http/body/json.ts'
import { type ItemNames, writeXml } from '../../base/http/xml/write.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'

const MARKED = /(`[^`]*`|\*\*[^*]*\*\*)/

const markedPart = (part: string): Slot => {
  if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`
  return part.startsWith('**') ? html`<strong>${part.slice(2, -2)}</strong>` : part
}

/** Our own text: parts between backticks are code, those between `**` are strong. For texts of others, use a slot. */
export const prose = (text: string): Html => html`${text.split(MARKED).map(markedPart)}`

/** The operator's Markdown: paragraphs, lists with `- `, code and `**`. The rest is shown as it was written. */
export const markdown = (text: string): Html =>
  html`${text
    .trim()
    .split(/\n{2,}/)
    .map(markdownBlock)}`

function markdownBlock(block: string): Html {
  const lines = block.split('\n')
  if (!lines.every((line) => /^[-*] /.test(line))) return paragraph(block)
  return bullets(lines.map((line) => prose(line.slice(2))))
}

export const paragraph = (text: string): Html => html`<p>${prose(text)}</p>`

export const paragraphs = (texts: readonly string[]): Html => html`${texts.map(paragraph)}`

type CodeKind = 'Shell' | 'HTTP' | 'JSON' | 'XML' | 'URL'

/**
 * Code as it stands. What is too long scrolls within its box, which can be focused to be scrolled by keyboard.
 * @param label what it shows, for screen readers
 */
export const codeBlock = (kind: CodeKind, label: string, text: string): Html =>
  html`<figure class="code">
    <figcaption>${kind}</figcaption>
    <pre tabindex="0" role="group" aria-label="${label}"><code>${text}</code></pre>
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

export const table = (label: string, heads: readonly string[], rows: readonly (readonly Slot[])[]): Html =>
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

export const proseTable = (
  label: string,
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): Html =>
  table(
    label,
    heads,
    rows.map((row) => row.map(prose)),
  )

export const part = (id: string, title: Slot, ...body: readonly Slot[]): Html =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${body}
  </section>`

export const operationTitle = ({
  action,
  method,
  summary,
}: Pick<OperationDescription, 'action' | 'method' | 'summary'>): string => summary ?? `${method} ${action}`

/** The id of a code's part of the page about errors. @param key code and status: `API_NOT_FOUND 404` */
export const errorAnchor = (key: string): string => key.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')

/** JSON as people read it: with line ends and indents, which the service leaves out. */
export const prettyJson = (json: Buffer | string): string => JSON.stringify(JSON.parse(String(json)), null, 2)

const TAG = /<[^<>]*>|[^<]+/g

/** Our own XML, one element a line. White space between elements means nothing (C7.5). */
export function prettyXml(xml: Buffer | string): string {
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
  return lines.join('\n')
}

/** Undefined for a value that XML cannot hold. */
function unlessUnfit(write: () => Buffer | string): string | undefined {
  try {
    return prettyXml(write())
  } catch {
    return undefined
  }
}

/** An answer with this `Data` (C2.1). */
export const answerInJson = (data: JsonValue): string =>
  prettyJson(successEnvelope('json', data as JsonObject))

/** The same in XML (C2.2); undefined if XML cannot hold it. */
export const answerInXml = (data: JsonValue, items: ItemNames): string | undefined =>
  unlessUnfit(() => successEnvelope('xml', data as JsonObject, items))

export const bodyInJson = (body: JsonValue): string => JSON.stringify(body, null, 2)

/** The root may have any name (C7.5). */
export const bodyInXml = (body: JsonValue, items: ItemNames): string | undefined =>
  unlessUnfit(() => writeXml(body, 'Request', items))
