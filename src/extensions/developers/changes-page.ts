import type { OperationDescription } from '../../base/contracts/calls/api-description.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { bullets, operationTitle, paragraph, paragraphs, part, prose, table } from './elements.ts'
import { areaPath, type DeveloperPage, type DeveloperParts, DEVELOPERS_PATH } from './frame.ts'
import { CHANGE_TEXTS as T } from './texts.ts'

const linkTo = ({ theme }: DeveloperParts, operation: OperationDescription): Html =>
  html`<a href="${theme.at(DEVELOPERS_PATH + areaPath(operation.area))}#${operation.id}"
    >${operationTitle(operation)}</a
  >`

/** The media type in JSON of the highest version. */
const newestType = ({ answer }: OperationDescription): string => {
  if (answer.kind !== 'envelope') return ''
  const named = answer.types.filter(({ format, type }) => format === 'json' && type.includes('/vnd.'))
  return [...named].sort((one, other) => other.version - one.version)[0]?.type ?? ''
}

const versionRow = (parts: DeveloperParts, operation: OperationDescription): readonly Slot[] => [
  linkTo(parts, operation),
  operation.versions.join(', '),
  operation.defaultVersion,
  html`<code>${newestType(operation)}</code>`,
]

function several(parts: DeveloperParts): Html {
  const operations = parts.api.areas
    .flatMap((area) => area.operations)
    .filter(({ versions }) => versions.length > 1 || versions[0] !== 1)
  const body =
    operations.length === 0
      ? paragraph(T.none)
      : table(
          T.several,
          T.heads,
          operations.map((operation) => versionRow(parts, operation)),
        )
  return part('several', T.several, body)
}

function reportOnly({ api, theme }: DeveloperParts): Html | undefined {
  const areas = api.areas.filter(({ mode }) => mode === 'report-only')
  if (areas.length === 0) return undefined
  return part(
    'report-only',
    T.reportOnly,
    paragraph(T.reportOnlyText),
    bullets(
      areas.map(({ name }) => html`<a href="${theme.at(DEVELOPERS_PATH + areaPath(name))}">${name}</a>`),
    ),
  )
}

const learnRules = ({ openapiUrl }: DeveloperParts): readonly string[] =>
  T.learnRules(openapiUrl === undefined ? T.pages : T.pagesAndDocument)

/** Which versions there are (C7.3), and what a client must be ready for. */
export function changesPage(parts: DeveloperParts): DeveloperPage {
  return {
    path: '/changes',
    title: T.title,
    lead: T.lead,
    body: () =>
      html`${part('versions', T.versions, paragraphs(T.versionsText(parts.api.vendor)))} ${several(parts)}
      ${reportOnly(parts)}
      ${part('compatible', T.compatible, paragraph(T.compatibleText), bullets(T.compatibleRules.map(prose)))}
      ${part('breaking', T.breaking, bullets(T.breakingRules.map(prose)))}
      ${part('learn', T.learn, bullets(learnRules(parts).map(prose)))}`,
  }
}
