import type { OperationDescription, ParameterDescription } from '../../contracts/api-description.ts'
import type { BodySchema } from '../../http/body-schema.ts'
import type { Catalogue } from '../../config/scopes/catalogue.ts'
import { FAULTS } from '../../kernel/fault-table.ts'
import { html, type Html, type Slot } from '../pages/layout.ts'
import { facts, markdown, part, prose, table } from './elements.ts'
import { errorAnchor } from './error-anchor.ts'
import { DEVELOPERS_PATH } from './frame.ts'
import { exampleBlocks } from './operation-examples.ts'
import { operationTitle } from './operation-title.ts'
import type { DeveloperParts } from './parts.ts'
import { memberRows } from './schema-members.ts'
import { AREA_TEXTS as T } from './texts/area.ts'

type Row = readonly [string, Slot]

const scopeWords = (value: string, catalogue: Catalogue): Html =>
  html`<code>${value}</code> ${catalogue.get(value)?.description}`

/** What a token needs, in people's words. */
function scopeRow({ scopes }: OperationDescription, { catalogue }: DeveloperParts): Row {
  const [only, ...others] = scopes
  const list = (values: readonly Slot[]): Html =>
    html`<ul>
      ${values.map((value) => html`<li>${value}</li>`)}
    </ul>`
  const words = (values: readonly string[]): readonly Html[] =>
    values.map((value) => scopeWords(value, catalogue))
  if (only === undefined) return [T.scope, '']
  if (others.length === 0 && only.length === 1) return [T.scope, html`${words(only)}`]
  if (others.length === 0) return [T.scope, html`${T.allOf} ${list(words(only))}`]
  if (scopes.every((all) => all.length === 1))
    return [T.scope, html`${T.oneOf} ${list(scopes.map((all) => words(all)))}`]
  const lines = scopes.map((all) => html`${words(all).map((word, at) => html`${at > 0 && ' + '}${word}`)}`)
  return [T.scope, html`${T.eachOf} ${list(lines)}`]
}

function parameterText({ kind, type, values }: ParameterDescription): Html {
  if (kind !== 'own') return html`${T[kind]}`
  if (values !== undefined)
    return html`${T.oneWord} ${values.map((value, at) => html`${at > 0 && ', '}<code>${value}</code>`)}`
  return type in T.types ? prose(T.types[type] ?? '') : html`${T.pattern} <code>${type}</code>`
}

const parametersRow = ({ parameters }: OperationDescription): Row => [
  T.parameters,
  html`<ul>
    ${parameters.map((parameter) => html`<li><code>{${parameter.name}}</code> ${parameterText(parameter)}</li>`)}
  </ul>`,
]

function versionsRow({ answer, defaultVersion, versions }: OperationDescription): Row | undefined {
  if (answer.kind !== 'envelope' || (versions.length === 1 && versions[0] === 1)) return undefined
  const typesOf = (version: number): Slot =>
    answer.types
      .filter(({ type, version: of }) => of === version && type.includes('/vnd.'))
      .map(({ type }) => html` <code>${type}</code>`)
  return [
    T.versions,
    html`<ul>
      ${versions.map((version) => html`<li><strong>${version}</strong>${version === defaultVersion && html` (${T.usual})`}${typesOf(version)}</li>`)}
    </ul>`,
  ]
}

const codes = (values: readonly string[]): Slot => values.map((value) => html` <code>${value}</code>`)

const inFrame = ({ mayBeEmpty }: { readonly mayBeEmpty: boolean }): Html =>
  html`${T.inFrame}${mayBeEmpty && html`. ${prose(T.mayBeEmpty)}`}`

const answersRow = ({ answer }: OperationDescription): Row => [
  T.answers,
  answer.kind === 'envelope' ? inFrame(answer) : html`${T.ownTypes}${codes(answer.types)}`,
]

function bodyRow({ body }: OperationDescription): Row | undefined {
  if (body === undefined) return undefined
  const types = html`${T.bodyTypes}${codes(body.types)}.`
  if (body.kind === 'opaque') return [T.body, html`${types} ${T.bodyStreamed}`]
  return [
    T.body,
    html`${body.required ? T.bodyRequired : T.bodyOptional} ${types}
    ${T.bodyLimit(Math.floor(body.limit / 1024))}`,
  ]
}

/** The statuses that its faults have, each code once, with links to what to do. */
function errorsRow({ faults }: OperationDescription, { theme }: DeveloperParts): Row {
  const rows = faults.map((code) => FAULTS[code]).sort((one, other) => one.status - other.status)
  const keys = new Set(rows.map(({ status, wire }) => `${wire} ${status}`))
  const page = theme.at(`${DEVELOPERS_PATH}/errors`)
  const link = (key: string): Html => {
    const [wire = '', status = ''] = key.split(' ')
    return html`<li>
      <a href="${page}#${errorAnchor(key)}">${status}<span class="unseen"> ${wire}</span></a>
    </li>`
  }
  return [
    T.errors,
    html`<ul class="statuses">
      ${[...keys].map(link)}
    </ul>`,
  ]
}

function members(label: string, schema: BodySchema | undefined): Html | undefined {
  const rows = schema === undefined ? [] : memberRows(schema)
  if (rows.length === 0) return undefined
  return html`<details>
    <summary>${prose(label)}</summary>
    ${table(
      label.replaceAll('`', ''),
      T.memberHeads,
      rows.map(({ description, path, rule, type }) => [
        html`<code>${path}</code>`,
        type,
        html`${rule}${description !== undefined && html`${rule !== '' && '. '}${description}`}`,
      ]),
    )}
  </details>`
}

/** All that a client needs to know of one operation. */
export function operationPart(operation: OperationDescription, parts: DeveloperParts): Html {
  const { answer, body, description, id, method, path, websocket } = operation
  const rows = [
    scopeRow(operation, parts),
    parametersRow(operation),
    versionsRow(operation),
    bodyRow(operation),
    answersRow(operation),
    websocket ? ([T.websocket, T.websocketText] as const) : undefined,
    errorsRow(operation, parts),
  ].filter((row) => row !== undefined)
  return part(
    id,
    operationTitle(operation),
    html`<p class="address"><span class="method">${method}</span> <code>${path}</code></p>`,
    description !== undefined && markdown(description),
    facts(rows),
    exampleBlocks(operation, parts),
    members(T.membersOfBody, body?.kind === 'parsed' ? body.schema : undefined),
    members(T.membersOfData, answer.kind === 'envelope' ? answer.data : undefined),
  )
}
