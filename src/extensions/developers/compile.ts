/** The developer pages of one configuration (C11.4): made when somebody first asks for them, and answered as they are. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { answerReady, readyDocument, type ReadyDocument } from '../../base/http/head/entity-tag.ts'
import { refuseAsPage } from '../../identity/steps/answers.ts'
import type { Endpoint } from '../../identity/steps/endpoint.ts'
import { searchOf } from '../../identity/pages/find.ts'
import { pageHeaders } from '../../identity/pages/layout.ts'
import { readQueryFields } from '../../identity/steps/read-form.ts'
import { asset, type Asset } from '../../identity/pages/theme.ts'
import type { AddedEndpoints } from '../../identity/steps/added-endpoints.ts'
import type { EndpointsOfApi } from '../../operate/hooks/extension.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { areaPage } from './area-page.ts'
import { changesPage } from './changes-page.ts'
import { errorsPage } from './errors-page.ts'
import { ApiDocument } from './document.ts'
import {
  COPY_CODE,
  type DeveloperPage,
  type DeveloperParts,
  DEVELOPERS_PATH,
  type Frame,
  frameOf,
  renderPage,
} from './frame.ts'
import { sampleLogin } from './schema.ts'
import { scopesPage } from './scopes-page.ts'
import { searchIn } from './search-page.ts'
import { startPage } from './start-page.ts'
import { xmlPage } from './xml-page.ts'

/** How long a page may be kept, in seconds: short, because a reload may change it. Then a browser asks whether it changed. */
const MAX_AGE_SECONDS = 300

const STYLESHEET_PATH = '/connect/assets/developers.css'
const RULES = readFileSync(new URL('developers.css', import.meta.url))

/** @param find the search that it answers. Only who has asked keeps what is found: anybody can ask for anything. */
const readyPage = async (frame: Frame, page: DeveloperPage, find = ''): Promise<ReadyDocument> =>
  readyDocument(Buffer.from(await renderPage(frame, page, find)), {
    ...pageHeaders({ alone: true, script: COPY_CODE.source }),
    'Cache-Control': `${find === '' ? 'public' : 'private'}, max-age=${MAX_AGE_SECONDS}`,
  })

/** Pages name it with its content's hash, so that it may be kept. */
const readyStylesheet = ({ bytes, contentType }: Asset): ReadyDocument =>
  readyDocument(bytes, {
    'Content-Type': contentType,
    'Cache-Control': 'public, max-age=86400',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'same-origin',
  })

type Ready = (exchange: Exchange) => ReadyDocument | Promise<ReadyDocument>

type MakeOnce = <Made>(make: () => Made | Promise<Made>) => () => Promise<Made>

/**
 * Made when somebody asks, once: those of 2,000 operations take about a second together. One after another, because slices
 * must not add up.
 * @param allMade called when nothing is left to be made
 */
function makerWhenAsked(allMade: () => void): MakeOnce {
  let last: Promise<unknown> = Promise.resolve()
  let left = 0
  const count = (): void => {
    left -= 1
    if (left === 0) allMade()
  }
  return <Made>(make: () => Made | Promise<Made>) => {
    let made: Promise<Made> | undefined
    left += 1
    return () => {
      if (made === undefined) {
        made = last.then(make)
        last = made.then(count, () => (made = undefined))
      }
      return made
    }
  }
}

/** The first page. Where the menu has a search, its query asks for what is found instead, which is made each time. */
function firstPage(frame: Frame, parts: DeveloperParts, page: DeveloperPage, once: MakeOnce): Ready {
  if (!frame.isSearched) return once(() => readyPage(frame, page))
  const made = once(async () => ({ whole: await readyPage(frame, page), found: searchIn(parts) }))
  return async (exchange) => {
    const find = searchOf(readQueryFields(exchange).get('find')?.[0])
    const { found, whole } = await made()
    return find === '' ? whole : readyPage(frame, found(find), find)
  }
}

/** Rows for the table of endpoints. They answer from memory, also while identity is in maintenance (C9.2). */
const endpointOf = (path: string, document: Ready): Endpoint => ({
  name: 'developers',
  path: (issuerPath) => `${issuerPath}${path}`,
  methods: ['GET', 'HEAD'],
  closes: false,
  steps: async ({ exchange }) => answerReady(await document(exchange), exchange.head),
  refuse: refuseAsPage,
})

function developerEndpoints(
  parts: DeveloperParts,
  areas: readonly string[],
  allMade: () => void,
): AddedEndpoints {
  const { theme } = parts
  const stylesheet = asset(RULES, 'text/css; charset=utf-8', theme.at(STYLESHEET_PATH))
  const first = startPage(parts)
  const pages = [
    [first],
    areas.map((area) => areaPage(area, parts)),
    [scopesPage(parts), errorsPage(parts), xmlPage(parts), changesPage(parts)],
  ] as const
  const frame = frameOf(parts, pages, stylesheet)
  const sheet = readyStylesheet(stylesheet)
  const once = makerWhenAsked(allMade)
  const endpoints = pages.flat().map((page) => {
    const ready = page === first ? firstPage(frame, parts, page, once) : once(() => readyPage(frame, page))
    return endpointOf(DEVELOPERS_PATH + page.path, ready)
  })
  return {
    endpoints: [endpointOf(STYLESHEET_PATH, () => sheet), ...endpoints],
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
