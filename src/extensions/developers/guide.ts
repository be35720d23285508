/** Pages of our own words: Markdown in the folder `guides`, filled with what this deployment is. */
import { readFileSync } from 'node:fs'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { type CodeExample, codeBlock, part, table } from './elements.ts'
import { type DeveloperPage, REFERENCE } from './frame.ts'
import { blocksOf, markdownBlock, prose } from './markdown.ts'

/** The value of `{{name}}` in a guide: plain text, or a block. Undefined leaves out the part that contains it. */
export type GuideValues = Readonly<Record<string, string | Html | CodeExample | undefined>>

/** A guide, with its parts in order. */
interface Guide {
  readonly title: string
  readonly lead: string
  readonly parts: (values: GuideValues) => readonly Slot[]
}

type PageName = 'start' | (typeof REFERENCE)[number]

/** Read once: a process shows its own guides, also when another version is installed while it runs. */
const TEXTS: ReadonlyMap<string, string> = new Map(
  ['start', 'mends', ...REFERENCE].map((name) => [
    name,
    readFileSync(new URL(`guides/${name}.md`, import.meta.url), 'utf8'),
  ]),
)

export function readGuide(name: PageName): Guide {
  const [head = '', ...sections] = (TEXTS.get(name) ?? '').split(/^## /m)
  const [title = '', lead = ''] = blocksOf(head)
  return {
    title: title.replace('# ', ''),
    lead,
    parts: (values) => sections.map((section) => sectionOf(section, values)),
  }
}

function valueOf(name: string, values: GuideValues): GuideValues[string] {
  if (!Object.hasOwn(values, name))
    throw new TypeError(`a guide names {{${name}}}, which its page does not give`)
  return values[name]
}

const filled = (text: string, values: GuideValues): string =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = valueOf(name, values)
    if (typeof value !== 'string') throw new TypeError(`a guide has {{${name}}}, a block, within a line`)
    return value
  })

/** A page that is a guide. */
export function guidePage(
  name: (typeof REFERENCE)[number],
  values: () => GuideValues | Promise<GuideValues>,
): DeveloperPage {
  const { lead, parts, title } = readGuide(name)
  const content = async () => ({ title, lead, body: html`${parts(await values())}` })
  return { path: `/${name}`, name: title, content }
}

type Lists = ReadonlyMap<string, ReadonlyMap<string, string>>

/** The lists of the guide `mends`, by their headings: `- name: text`. Texts may use the names of the list `words`. */
export function readMends(): Lists {
  const words = new Map<string, string>()
  const lists = new Map([['words', words]])
  let list = words
  for (const line of (TEXTS.get('mends') ?? '').split('\n')) {
    const [, heading, key, text] = /^(?:## (.+)|- ([^:]+): (.+))$/.exec(line) ?? []
    if (heading !== undefined && heading !== 'words') lists.set(heading, (list = new Map<string, string>()))
    if (key !== undefined && text !== undefined) list.set(key, filled(text, Object.fromEntries(words)))
  }
  return lists
}

const HEADING = /^(.+) \{#([\w-]+)\}\n/
/** `{{name}}` alone, or `{{name: label}}`: the label of a block of code for screen readers, if it is not the heading. */
const BLOCK = /^\{\{(\w+)(?:: (.+))?\}\}$/

function sectionOf(section: string, values: GuideValues): Slot {
  const names = [...section.matchAll(/\{\{(\w+)/g)].map(([, name = '']) => name)
  if (names.map((name) => valueOf(name, values)).includes(undefined)) return undefined
  if (BLOCK.test(section.trim())) return guideBlocks(section, '', values)
  const [heading = '', title = '', id = ''] = HEADING.exec(section) ?? []
  const [before = '', ...steps] = section.slice(heading.length).split(/^\d+\. /m)
  const list = html`<ol class="steps">
    ${steps.map((step) => html`<li>${guideBlocks(step.replaceAll(/^ {3}/gm, ''), title, values)}</li>`)}
  </ol>`
  return part(id, title, guideBlocks(before, title, values), steps.length > 0 && list)
}

function guideBlocks(text: string, title: string, values: GuideValues): readonly Slot[] {
  const fill = (words: string): string => filled(words, values)
  let label = title
  return blocksOf(text).map((block): Slot => {
    const [, name, ownLabel = label] = BLOCK.exec(block) ?? []
    if (name !== undefined) return valueBlock(values[name], ownLabel)
    if (block.startsWith('### ')) return html`<h3>${(label = block.slice(4))}</h3>`
    return block.startsWith('| ') ? proseTable(label, block, fill) : markdownBlock(block, fill)
  })
}

function valueBlock(value: GuideValues[string], label: string): Slot {
  if (typeof value === 'string') return html`<p>${value}</p>`
  return value !== undefined && 'kind' in value ? codeBlock(value, label) : value
}

function proseTable(label: string, text: string, fill: (words: string) => string): Html {
  const [heads = [], , ...rows] = text.split('\n').map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => prose(cell.trim(), fill)),
  )
  return table(label, heads, rows)
}
