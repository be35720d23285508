import { html, type Html } from '../../identity/pages/layout.ts'
import { bullets, table } from './elements.ts'
import type { DocumentedOperation } from './document.ts'
import { areaPath, type DeveloperPage, type DeveloperParts, DEVELOPERS_PATH, operationLink } from './frame.ts'
import { guidePage } from './guide.ts'
import { paragraph } from './markdown.ts'

const HEADS = ['Operation', 'Versions', 'Usual', 'To ask for the newest']

function severalVersions(parts: DeveloperParts, operations: readonly DocumentedOperation[]): Html {
  const several = operations.filter(({ isVersioned }) => isVersioned)
  if (several.length === 0) return paragraph('No operation has more than one version at the moment.')
  const rows = several.map((operation) => [
    operationLink(parts, operation),
    [...operation.versions.keys()].join(', '),
    operation.defaultVersion,
    html`<code>${[...operation.versions.values()].at(-1)}</code>`,
  ])
  return table('Operations with several versions', HEADS, rows)
}

function reportOnly({ document, theme }: DeveloperParts): Html | undefined {
  const areas = document().areas.filter((area) => area['x-postern-mode'] === 'report-only')
  if (areas.length === 0) return undefined
  return bullets(
    areas.map(({ name }) => html`<a href="${theme.at(DEVELOPERS_PATH + areaPath(name))}">${name}</a>`),
  )
}

/** Which versions there are (C7.3), and what a client must be ready for. */
export const changesPage = (parts: DeveloperParts): DeveloperPage =>
  guidePage('changes', () => ({
    vendor: parts.vendor,
    several: severalVersions(parts, parts.document().operations),
    reportOnly: reportOnly(parts),
    made: parts.openapiUrl === undefined ? 'These pages' : 'These pages and the OpenAPI document',
  }))
