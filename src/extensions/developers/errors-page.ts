import { errorsEnvelope } from '../../base/http/envelope.ts'
import { type FaultCode, type FaultRow, FAULTS } from '../../base/kernel/fault-table.ts'
import { describable } from '../../identity/steps/answers.ts'
import { html, type Html } from '../../identity/pages/layout.ts'
import { type CodeExample, errorAnchor, inJson, inXml, part, table } from './elements.ts'
import { addressOf, type DeveloperPage, type DeveloperParts } from './frame.ts'
import { guidePage, readMends } from './guide.ts'
import { prose } from './markdown.ts'

/** Where a client meets a fault: under `/api`, at the identity endpoints that answer JSON, or in a user's browser. */
type Place = 'api' | 'identity' | 'browser'

interface Case {
  readonly row: FaultRow
  readonly text: string
  readonly mends: readonly string[]
}

const LISTS = readMends()

/** Faults with the same text at the same status are one case: a client cannot tell them apart. */
function casesAt(place: Place): readonly Case[] {
  const here = [...LISTS].filter(([heading]) => heading.split(' and ').includes(place))
  const mends = new Map(here.flatMap(([, list]) => [...list]))
  const codes = (Object.keys(FAULTS) as FaultCode[]).filter((code) => mends.has(code))
  const groups = Map.groupBy(codes, (code) => `${FAULTS[code].status} ${FAULTS[code].text}`)
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const row: FaultRow = FAULTS[first]
    return { row, text: row.text, mends: [...new Set(group.map((code) => mends.get(code) ?? ''))] }
  })
}

type Keyed = readonly [key: string, cases: readonly Case[]]

/** By code and status, the lowest status first. */
const apiCases = (): readonly Keyed[] =>
  [...Map.groupBy(casesAt('api'), ({ row }) => `${row.wire} ${row.status}`)].sort(
    ([, [one]], [, [other]]) => (one?.row.status ?? 0) - (other?.row.status ?? 0),
  )

const caseList = (label: string, cases: readonly Case[]): Html =>
  html`<ul class="cases">
    ${cases.map(
      ({ mends, text }) =>
        html`<li>
          <p class="message"><span class="unseen">${label}: </span>${text}</p>
          <p class="mend"><strong>What to do:</strong> ${mends.map((mend) => html`${prose(mend)} `)}</p>
        </li>`,
    )}
  </ul>`

function codePart([key, cases]: Keyed): Html {
  const [code = '', status = ''] = key.split(' ')
  return part(
    errorAnchor(key),
    html`<span class="status">${status}</span> <code>${code}</code>`,
    html`<p>${LISTS.get('codes')?.get(key)}</p>`,
    caseList('Message', cases),
  )
}

const codeTable = (cases: readonly Keyed[]): Html =>
  table(
    'All codes of the API',
    ['Status', 'Code', 'In short'],
    cases.map(([key]) => {
      const [code = '', status = ''] = key.split(' ')
      const link = html`<a href="#${errorAnchor(key)}"><code>${code}</code></a>`
      return [status, link, LISTS.get('codes')?.get(key)]
    }),
  )

const oauthCases = (place: 'identity' | 'browser'): Html =>
  html`${[...Map.groupBy(casesAt(place), ({ row }) => row.oauth)].map(
    ([error, cases]) =>
      html`<h3 id="${place}-${error}">
          <code>${error}</code>${cases[0] && cases[0].row.status !== 400 && html` · ${cases[0].row.status}`}
        </h3>
        ${caseList('error_description', cases)}`,
  )}`

const SHOWN = [{ code: FAULTS.unknown_action.wire, message: FAULTS.unknown_action.text }]

const oauthExample = (): CodeExample =>
  inJson(
    JSON.stringify({
      error: FAULTS.invalid_client.oauth,
      error_description: describable(FAULTS.invalid_client.text),
    }),
  )

/** Every failure that a client can meet, from the table of faults (C2). */
export const errorsPage = (parts: DeveloperParts): DeveloperPage =>
  guidePage('errors', () => {
    const cases = apiCases()
    return {
      json: inJson(errorsEnvelope('json', SHOWN)),
      xml: inXml(errorsEnvelope('xml', SHOWN)),
      oauth: oauthExample(),
      codes: codeTable(cases),
      eachCode: html`${cases.map(codePart)}`,
      identity: oauthCases('identity'),
      authorize: addressOf(parts, 'authorization_endpoint'),
      browser: oauthCases('browser'),
    }
  })
