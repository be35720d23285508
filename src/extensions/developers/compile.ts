/** The developer pages of one configuration (C11.4): made when somebody first asks for them, and answered as they are. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { answerReady, readyDocument, type ReadyDocument } from '../../base/http/head/entity-tag.ts'
import { refuseAsPage } from '../../identity/steps/answers.ts'
import type { Endpoint } from '../../identity/steps/endpoint.ts'
import { pageHeaders } from '../../identity/pages/layout.ts'
import { asset, type Asset } from '../../identity/pages/theme.ts'
import type { AddedEndpoints } from '../../identity/steps/added-endpoints.ts'
import type { EndpointsOfApi } from '../../operate/hooks/extension.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { areaPage } from './area-page.ts'
import { changesPage } from './changes-page.ts'
import { errorsPage } from './errors-page.ts'
import { ApiDocument } from './document.ts'
import {
  type DeveloperPage,
  type DeveloperParts,
  DEVELOPERS_PATH,
  type Frame,
  frameOf,
  renderPage,
} from './frame.ts'
import { sampleLogin } from './schema.ts'
import { scopesPage } from './scopes-page.ts'
import { startPage } from './start-page.ts'
import { xmlPage } from './xml-page.ts'

/** How long a page may be kept, in seconds: short, because a reload may change it. Then a browser asks whether it changed. */
const MAX_AGE_SECONDS = 300

const STYLESHEET_PATH = '/connect/assets/developers.css'
const RULES = readFileSync(new URL('developers.css', import.meta.url))

const readyPage = async (frame: Frame, page: DeveloperPage): Promise<ReadyDocument> =>
  readyDocument(Buffer.from(await renderPage(frame, page)), {
    ...pageHeaders({ alone: true }),
    'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
  })

/** Pages name it with its content's hash, so that it may be kept. */
const readyStylesheet = ({ bytes, contentType }: Asset): ReadyDocument =>
  readyDocument(bytes, {
    'Content-Type': contentType,
    'Cache-Control': 'public, max-age=86400',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'same-origin',
  })

type Ready = () => ReadyDocument | Promise<ReadyDocument>

/**
 * Made when somebody asks, once: those of 2,000 operations take about a second together. One after another, because slices
 * must not add up.
 * @param allMade called when no page is left to be made
 */
function pagesWhenAsked(
  frame: Frame,
  pages: readonly DeveloperPage[],
  allMade: () => void,
): readonly Endpoint[] {
  let last: Promise<unknown> = Promise.resolve()
  let left = pages.length
  const count = (): void => {
    left -= 1
    if (left === 0) allMade()
  }
  return pages.map((page) => {
    let made: Promise<ReadyDocument> | undefined
    return endpointOf(DEVELOPERS_PATH + page.path, () => {
      if (made === undefined) {
        made = last.then(() => readyPage(frame, page))
        last = made.then(count, () => (made = undefined))
      }
      return made
    })
  })
}

/** Rows for the table of endpoints. They answer from memory, also while identity is in maintenance (C9.2). */
const endpointOf = (path: string, document: Ready): Endpoint => ({
  name: 'developers',
  path: (issuerPath) => `${issuerPath}${path}`,
  methods: ['GET', 'HEAD'],
  closes: false,
  steps: async ({ exchange }) => answerReady(await document(), exchange.head),
  refuse: refuseAsPage,
})

function developerEndpoints(
  parts: DeveloperParts,
  areas: readonly string[],
  allMade: () => void,
): AddedEndpoints {
  const { theme } = parts
  const stylesheet = asset(RULES, 'text/css; charset=utf-8', theme.at(STYLESHEET_PATH))
  const pages = [
    [startPage(parts)],
    areas.map((area) => areaPage(area, parts)),
    [scopesPage(parts), errorsPage(parts), xmlPage(parts), changesPage(parts)],
  ] as const
  const frame = frameOf(parts, pages, stylesheet)
  const sheet = readyStylesheet(stylesheet)
  return {
    endpoints: [endpointOf(STYLESHEET_PATH, () => sheet), ...pagesWhenAsked(frame, pages.flat(), allMade)],
    link: { href: frame.root, text: 'Read how to write an application' },
  }
}

export function developerPages(configuration: Configuration): EndpointsOfApi {
  const { defaultFormat, vendor } = configuration
  return ({ areas, document, url }) => {
    let read: ApiDocument | undefined
    return (parts) =>
      developerEndpoints(
        {
          ...parts,
          document: () => (read ??= new ApiDocument(document())),
          vendor,
          defaultFormat,
          openapiUrl: url,
          sample: sampleLogin(configuration),
        },
        areas,
        () => (read = undefined),
      )
  }
}
