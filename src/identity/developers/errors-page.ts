import { errorsEnvelope } from '../../http/envelope.ts'
import type { FaultRow } from '../../kernel/fault-row.ts'
import { type FaultCode, FAULTS } from '../../kernel/fault-table.ts'
import { describable } from '../answers.ts'
import { html, type Html } from '../pages/layout.ts'
import { codeBlock, paragraph, paragraphs, part, prose, table } from './elements.ts'
import { errorAnchor } from './error-anchor.ts'
import { ERROR_GUIDE, type Place } from './error-guide.ts'
import { prettyJson, prettyXml } from './examples.ts'
import type { DeveloperPage } from './frame.ts'
import { addressOf, type DeveloperParts } from './parts.ts'
import { ERROR_TEXTS as T } from './texts/errors.ts'

/** One text that a client can read, and what to do about it. */
interface Case {
  readonly row: FaultRow
  readonly text: string
  /** Faults that read the same may have several ways out. */
  readonly mends: readonly string[]
}

/** Faults with the same text at the same status are one case: a client cannot tell them apart. */
function casesAt(place: Place): readonly Case[] {
  const codes = (Object.keys(FAULTS) as FaultCode[]).filter((code) =>
    ERROR_GUIDE[code].places.includes(place),
  )
  const groups = Map.groupBy(codes, (code) => `${FAULTS[code].status} ${FAULTS[code].text}`)
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const row: FaultRow = FAULTS[first]
    return { row, text: row.text, mends: [...new Set(group.map((code) => ERROR_GUIDE[code].mend))] }
  })
}

const wireKey = ({ row }: Case): string => `${row.wire} ${row.status}`

/** By status and code, in the order of the statuses. */
const API_CASES = [...Map.groupBy(casesAt('api'), wireKey)].sort(
  ([, [one]], [, [other]]) => (one?.row.status ?? 0) - (other?.row.status ?? 0),
)

/** By `error`, in the order of the table. */
const byError = (place: Place): readonly (readonly [string, readonly Case[]])[] => [
  ...Map.groupBy(casesAt(place), ({ row }) => row.oauth),
]

const caseItem = (label: string, { mends, text }: Case): Html =>
  html`<li>
    <p class="message"><span class="unseen">${label}: </span>${text}</p>
    <p class="mend"><strong>${T.mend}:</strong> ${mends.map((mend) => html`${prose(mend)} `)}</p>
  </li>`

const caseList = (label: string, cases: readonly Case[]): Html =>
  html`<ul class="cases">
    ${cases.map((each) => caseItem(label, each))}
  </ul>`

const wirePart = ([key, cases]: (typeof API_CASES)[number]): Html => {
  const [code = '', status = ''] = key.split(' ')
  return part(
    errorAnchor(key),
    html`<span class="status">${status}</span> <code>${code}</code>`,
    html`<p>${T.short[key]}</p>`,
    caseList(T.message, cases),
  )
}

const summary = (): Html =>
  part(
    'codes',
    T.summary,
    table(
      T.summary,
      T.summaryHeads,
      API_CASES.map(([key]) => {
        const [code = '', status = ''] = key.split(' ')
        return [status, html`<a href="#${errorAnchor(key)}"><code>${code}</code></a>`, T.short[key]]
      }),
    ),
  )

const oauthPart = (place: 'identity' | 'browser', title: string, text: string): Html =>
  part(
    place,
    title,
    paragraph(text),
    byError(place).map(
      ([error, cases]) =>
        html`<h3 id="${place}-${error}">
            <code>${error}</code>${cases[0] && cases[0].row.status !== 400 && html` · ${cases[0].row.status}`}
          </h3>
          ${caseList('error_description', cases)}`,
    ),
  )

const SHOWN = FAULTS.unknown_action
const SHOWN_ERROR = [{ code: SHOWN.wire, message: SHOWN.text }]

const form = (): Html =>
  part(
    'form',
    T.form,
    paragraphs(T.formText),
    codeBlock('JSON', T.jsonExample, prettyJson(errorsEnvelope('json', SHOWN_ERROR))),
    codeBlock('XML', T.xmlExample, prettyXml(errorsEnvelope('xml', SHOWN_ERROR))),
    paragraph(T.oauthForm),
    codeBlock('JSON', T.oauthExample, oauthExample()),
    paragraph(T.requestId),
  )

const oauthExample = (): string =>
  JSON.stringify(
    {
      error: FAULTS.invalid_client.oauth,
      error_description: describable(FAULTS.invalid_client.text),
    },
    null,
    2,
  )

/** Every failure that a client can meet, from the table of faults (C2). */
export function errorsPage(parts: DeveloperParts): DeveloperPage {
  return {
    path: '/errors',
    title: T.title,
    lead: T.lead,
    body: () =>
      html`${form()} ${summary()} ${API_CASES.map(wirePart)}
      ${part('others', T.others, paragraph(T.othersText))}
      ${oauthPart('identity', T.identity, T.identityText)}
      ${oauthPart('browser', T.browser, T.browserText(addressOf(parts, 'authorization_endpoint')))}`,
  }
}
