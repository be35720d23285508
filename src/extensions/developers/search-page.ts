/** The search of the developer pages, for APIs of many areas. The server answers it (C11.4). */
import { finderOf } from '../../identity/pages/find.ts'
import { html, type Html } from '../../identity/pages/layout.ts'
import { isolated } from '../../identity/pages/texts.ts'
import { type Area, type DocumentedOperation, plain } from './document.ts'
import { contentsItem } from './elements.ts'
import { areaPath, type DeveloperPage, type DeveloperParts, DEVELOPERS_PATH, operationLink } from './frame.ts'
import { markdown } from './markdown.ts'

/** Operations of one answer: a search for a common word must not cost more than a page does. */
const MOST_SHOWN = 100

interface Searchable {
  readonly text: string
  readonly shown: Html
}

/** An area, and the operations in it. */
interface SearchedArea extends Searchable {
  readonly operations: readonly Searchable[]
}

/** Makes pages of what is found. Everything that can be found is read here, once for each configuration. */
export function searchIn(parts: DeveloperParts): (find: string) => DeveloperPage {
  const document = parts.document()
  const byArea = Map.groupBy(document.operations, ({ area }) => area)
  const areas = document.areas.map((area) => ({
    ...searchableArea(area, parts),
    operations: (byArea.get(area.name) ?? []).map((operation) => searchableOperation(operation, parts)),
  }))
  return (find) => searchPage(find, areas)
}

const searchableArea = ({ description, name }: Area, { theme }: DeveloperParts): Searchable => ({
  text: `${name} ${plain(description)}`,
  shown: html`<h2><a href="${theme.at(DEVELOPERS_PATH + areaPath(name))}">${name}</a></h2>
    ${markdown(plain(description))}`,
})

const searchableOperation = (operation: DocumentedOperation, parts: DeveloperParts): Searchable => ({
  text: `${operation.node.summary} ${operation.node['x-postern-action']}`,
  shown: contentsItem(operation, operationLink(parts, operation)),
})

/** Areas found by name and description, and operations by summary and code, each with its area. */
const searchPage = (find: string, areas: readonly SearchedArea[]): DeveloperPage => ({
  path: '',
  name: '',
  content: () => {
    const isFound = finderOf(find)
    const found = areas
      .map((area) => ({ ...area, operations: area.operations.filter(({ text }) => isFound(text)) }))
      .filter(({ operations, text }) => operations.length > 0 || isFound(text))
    const body = html`<p role="status">${countText(find, found)}</p>
      ${areasFound(found)}`
    return { title: 'Find an operation', lead: undefined, body }
  },
})

const count = (number: number, name: string): string => `${number} ${name}${number === 1 ? '' : 's'}`

function countText(find: string, found: readonly SearchedArea[]): string {
  const words = `“${isolated(find)}”`
  if (found.length === 0)
    return `Nothing was found for ${words}. Try another word, or a part of it. The search looks at the names and descriptions of areas, and at the names and codes of operations.`
  const operations = found.reduce((sum, area) => sum + area.operations.length, 0)
  const areas = count(found.length, 'area')
  if (operations === 0) return `Found for ${words}: ${areas}.`
  const more = operations > MOST_SHOWN ? ` The first ${MOST_SHOWN} are listed.` : ''
  return `Found for ${words}: ${count(operations, 'operation')} in ${areas}.${more}`
}

function areasFound(found: readonly SearchedArea[]): readonly Html[] {
  let left = MOST_SHOWN
  return found.map(({ operations, shown }) => {
    const listed = operations.slice(0, left)
    left -= listed.length
    return html`<section class="found">
      ${shown}
      ${
        listed.length > 0 &&
        html`<ul class="operations">
          ${listed.map((operation) => operation.shown)}
        </ul>`
      }
    </section>`
  })
}
