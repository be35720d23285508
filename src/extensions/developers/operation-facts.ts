/** The needs and answers of an operation: a row for each thing that its reader must know. */
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import { plainText } from '../../base/http/body/json.ts'
import { html, type Html, type Slot } from '../../identity/pages/layout.ts'
import { type DocumentedOperation, type Parameter, plain, type DocumentSchema } from './document.ts'
import { bullets, codeWords, errorAnchor } from './elements.ts'
import { type DeveloperParts, DEVELOPERS_PATH } from './frame.ts'
import { prose } from './markdown.ts'
import { schemaWords } from './schema-words.ts'

type Row = readonly [string, Slot]

export const operationFacts = (operation: DocumentedOperation, parts: DeveloperParts): readonly Row[] =>
  [
    scopeRow(operation, parts.catalogue),
    pathRow(operation),
    queryRow(operation, parts),
    versionsRow(operation),
    bodyRow(operation),
    answersRow(operation),
    errorsRow(operation, parts),
  ].filter((row) => row !== undefined)

function scopeRow({ scopes }: DocumentedOperation, catalogue: Catalogue): Row {
  const [only, ...others] = scopes
  const words = (values: readonly string[]): readonly Html[] =>
    values.map((value) => html`<code>${value}</code> ${catalogue.get(value)?.description}`)
  if (only === undefined) return ['Scope', '']
  if (others.length === 0 && only.length === 1) return ['Scope', html`${words(only)}`]
  if (others.length === 0) return ['Scope', html`All of these are needed: ${bullets(words(only))}`]
  if (scopes.every((all) => all.length === 1))
    return ['Scope', html`One of these is enough: ${bullets(scopes.map((all) => words(all)))}`]
  const lines = scopes.map((all) => html`${words(all).map((word, at) => html`${at > 0 && ' + '}${word}`)}`)
  return ['Scope', html`One of these lines is enough; of a line, all are needed: ${bullets(lines)}`]
}

function pathRow(operation: DocumentedOperation): Row {
  const words = (parameter: Parameter, at: number): Slot => {
    const { description = '', schema, 'x-postern-segment': segment } = parameter
    if (at < operation.places) return plain(description)
    return segment === undefined
      ? valueText(schema)
      : html`${plain(description)} Of each segment: ${valueText(segment)}`
  }
  const parameters = operation.parametersIn('path')
  return [
    'In the address',
    bullets(parameters.map((each, at) => html`<code>{${each.name}}</code> ${words(each, at)}`)),
  ]
}

/** The values that a parameter of the path takes, in words. A pattern of the configuration fits the whole value. */
function valueText({ enum: values, format, minimum, pattern, type }: DocumentSchema): Html {
  if (values !== undefined)
    return html`One of: ${values.map((value, at) => html`${at > 0 && ', '}<code>${plainText(value)}</code>`)}`
  if (pattern !== undefined)
    return html`A text that fits as a whole: <code>/${pattern.replace(/^\^\(\?:(.*)\)\$$/s, '$1')}/</code>`
  if (type === 'integer') return html`${minimum === undefined ? 'A whole number.' : 'A whole number from 0.'}`
  return prose(format === 'uuid' ? 'A UUID, as `7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f`.' : 'A text.')
}

function queryRow(operation: DocumentedOperation, { document }: DeveloperParts): Row | undefined {
  const query = operation.parametersIn('query')
  if (query.length === 0) return undefined
  const words = ({ description, name, required = false, schema }: Parameter): Html =>
    html`<code>${name}</code> ${schemaWords(schema, required, document())}${
        description !== undefined && html`. ${plain(description)}`
      }`
  return ['In the query', bullets(query.map(words))]
}

function versionsRow({
  answer,
  defaultVersion,
  isVersioned,
  versions,
}: DocumentedOperation): Row | undefined {
  if (!isVersioned) return undefined
  const typesOf = (version: number): Slot =>
    codeWords(answer.types.filter((type) => type.includes(`.v${version}+`)))
  return [
    'Versions',
    bullets(
      [...versions.keys()].map(
        (version) =>
          html`<strong>${version}</strong>${version === defaultVersion && html` (without asking)`}
            ${typesOf(version)}`,
      ),
    ),
  ]
}

function answersRow({ answer: { data, mayBeEmpty, types }, node }: DocumentedOperation): Row {
  if (data === undefined) {
    // In a report-only area `*/*` behind the others says only that no call is refused for its Accept header.
    const asked = types.filter(
      (type, at) => type !== '*/*' || at === 0 || node['x-postern-mode'] === undefined,
    )
    return ['Answers', html`As they are, without a frame: ${codeWords(asked)}`]
  }
  return [
    'Answers',
    html`JSON or XML, in the usual
    frame${mayBeEmpty && html`. ${prose('`Data` may be empty, where the data service has nothing to tell.')}`}`,
  ]
}

function bodyRow({ node: { requestBody } }: DocumentedOperation): Row | undefined {
  if (requestBody === undefined) return undefined
  const { content, required = false, 'x-postern-limit': limit } = requestBody
  const types = html`As ${codeWords(Object.keys(content))}.`
  if (limit === undefined) return ['Request body', html`${types} Of any size. It is passed on as it is.`]
  return [
    'Request body',
    html`${required ? 'Required.' : 'You may leave it out.'} ${types} At most ${Math.floor(limit / 1024)} KiB.`,
  ]
}

function errorsRow({ failures }: DocumentedOperation, { theme }: DeveloperParts): Row {
  const page = theme.at(`${DEVELOPERS_PATH}/errors`)
  const link = (key: string): Html => {
    const [code = '', status = ''] = key.split(' ')
    return html`<li>
      <a href="${page}#${errorAnchor(key)}">${status}<span class="unseen"> ${code}</span></a>
    </li>`
  }
  return [
    'Errors',
    html`<ul class="statuses">
      ${failures.map(link)}
    </ul>`,
  ]
}
