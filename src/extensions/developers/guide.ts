/** Pages of our own words: Markdown in the folder `guides`, filled with what this deployment is. */
import { readFileSync } from 'node:fs'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { type Code, codeBlock, part, table } from './elements.ts'
import type { DeveloperPage } from './frame.ts'
import { blocksOf, markdownBlock, paragraph, prose } from './markdown.ts'

/** The value of `{{name}}` in a guide: words within a line, or a block. Undefined leaves out the part that contains it. */
export type Values = Readonly<Record<string, string | Html | Code | undefined>>

/** A guide, with its parts in order. */
interface Guide {
  readonly title: string
  readonly lead: string
  readonly parts: (values: Values) => readonly Slot[]
}

export function readGuide(name: string): Guide {
  const [head = '', ...sections] = readGuideText(name).split(/^## /m)
  const [title = '', lead = ''] = blocksOf(head)
  return {
    title: title.replace('# ', ''),
    lead,
    parts: (values) => sections.map((section) => sectionOf(section, values)),
  }
}

const GUIDES = new URL('guides/', import.meta.url)

const readGuideText = (name: string): string => readFileSync(new URL(`${name}.md`, GUIDES), 'utf8')

const filled = (text: string, values: Values): string =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => {
    const value = values[name]
    return typeof value === 'string' ? value : whole
  })

/** A page that is a guide. */
export function guidePage(name: string, values: () => Values): DeveloperPage {
  const { lead, parts, title } = readGuide(name)
  const content = () => ({ title, lead, body: html`${parts(values())}` })
  return { path: `/${name}`, name: title, content }
}

type Lists = ReadonlyMap<string, ReadonlyMap<string, string>>

/** The lists of a guide that is no page, by their headings: `- name: text`. Texts may use the names of the list `words`. */
export function readLists(name: string): Lists {
  const words = new Map<string, string>()
  const lists = new Map([['words', words]])
  let list = words
  for (const line of readGuideText(name).split('\n')) {
    const [, heading, key, text] = /^(?:## (.+)|- ([^:]+): (.+))$/.exec(line) ?? []
    if (heading !== undefined && heading !== 'words') lists.set(heading, (list = new Map<string, string>()))
    if (key !== undefined && text !== undefined) list.set(key, filled(text, Object.fromEntries(words)))
  }
  return lists
}

const HEADING = /^(.+) \{#([\w-]+)\}\n/
/** `{{name}}` alone, or `{{name: label}}`: the label of a block of code for screen readers, if it is not the heading. */
const BLOCK = /^\{\{(\w+)(?:: (.+))?\}\}$/

function sectionOf(section: string, values: Values): Slot {
  const [heading = '', title = '', id = ''] = HEADING.exec(section) ?? []
  const [before = '', ...steps] = section.slice(heading.length).split(/^\d+\. /m)
  const isLeftOut = blocksOf(before).some((block) => {
    const [, name] = BLOCK.exec(block) ?? []
    return name !== undefined && values[name] === undefined
  })
  if (isLeftOut) return undefined
  const list = html`<ol class="steps">
    ${steps.map((step) => html`<li>${guideBlocks(step.replaceAll(/^ {3}/gm, ''), title, values)}</li>`)}
  </ol>`
  return part(id, title, guideBlocks(before, title, values), steps.length > 0 && list)
}

function guideBlocks(text: string, title: string, values: Values): readonly Slot[] {
  let label = title
  return blocksOf(text).map((block): Slot => {
    const [, name, ownLabel = label] = BLOCK.exec(block) ?? []
    if (name !== undefined) return valueBlock(values[name], ownLabel)
    if (block.startsWith('### ')) return html`<h3>${(label = block.slice(4))}</h3>`
    const words = filled(block, values)
    return block.startsWith('| ') ? proseTable(label, words) : markdownBlock(words)
  })
}

function valueBlock(value: Values[string], label: string): Slot {
  if (typeof value === 'string') return paragraph(value)
  return value !== undefined && 'kind' in value ? codeBlock(value, label) : value
}

function proseTable(label: string, text: string): Html {
  const [heads = [], , ...rows] = text.split('\n').map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => prose(cell.trim())),
  )
  return table(label, heads, rows)
}
