import { IDENTITY_SCOPES } from '../../base/config/scopes/catalogue.ts'
import type { OperationDescription } from '../../base/contracts/calls/api-description.ts'
import { claimsOf } from '../../identity/tokens/claims.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { facts, operationTitle, paragraph, part, proseTable } from './elements.ts'
import { addressOf, areaPath, type DeveloperPage, type DeveloperParts, DEVELOPERS_PATH } from './frame.ts'
import { SCOPE_TEXTS as T } from './texts.ts'

type Row = readonly [string, Slot]

const codes = (values: readonly string[]): Slot =>
  values.map((value, at) => html`${at > 0 && ' '}<code>${value}</code>`)

/** Values that operations need, and those that include them. What opens hidden areas only is not named. */
const shownScopes = ({ api, catalogue }: Pick<DeveloperParts, 'api' | 'catalogue'>): readonly string[] => {
  const useful = new Set(api.scopes.flatMap(({ includedIn, name }) => [name, ...includedIn]))
  return catalogue.values.filter((value) => useful.has(value))
}

interface Uses {
  /** Operations that the value alone opens. */
  readonly opens: readonly OperationDescription[]
  /** Operations that need it and other values. */
  readonly together: readonly OperationDescription[]
}

function usesOf(value: string, { api, catalogue }: DeveloperParts): Uses {
  const held = catalogue.close([value])
  const operations = api.areas.flatMap((area) => area.operations)
  const opens = operations.filter(({ scopes }) => scopes.some((all) => all.every((each) => held.has(each))))
  const together = operations.filter(
    (operation) =>
      !opens.includes(operation) && operation.scopes.some((all) => all.some((each) => held.has(each))),
  )
  return { opens, together }
}

const operationLinks = ({ theme }: DeveloperParts, operations: readonly OperationDescription[]): Slot =>
  html`<ul class="links">
    ${operations.map(
      (operation) =>
        html`<li>
          <a href="${theme.at(DEVELOPERS_PATH + areaPath(operation.area))}#${operation.id}"
            >${operationTitle(operation)}</a
          >
          <span class="quiet">${operation.area}</span>
        </li>`,
    )}
  </ul>`

function dataScope(value: string, shown: readonly string[], parts: DeveloperParts): Html {
  const { catalogue } = parts
  const { opens, together } = usesOf(value, parts)
  const includes = shown.filter((other) => other !== value && catalogue.close([value]).has(other))
  const includedIn = shown.filter((other) => other !== value && catalogue.close([other]).has(value))
  const rows: Row[] = []
  if (opens.length > 0) rows.push([T.opens, operationLinks(parts, opens)])
  if (together.length > 0) rows.push([T.together, operationLinks(parts, together)])
  if (includes.length > 0) rows.push([T.includes, codes(includes)])
  if (includedIn.length > 0) rows.push([T.includedIn, codes(includedIn)])
  return scopeItem(value, catalogue.get(value)?.description ?? '', rows)
}

const scopeItem = (value: string, description: string, rows: readonly Row[]): Html =>
  html`<article class="item" aria-labelledby="scope-${value}">
    <h3 id="scope-${value}"><code>${value}</code></h3>
    <p>${description}</p>
    ${rows.length > 0 && facts(rows)}
  </article>`

const personScope = ({
  description,
  name,
}: {
  readonly name: string
  readonly description: string
}): Html => {
  const claims = claimsOf(name)
  return scopeItem(name, description, claims.length > 0 ? [[T.claims, codes(claims)]] : [])
}

/** The scope values in people's words, and what they open (C5). */
export function scopesPage(parts: DeveloperParts): DeveloperPage {
  const shown = shownScopes(parts)
  const userinfo = html`<code>${addressOf(parts, 'userinfo_endpoint')}</code>`
  return {
    path: '/scopes',
    title: T.title,
    lead: T.lead,
    body: () =>
      html`${part('how', T.how, paragraph(T.ask), paragraph(T.howExample(shown.slice(0, 1))))}
      ${
        shown.length > 0 &&
        part(
          'data',
          T.data,
          paragraph(T.dataText),
          shown.map((value) => dataScope(value, shown, parts)),
        )
      }
      ${part('person', T.person, paragraph(T.personText), facts([[T.userinfo, userinfo]]), IDENTITY_SCOPES.map(personScope))}
      ${part('targets', T.targets, paragraph(T.targetsText), proseTable(T.targets, ['scope', T.opens], T.targetRows))}`,
  }
}
