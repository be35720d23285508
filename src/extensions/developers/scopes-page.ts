import { IDENTITY_SCOPES } from '../../base/config/scopes/catalogue.ts'
import { claimsOf } from '../../identity/tokens/claims.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import type { DocumentedOperation } from './document.ts'
import { codeWords, facts, inSlices } from './elements.ts'
import { addressOf, type DeveloperPage, type DeveloperParts, operationLink } from './frame.ts'
import { guidePage } from './guide.ts'

type Row = readonly [string, Slot]

interface Uses {
  /** Operations that the value alone opens. */
  readonly opens: readonly DocumentedOperation[]
  /** Operations that need it and other values. */
  readonly together: readonly DocumentedOperation[]
}

function usesOf(value: string, { catalogue, document }: DeveloperParts): Uses {
  const held = catalogue.close([value])
  const { operations } = document()
  const isOpen = ({ scopes }: DocumentedOperation): boolean =>
    scopes.some((all) => all.every((each) => held.has(each)))
  const opens = operations.filter(isOpen)
  const together = operations.filter(
    (operation) => operation.scopes.some((all) => all.some((each) => held.has(each))) && !isOpen(operation),
  )
  return { opens, together }
}

const operationLinks = (parts: DeveloperParts, operations: readonly DocumentedOperation[]): Slot =>
  html`<ul class="links">
    ${operations.map(
      (operation) =>
        html`<li>${operationLink(parts, operation)} <span class="quiet">${operation.area}</span></li>`,
    )}
  </ul>`

function dataScope(value: string, shown: readonly string[], parts: DeveloperParts): Html {
  const { catalogue } = parts
  const { opens, together } = usesOf(value, parts)
  const includes = shown.filter((other) => other !== value && catalogue.close([value]).has(other))
  const includedIn = shown.filter((other) => other !== value && catalogue.close([other]).has(value))
  const rows: Row[] = []
  if (opens.length > 0) rows.push(['Opens', operationLinks(parts, opens)])
  if (together.length > 0) rows.push(['Needed, together with others, for', operationLinks(parts, together)])
  if (includes.length > 0) rows.push(['Includes', codeWords(includes)])
  if (includedIn.length > 0) rows.push(['Included in', codeWords(includedIn)])
  return scopeItem(value, catalogue.get(value)?.description ?? '', rows)
}

const scopeItem = (value: string, description: string, rows: readonly Row[]): Html =>
  html`<article class="item" aria-labelledby="scope-${value}">
    <h3 id="scope-${value}"><code>${value}</code></h3>
    <p>${description}</p>
    ${rows.length > 0 && facts(rows)}
  </article>`

const personScope = ({ description, name }: (typeof IDENTITY_SCOPES)[number]): Html => {
  const claims = claimsOf(name)
  return scopeItem(name, description, claims.length > 0 ? [['Tells', codeWords(claims)]] : [])
}

/** The scope values in people's words, and what they open (C5). */
export const scopesPage = (parts: DeveloperParts): DeveloperPage =>
  guidePage('scopes', async () => {
    const { operations, scopes: shown } = parts.document()
    const items = await inSlices(shown, operations.length, (value) => dataScope(value, shown, parts))
    const userinfo = html`<code>${addressOf(parts, 'userinfo_endpoint')}</code>`
    return {
      example: [...shown.slice(0, 1), 'target:b/{business}'].join(' '),
      data: shown.length === 0 ? undefined : html`${items}`,
      person: html`${facts([['Userinfo', userinfo]])} ${IDENTITY_SCOPES.map(personScope)}`,
    }
  })
