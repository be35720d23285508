import type { ExampleDescription, OperationDescription } from '../../contracts/api-description.ts'
import { html, type Html } from '../pages/layout.ts'
import { type CurlCall, curlCommand, filledPath, loginOf } from './commands.ts'
import { answerInJson, answerInXml, bodyInJson, bodyInXml, codeBlock, operationTitle } from './elements.ts'
import type { DeveloperParts } from './frame.ts'
import { AREA_TEXTS as T } from './texts.ts'

type Headers = NonNullable<CurlCall['headers']>

/** What asks for the version of an example; nothing for the one that is given without asking. */
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
    url: api.baseUrl + filledPath(operation, loginOf(sample), example?.parameters),
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

/** A command and its answer for each example, or the command alone where there are none. */
export const exampleBlocks = (operation: OperationDescription, parts: DeveloperParts): Html =>
  operation.examples.length === 0
    ? blocksOf(operation, undefined, parts)
    : html`${operation.examples.map((example) => blocksOf(operation, example, parts))}`
