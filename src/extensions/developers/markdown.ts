/** Markdown, as far as the operator's descriptions and our own guides use it. */
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { bullets } from './elements.ts'

const MARKED = /(`[^`]*`|\*\*[^*]*\*\*)/

const markedPart = (part: string): Slot => {
  if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`
  return part.startsWith('**') ? html`<strong>${part.slice(2, -2)}</strong>` : part
}

/** One line: parts between backticks are code, those between `**` are strong. */
export const prose = (text: string): Html => html`${text.split(MARKED).map(markedPart)}`

export const paragraph = (text: string): Html => html`<p>${prose(text)}</p>`

export const blocksOf = (text: string): readonly string[] => text.trim().split(/\n{2,}/)

/** The operator's Markdown: paragraphs, lists with `- `, code and `**`. The rest is shown as it was written. */
export const markdown = (text: string): Html => html`${blocksOf(text).map(markdownBlock)}`

export function markdownBlock(block: string): Html {
  const lines = block.split('\n')
  if (!lines.every((line) => /^[-*] /.test(line))) return paragraph(block)
  return bullets(lines.map((line) => prose(line.slice(2))))
}
