import { brandOf, documentOf, html, type Html } from '../../identity/pages/layout.ts'
import type { Asset, Theme } from '../../identity/pages/theme.ts'
import type { ApiDescription } from '../../base/contracts/calls/api-description.ts'
import type { EndpointParts } from '../../identity/steps/added-endpoints.ts'
import type { SampleLogin } from './schema.ts'
import { FRAME_TEXTS as T } from './texts.ts'

export interface DeveloperParts extends EndpointParts {
  readonly api: ApiDescription
  /** Where the description for programs is (C11.3); undefined where it is not offered. */
  readonly openapiUrl: string | undefined
  /** An https or http URL, or an e-mail address. */
  readonly contact: string | undefined
  /** The login that the commands use, if they are to work as they stand. */
  readonly sample: SampleLogin | undefined
}

export const addressOf = ({ metadata }: Pick<DeveloperParts, 'metadata'>, member: string): string =>
  String(metadata[member])

export interface DeveloperPage {
  /** Below the first page: empty for that one, else `/errors`. */
  readonly path: string
  readonly title: string
  readonly lead: Html | string | undefined
  readonly body: () => Html | Promise<Html>
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
}

export const DEVELOPERS_PATH = '/developers'

/** The pages of the reference, by path. An area may have one of these names. */
const REFERENCE = {
  '/scopes': T.scopes,
  '/errors': T.errors,
  '/xml': T.xml,
  '/changes': T.changes,
} as const

/** The path of an area's page: its name, or below `areas` where another page has that name. */
export const areaPath = (area: string): string => {
  const path = `/${area}`
  return path in REFERENCE || path === '/areas' ? `/areas/${area}` : path
}

export function frameOf({ api, openapiUrl, theme }: DeveloperParts, stylesheet: Asset): Frame {
  const root = theme.at(DEVELOPERS_PATH)
  const areaLinks = api.areas.map(({ name }) => ({ href: root + areaPath(name), text: name }))
  const reference = Object.entries(REFERENCE).map(([path, text]) => ({ href: root + path, text }))
  const document = openapiUrl === undefined ? [] : [{ href: openapiUrl, text: T.openapi }]
  const groups = [
    { title: T.section, links: [{ href: root, text: T.home }] },
    { title: T.operations, links: areaLinks },
    { title: T.reference, links: [...reference, ...document] },
  ].filter(({ links }) => links.length > 0)
  return { theme, stylesheet, root, groups }
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

export async function renderPage(
  { groups, root, stylesheet, theme }: Frame,
  page: DeveloperPage,
): Promise<string> {
  const content = await page.body()
  const body = html`<a class="skip" href="#content">${T.skip}</a>
    <header class="top">
      <a class="brand" href="${root}">${brandOf(theme)}<span class="where">${T.section}</span></a>
    </header>
    <div class="guide">
      <nav aria-label="${T.pages}">${groups.map((group, at) => groupOf(group, at, root + page.path))}</nav>
      <main id="content" tabindex="-1">
        <h1>${page.title}</h1>
        ${page.lead && html`<p class="lead">${page.lead}</p>`} ${content}
      </main>
    </div>`
  const head = html`<link rel="stylesheet" href="${stylesheet.href}" />`
  return documentOf(theme, { title: page.title, head, body })
}
