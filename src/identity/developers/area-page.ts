import type { AreaDescription } from '../../contracts/api-description.ts'
import { Slices } from '../../kernel/slices.ts'
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

/** Of `Slices`. One operation takes about as long as so many of its steps. */
const STEPS = 64

/** In slices: an area may have hundreds of operations, and other calls are served meanwhile. */
async function operationParts(
  { operations }: AreaDescription,
  parts: DeveloperParts,
): Promise<readonly Html[]> {
  const slices = new Slices()
  const made: Html[] = []
  for (const operation of operations) {
    made.push(operationPart(operation, parts))
    const turn = slices.pause(STEPS)
    if (turn) await turn
  }
  return made
}

/** The operations of one area. */
export function areaPage(area: AreaDescription, parts: DeveloperParts): DeveloperPage {
  const { description, mode, name } = area
  return {
    path: areaPath(name),
    title: name,
    lead: description === undefined ? T.lead(name) : undefined,
    body: async () => {
      const operations = await operationParts(area, parts)
      return html`${description !== undefined && html`<div class="lead">${markdown(description)}</div>`}
      ${mode === 'report-only' && html`<p class="notice">${T.reportOnly}</p>`} ${contents(area)}
      ${tokenPart(area, parts)} ${operations}`
    },
  }
}
