import { html, type Html } from '../../identity/pages/layout.ts'
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
import { type Area, type DocumentedOperation, plain, type WholeExample } from './document.ts'
import {
  answerInBoth,
  bodyInBoth,
  codeBlock,
  contentsItem,
  facts,
  type InBoth,
  inSlices,
  part,
} from './elements.ts'
import { addressOf, areaPath, type DeveloperPage, type DeveloperParts } from './frame.ts'
import { markdown, paragraph } from './markdown.ts'
import { operationFacts } from './operation-facts.ts'
import { memberTable } from './schema-words.ts'

/** The operations of an area. */
export function areaPage(name: string, parts: DeveloperParts): DeveloperPage {
  return {
    path: areaPath(name),
    name,
    content: async () => {
      const document = parts.document()
      const area = document.areas.find((each) => each.name === name)
      const operations = document.operationsOf(name)
      const described = await inSlices(operations, STEPS, (operation) => operationPart(operation, parts))
      const body = html`${area && aboutArea(area)} ${contents(operations)} ${tokenPart(operations, parts)}
      ${described}`
      return { title: name, lead: undefined, body }
    },
  }
}

const aboutArea = ({ description, 'x-postern-mode': mode }: Area): Html =>
  html`<div class="lead">${markdown(plain(description))}</div>
    ${mode === 'report-only' && html`<p class="notice">Here no call is refused yet for its token, scope or target. That will change. Send a token with the right scope and target already now.</p>`}`

function tokenPart(operations: readonly DocumentedOperation[], parts: DeveloperParts): Html {
  const { catalogue, sample } = parts
  const needed = operations.flatMap((operation) => leastScopes(operation, catalogue))
  const scopes = withoutIncluded(needed, catalogue)
  const call = tokenCall(loginOf(sample), addressOf(parts, 'token_endpoint'), scopes)
  const words = scopes.length === 1 ? 'the scope' : 'the scopes'
  const text = `The commands below use the variable \`TOKEN\`. This command fills it, with ${words} that the operations of this page need.`
  return part(
    'token',
    'A token for the commands of this page',
    paragraph(sample === undefined ? `${text} Replace the words in capital letters first.` : text),
    codeBlock(keepToken(call), 'A token for the commands of this page'),
  )
}

const contents = (operations: readonly DocumentedOperation[]): Html =>
  html`<nav class="contents" aria-label="On this page">
    <ul>
      ${operations.map((operation) =>
        contentsItem(operation, html`<a href="#${operation.id}">${operation.node.summary}</a>`),
      )}
    </ul>
  </nav>`

/** How many steps of `Slices` one operation counts as, because it takes about as long. */
const STEPS = 64

function operationPart(operation: DocumentedOperation, parts: DeveloperParts): Html {
  const { answer, examples, id, method, node, path } = operation
  const document = parts.document()
  const shown = examples.length === 0 ? [undefined] : examples
  const body = Object.values(node.requestBody?.content ?? {})[0]?.schema
  return part(
    id,
    node.summary,
    html`<p class="address"><span class="method">${method}</span> <code>${path}</code></p>`,
    markdown(plain(node.description)),
    facts(operationFacts(operation, parts)),
    shown.map((example) => exampleBlocks(operation, example, parts)),
    memberTable('Members of the request body', body, document),
    memberTable('Members of `Data` in the answer', answer.data, document),
  )
}

function exampleBlocks(
  operation: DocumentedOperation,
  example: WholeExample | undefined,
  parts: DeveloperParts,
): Html {
  const { body, data, summary, version } = example ?? {}
  const { defaultVersion, node } = operation
  const items = node['x-postern-items'] ?? {}
  const answer =
    version === undefined || version === defaultVersion ? 'Answer' : `Answer in version ${version}`
  const command = curlCommand(callOf(operation, example, parts))
  const inBoth = (of: 'answer' | 'body', label: string, [json, xml]: InBoth): Html => {
    const title = `${node.summary}: ${label}`
    const asXml = xml && operation.isMapped(of) && codeBlock(xml, `${title}, XML`)
    return html`<h3>${label}</h3>
      ${codeBlock(json, `${title}, JSON`)}
      ${
        asXml &&
        html`<details>
          <summary>The same in XML</summary>
          ${asXml}
        </details>`
      }`
  }
  return html`${summary !== undefined && html`<p class="example">${summary}</p>`}
  ${codeBlock(command, `${node.summary}: Command`)}
  ${body !== undefined && inBoth('body', 'Request body', bodyInBoth(body, items))}
  ${data !== undefined && inBoth('answer', answer, answerInBoth(data, items))}`
}

function callOf(
  operation: DocumentedOperation,
  example: WholeExample | undefined,
  parts: DeveloperParts,
): CurlCall {
  const { headers, ...body } = bodyOf(operation, example)
  return {
    ...body,
    url:
      parts.document().baseUrl +
      filledPath(operation, loginOf(parts.sample), example) +
      queryOf(operation, example),
    method: operation.method,
    bearer: 'TOKEN',
    headers: [...acceptOf(operation, example?.version), ...headers],
  }
}

type Headers = NonNullable<CurlCall['headers']>

/** The Accept header of an example's version; none for the default version. */
function acceptOf(
  { answer, defaultVersion, versions }: DocumentedOperation,
  version = defaultVersion,
): Headers {
  if (answer.data === undefined) return [['Accept', answer.types[0] ?? '*/*']]
  const type = version === undefined || version === defaultVersion ? undefined : versions.get(version)
  return type === undefined ? [] : [['Accept', type]]
}

/** The body of a command: that of an example, or a file that the reader has. */
function bodyOf(
  { node: { requestBody } }: DocumentedOperation,
  example: WholeExample | undefined,
): Partial<CurlCall> & { headers: Headers } {
  if (requestBody === undefined) return { headers: [] }
  if (requestBody['x-postern-limit'] === undefined) {
    const type = Object.keys(requestBody.content).find((each) => !each.includes('*'))
    return { headers: [['Content-Type', type ?? 'application/octet-stream']], body: '@FILE' }
  }
  const headers = [['Content-Type', 'application/json']] as const
  if (example?.body !== undefined) return { headers, body: JSON.stringify(example.body) }
  return requestBody.required === true ? { headers, body: '@FILE' } : { headers: [] }
}
