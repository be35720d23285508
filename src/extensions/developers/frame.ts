import { searchForm } from '../../identity/pages/find.ts'
import { brandOf, documentOf, html, type Html } from '../../identity/pages/layout.ts'
import { readScript } from '../../identity/pages/own-script.ts'
import type { Asset, Theme } from '../../identity/pages/theme.ts'
import type { EndpointParts } from '../../identity/steps/added-endpoints.ts'
import type { ApiDocument, DocumentedOperation } from './document.ts'
import type { SampleLogin } from './schema.ts'

export interface DeveloperParts extends EndpointParts {
  /** Read when the first page that tells of it is made. */
  readonly document: () => ApiDocument
  readonly vendor: string
  readonly defaultFormat: 'json' | 'xml'
  /** Where the description for programs is (C11.3); undefined where it is not offered. */
  readonly openapiUrl: string | undefined
  /** The login that the commands use, if they are to work without changes. */
  readonly sample: SampleLogin | undefined
}

export const addressOf = ({ metadata }: Pick<DeveloperParts, 'metadata'>, member: string): string =>
  String(metadata[member])

export interface DeveloperPage {
  /** The path below the first page, such as `/errors`; empty for the first page. */
  readonly path: string
  /** In the menu. */
  readonly name: string
  readonly content: () => PageContent | Promise<PageContent>
}

interface PageContent {
  readonly title: string
  readonly lead: Html | string | undefined
  readonly body: Html
}

interface Link {
  readonly href: string
  readonly text: string
}

interface Group {
  readonly title: string
  readonly links: readonly Link[]
}

export interface Frame {
  readonly theme: Theme
  readonly stylesheet: Asset
  /** Path of the first page, with the issuer's own path. */
  readonly root: string
  readonly groups: readonly Group[]
  /** Whether the menu has a search. */
  readonly isSearched: boolean
}

export const DEVELOPERS_PATH = '/developers'

/** The one script of these pages: a button at each block of code. */
export const COPY_CODE = readScript(new URL('copy-code.js', import.meta.url))

/** Areas up to which the menu needs no search. */
const FEW_AREAS = 15

/** The pages that are the same in every deployment: each is a guide, and stands at its name. */
export const REFERENCE = ['scopes', 'errors', 'xml', 'changes'] as const

/** Names that an area may have too. */
const TAKEN: ReadonlySet<string> = new Set(['areas', ...REFERENCE])

/** The path of an area's page: its name, or below `areas` where another page has that name. */
export const areaPath = (area: string): string => (TAKEN.has(area) ? `/areas/${area}` : `/${area}`)

export const operationLink = (
  { theme }: Pick<DeveloperParts, 'theme'>,
  { area, id, node }: DocumentedOperation,
): Html => html`<a href="${theme.at(DEVELOPERS_PATH + areaPath(area))}#${id}">${node.summary}</a>`

/** @param pages the first one, those of areas, and the reference */
export function frameOf(
  { openapiUrl, theme }: DeveloperParts,
  pages: readonly (readonly DeveloperPage[])[],
  stylesheet: Asset,
): Frame {
  const root = theme.at(DEVELOPERS_PATH)
  const linksTo = (some: readonly DeveloperPage[] = []): readonly Link[] =>
    some.map(({ name, path }) => ({ href: root + path, text: name }))
  const [first, areas, reference] = pages.map(linksTo)
  const document = openapiUrl === undefined ? [] : [{ href: openapiUrl, text: 'OpenAPI document' }]
  const groups = [
    { title: 'Developers', links: first ?? [] },
    { title: 'Operations', links: areas ?? [] },
    { title: 'Reference', links: [...(reference ?? []), ...document] },
  ].filter(({ links }) => links.length > 0)
  return { theme, stylesheet, root, groups, isSearched: (areas ?? []).length > FEW_AREAS }
}

const groupOf = ({ links, title }: Group, at: number, here: string): Html =>
  html`<div>
    <p class="group" id="menu-${at}">${title}</p>
    <ul aria-labelledby="menu-${at}">
      ${links.map(
        ({ href, text }) =>
          html`<li><a href="${href}" ${href === here && html` aria-current="page"`}>${text}</a></li>`,
      )}
    </ul>
  </div>`

/** @param find the search that the page answers; empty for a page of its own */
export async function renderPage(
  { groups, isSearched, root, stylesheet, theme }: Frame,
  page: DeveloperPage,
  find: string,
): Promise<string> {
  const { title, lead, body: content } = await page.content()
  const body = html`<a class="skip" href="#content">Skip to the content</a>
    <header class="top">
      <a class="brand" href="${root}">${brandOf(theme)}<span class="where">Developers</span></a>
    </header>
    <div class="guide">
      <nav aria-label="Pages for developers">
        ${isSearched && searchForm({ action: root, label: 'Find an operation', button: 'Search', find })}
        ${groups.map((group, at) => groupOf(group, at, find === '' ? root + page.path : ''))}
      </nav>
      <main id="content" tabindex="-1">
        <h1>${title}</h1>
        ${lead && html`<p class="lead">${lead}</p>`} ${content}
      </main>
    </div>
    ${COPY_CODE.element}`
  const head = html`<link rel="stylesheet" href="${stylesheet.href}" />`
  return documentOf(theme, { title, head, body })
}
