import type { AreaDescription } from '../../contracts/api-description.ts'
import { html, type Html } from '../pages/layout.ts'
import { keepToken } from './curl.ts'
import { codeBlock, markdown, paragraph, part } from './elements.ts'
import { areaPath, type DeveloperPage } from './frame.ts'
import { operationPart } from './operation-part.ts'
import { operationTitle } from './operation-title.ts'
import { addressOf, type DeveloperParts } from './parts.ts'
import { leastScopes, loginOf, tokenCall, withoutIncluded } from './sample-calls.ts'
import { AREA_TEXTS as T } from './texts/area.ts'

/** What one needs before the commands of the page: a token with all that its operations need. */
function tokenPart({ operations }: AreaDescription, parts: DeveloperParts): Html {
  const { catalogue, sample } = parts
  const needed = operations.flatMap((operation) => leastScopes(operation, catalogue))
  const scopes = withoutIncluded(needed, catalogue)
  const call = tokenCall(loginOf(sample), addressOf(parts, 'token_endpoint'), scopes)
  const text = T.tokenText(scopes)
  return part(
    'token',
    T.token,
    paragraph(sample === undefined ? `${text} ${T.capitals}` : text),
    codeBlock('Shell', T.token, keepToken(call)),
  )
}

const contents = ({ operations }: AreaDescription): Html =>
  html`<nav class="contents" aria-label="${T.onThisPage}">
    <ul>
      ${operations.map(
        (operation) =>
          html`<li>
            <a href="#${operation.id}">${operationTitle(operation)}</a>
            ${
              operation.summary !== undefined &&
              html`<span class="quiet"
                ><span class="method">${operation.method}</span> ${operation.action}</span
              >`
            }
          </li>`,
      )}
    </ul>
  </nav>`

/** The operations of one area. */
export function areaPage(area: AreaDescription, parts: DeveloperParts): DeveloperPage {
  const { description, mode, name, operations } = area
  return {
    path: areaPath(name),
    title: name,
    lead: description === undefined ? T.lead(name) : undefined,
    body: () =>
      html`${description !== undefined && html`<div class="lead">${markdown(description)}</div>`}
      ${mode === 'report-only' && html`<p class="notice">${T.reportOnly}</p>`} ${contents(area)}
      ${tokenPart(area, parts)} ${operations.map((operation) => operationPart(operation, parts))}`,
  }
}
