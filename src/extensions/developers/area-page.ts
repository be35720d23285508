import { plainText } from '../../base/http/body/json.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type {
  AreaDescription,
  ExampleDescription,
  OperationDescription,
  ParameterDescription,
  QueryParameterDescription,
} from '../../base/contracts/calls/api-description.ts'
import { type BodySchema, isNothing, typesOf } from '../../base/http/body/body-schema.ts'
import { FAULTS } from '../../base/kernel/fault-table.ts'
import { Slices } from '../../base/kernel/slices.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import {
  type CurlCall,
  curlCommand,
  filledPath,
  queryOf,
  keepToken,
  leastScopes,
  loginOf,
  tokenCall,
  withoutIncluded,
} from './commands.ts'
import {
  answerInJson,
  answerInXml,
  bodyInJson,
  bodyInXml,
  codeBlock,
  errorAnchor,
  facts,
  markdown,
  operationTitle,
  paragraph,
  part,
  prose,
  table,
} from './elements.ts'
import { addressOf, areaPath, type DeveloperPage, type DeveloperParts, DEVELOPERS_PATH } from './frame.ts'
import { AREA_TEXTS as T } from './texts.ts'

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

/** Steps of `Slices` that one operation counts as, since it takes about as long. */
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

type Row = readonly [string, Slot]

const scopeWords = (value: string, catalogue: Catalogue): Html =>
  html`<code>${value}</code> ${catalogue.get(value)?.description}`

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

function parameterText({ kind, type, values, rest }: ParameterDescription): Html {
  if (kind !== 'own') return html`${T[kind]}`
  if (rest) return html`${T.rest} ${segmentText({ type, values })}`
  return segmentText({ type, values })
}

function segmentText({ type, values }: Pick<ParameterDescription, 'type' | 'values'>): Html {
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

function queryRow({ query }: OperationDescription): Row | undefined {
  if (query.length === 0) return undefined
  const wordsOf = ({ schema, required, default: value }: QueryParameterDescription): string =>
    [
      typeText(schema),
      ...rulesOf(schema),
      ...(required ? [T.required] : []),
      ...(value === undefined ? [] : [T.byDefault(plainText(value))]),
    ].join('; ')
  return [
    T.query,
    html`<ul>
      ${query.map(
        (each) =>
          html`<li>
            <code>${each.name}</code> ${wordsOf(each)}${
              each.schema.description !== undefined && html`. ${each.schema.description}`
            }
          </li>`,
      )}
    </ul>`,
  ]
}

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

function operationPart(operation: OperationDescription, parts: DeveloperParts): Html {
  const { answer, body, description, id, method, path, websocket } = operation
  const rows = [
    scopeRow(operation, parts),
    parametersRow(operation),
    queryRow(operation),
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

type Headers = NonNullable<CurlCall['headers']>

/** The Accept header of an example's version; none for the default version. */
function acceptOf({ answer, defaultVersion }: OperationDescription, version: number): Headers {
  if (answer.kind === 'own') return [['Accept', answer.types[0] ?? '*/*']]
  if (version === defaultVersion) return []
  const type = answer.types.find(({ format, version: of }) => format === 'json' && of === version)
  return type === undefined ? [] : [['Accept', type.type]]
}

/** The body of a command: that of an example; else a file that the reader has. */
function bodyOf(
  { body }: OperationDescription,
  example: ExampleDescription | undefined,
): Partial<CurlCall> & { headers: Headers } {
  if (body === undefined) return { headers: [] }
  const type =
    body.kind === 'parsed'
      ? 'application/json'
      : (body.types.find((each) => !each.includes('*')) ?? 'application/octet-stream')
  const headers = [['Content-Type', type]] as const
  if (body.kind === 'opaque') return { headers, body: '@FILE' }
  if (example?.body !== undefined) return { headers, body: JSON.stringify(example.body) }
  return body.required ? { headers, body: '@FILE' } : { headers: [] }
}

function commandOf(
  operation: OperationDescription,
  example: ExampleDescription | undefined,
  parts: DeveloperParts,
): string {
  const { api, sample } = parts
  const body = bodyOf(operation, example)
  return curlCommand({
    ...body,
    url:
      api.baseUrl + filledPath(operation, loginOf(sample), example?.parameters) + queryOf(operation, example),
    method: operation.method,
    bearer: 'TOKEN',
    headers: [...acceptOf(operation, example?.version ?? operation.defaultVersion), ...body.headers],
  })
}

const inBoth = (label: string, title: string, json: string, xml: string | undefined): Html =>
  html`<h3>${label}</h3>
    ${codeBlock('JSON', `${title}: ${label}, JSON`, json)}
    ${
      xml !== undefined &&
      html`<details>
        <summary>${T.inXml}</summary>
        ${codeBlock('XML', `${title}: ${label}, XML`, xml)}
      </details>`
    }`

function blocksOf(
  operation: OperationDescription,
  example: ExampleDescription | undefined,
  parts: DeveloperParts,
): Html {
  const { answer, body, defaultVersion } = operation
  const items = answer.kind === 'envelope' ? answer.items : {}
  const title = operationTitle(operation)
  const version = example?.version === defaultVersion ? undefined : example?.version
  const data = answer.kind === 'envelope' ? example?.data : undefined
  return html`${example?.summary !== undefined && html`<p class="example">${example.summary}</p>`}
  ${codeBlock('Shell', `${title}: ${T.command}`, commandOf(operation, example, parts))}
  ${
    example?.body !== undefined &&
    inBoth(
      T.bodyExample,
      title,
      bodyInJson(example.body),
      body?.kind === 'parsed' && body.ownXml ? undefined : bodyInXml(example.body, items),
    )
  }
  ${
    data !== undefined &&
    inBoth(
      T.answerExample(version),
      title,
      answerInJson(data),
      answer.kind === 'envelope' && answer.ownXml ? undefined : answerInXml(data, items),
    )
  }`
}

const exampleBlocks = (operation: OperationDescription, parts: DeveloperParts): Html =>
  operation.examples.length === 0
    ? blocksOf(operation, undefined, parts)
    : html`${operation.examples.map((example) => blocksOf(operation, example, parts))}`

interface MemberRow {
  /** `Address.Locality`; the items of a list are `Tags[]`. */
  readonly path: string
  readonly type: string
  readonly rule: string
  readonly description: string | undefined
}

/** Deeper members, and more of them, are left out: a page is no place for them. */
const DEEPEST = 8
const MOST_ROWS = 300

/** The members of an object's schema; empty for a schema that names none. A schema with a name is told once. */
function memberRows(schema: BodySchema): readonly MemberRow[] {
  const rows: MemberRow[] = []
  const told = new Set<string>()
  const tell = (part: BodySchema, under: string, depth: number): void => {
    const { $id: name, properties = {}, required, items } = part
    if (depth > DEEPEST || (name !== undefined && told.has(name))) return
    if (name !== undefined) told.add(name)
    for (const [key, member] of Object.entries(properties)) {
      if (rows.length >= MOST_ROWS) return
      if (isNothing(member)) continue
      const path = under === '' ? key : `${under}.${key}`
      rows.push(rowOf(path, member, required?.includes(key) ?? false))
      tell(member, path, depth + 1)
    }
    if (items !== undefined) tell(items, `${under}[]`, depth + 1)
  }
  tell(schema, '', 0)
  return rows
}

const rowOf = (path: string, schema: BodySchema, required: boolean): MemberRow => ({
  path,
  type: typeText(schema),
  rule: [...(required ? [T.required] : []), ...rulesOf(schema)].join('; '),
  description: schema.description ?? schema.title,
})

function typeText(schema: BodySchema): string {
  const types = typesOf(schema)
  if (types.length === 0) return T.anything
  const word = (type: (typeof types)[number]): string =>
    type === 'array' && schema.items ? T.list(schema.items.$id ?? typeText(schema.items)) : T.typeWords[type]
  return types.map(word).join(T.or)
}

const has = (...values: readonly unknown[]): boolean => values.some((value) => value !== undefined)

function rulesOf(schema: BodySchema): readonly string[] {
  const { format, maxItems, maxLength, maximum, minItems, minLength, minimum, pattern } = schema
  const R = T.rules
  return [
    ...(isNothing(schema) ? [R.never] : schema.enum ? [R.enum(schema.enum.map(plainText))] : []),
    ...(schema.const === undefined ? [] : [R.const(plainText(schema.const))]),
    ...(format ? [R.format[format]] : []),
    ...(pattern === undefined ? [] : [R.pattern(pattern)]),
    ...(has(minLength, maxLength) ? [R.length(minLength, maxLength)] : []),
    ...(has(minItems, maxItems) ? [R.items(minItems, maxItems)] : []),
    ...(has(minimum, maximum) ? [R.range(minimum, maximum)] : []),
    ...(schema.additionalProperties === false ? [R.closed] : []),
  ]
}
