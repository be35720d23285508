/** Markdown, as far as the operator's descriptions and our own guides use it. */
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { bullets } from './elements.ts'

const MARKED = /(`[^`]*`|\*\*[^*]*\*\*)/

/** Fills the placeholders of a text. It runs after the marks are read, so the marks in a value are shown as they are. */
type Fill = (text: string) => string

const asWritten: Fill = (text) => text

/** One line: parts between backticks are code, those between `**` are strong. */
export function prose(text: string, fill = asWritten): Html {
  const markedPart = (part: string): Slot => {
    if (part.startsWith('`')) return html`<code>${fill(part.slice(1, -1))}</code>`
    return part.startsWith('**') ? html`<strong>${fill(part.slice(2, -2))}</strong>` : fill(part)
  }
  return html`${text.split(MARKED).map(markedPart)}`
}

export const paragraph = (text: string, fill = asWritten): Html => html`<p>${prose(text, fill)}</p>`

export const blocksOf = (text: string): readonly string[] => text.trim().split(/\n{2,}/)

/** The operator's Markdown: paragraphs, lists with `- `, code and `**`. The rest is shown as it was written. */
export const markdown = (text: string): Html => html`${blocksOf(text).map((block) => markdownBlock(block))}`

export function markdownBlock(block: string, fill = asWritten): Html {
  const lines = block.split('\n')
  if (!lines.every((line) => /^[-*] /.test(line))) return paragraph(block, fill)
  return bullets(lines.map((line) => prose(line.slice(2), fill)))
}
