import type {
  ApiDescription,
  AreaDescription,
  AuthorizationDescription,
  BodyDescription,
  OperationDescription,
  ParameterDescription,
} from '../../contracts/api-description.ts'
import { API_VERSION } from '../checks.ts'
import type { OpenapiConfig } from '../describe/schema.ts'
import { Components, markdown, type Node } from './components.ts'
import { type JsonText, mergedText, objectText } from './json-text.ts'
import { responsesOf } from './responses.ts'
import { bodySchema } from './schemas.ts'
import { securityOf, securitySchemes } from './security.ts'

type About = Exclude<OpenapiConfig, 'off'>

/** The parts that the model does not hold. */
export interface DocumentParts {
  readonly authorization: AuthorizationDescription
  readonly license: About['license']
  readonly contact: About['contact']
}

/** SPDX 2.3 §7.13: nobody has said. */
const NO_LICENSE = { name: 'Not stated', identifier: 'NOASSERTION' }

/** The OpenAPI 3.1 document of an API (C11.3), as JSON. */
export function openapiDocument(
  api: ApiDescription,
  { authorization, license, contact }: DocumentParts,
): JsonText {
  const components = new Components()
  const operations = api.areas.flatMap((area) => area.operations)
  const paths = pathsOf(operations, authorization, components)
  const head = {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version: API_VERSION,
      ...(api.description !== undefined && { description: markdown(api.description) }),
      license: license === undefined ? NO_LICENSE : license,
      ...(contact && { contact }),
    },
    servers: [{ url: api.baseUrl }],
    tags: api.areas.map(tagOf),
  }
  const schemes = operations.length > 0 ? { securitySchemes: securitySchemes(api, authorization) } : {}
  // Not `mergedText`: a slice of a text as long as this copies all of it.
  return `${JSON.stringify(head).slice(0, -1)},"paths":${paths},"components":${components.toText(schemes)}}`
}

const tagOf = ({ name, description = `Operations of ${name}`, mode }: AreaDescription): Node => ({
  name,
  description: markdown(description),
  ...(mode === 'report-only' && { 'x-postern-mode': mode }),
})

/**
 * OpenAPI knows one path item for all paths that differ in the names of their parameters only, and one operation for each
 * of its methods. Where types of parameters lead to several, the first stands there and names the others.
 */
function pathsOf(
  operations: readonly OperationDescription[],
  authorization: AuthorizationDescription,
  components: Components,
): JsonText {
  const byShape = Map.groupBy(operations, ({ path }) => path.replaceAll(/\{[^{}]*\}/g, '{}'))
  const paths = [...byShape.values()].map((same) => {
    const path = same[0]?.path ?? ''
    const byMethod = Map.groupBy(same, ({ method }) => method)
    const item = [...byMethod].flatMap(([method, [first, ...others]]) =>
      first === undefined
        ? []
        : [
            [
              method.toLowerCase(),
              operationText(renamed(first, path), others, authorization, components),
            ] as const,
          ],
    )
    return [path, objectText(item)] as const
  })
  return objectText(paths)
}

/** The operation with its parameters named as in the path that it shares. */
function renamed(operation: OperationDescription, path: string): OperationDescription {
  if (operation.path === path) return operation
  const names = [...path.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1] ?? '')
  const parameters = operation.parameters.map((each, at) => ({ ...each, name: names[at] ?? each.name }))
  return { ...operation, path, parameters }
}

function operationText(
  operation: OperationDescription,
  others: readonly OperationDescription[],
  authorization: AuthorizationDescription,
  components: Components,
): JsonText {
  const { id, area, action, method, summary = `${method} ${area}/${action}`, level, mode, body } = operation
  const own = {
    operationId: id,
    summary,
    description: wordsOf(operation, others),
    tags: [area],
    ...(body && { requestBody: requestBody(body, operation, components) }),
    'x-postern-target': level,
    ...(mode === 'report-only' && { 'x-postern-mode': mode }),
  }
  const security = components.remember(`security ${mode} ${JSON.stringify(operation.scopes)}`, () =>
    securityOf(operation, authorization),
  )
  const parameters = components.remember(parametersKey(operation, others), () =>
    parametersOf(operation, others, components),
  )
  const responses = responsesOf(operation, components)
  return mergedText(
    JSON.stringify(own),
    `{"security":${security},"parameters":${parameters},"responses":${responses}}`,
  )
}

/** All that `parametersOf` reads; `values` come from `type`. Types stand last, since they may hold anything. */
function parametersKey(operation: OperationDescription, others: readonly OperationDescription[]): string {
  const { notModified, precondition, ranges } = operation.answer.successes
  let key = `parameters ${notModified} ${precondition} ${ranges}`
  for (const { parameters } of [operation, ...others])
    for (const { name, kind, type } of parameters) key += ` ${name} ${kind} ${JSON.stringify(type)}`
  return key
}

const TARGETS = {
  business: 'The token’s target is the business of the URL: `target:b/CODE`.',
  fund: 'The token’s target is the fund of the URL, `target:f/CODE/FUND`, or its business, `target:b/CODE`.',
}

/** The operator's own words, then ours: what no field of OpenAPI says. */
function wordsOf(
  { description, level, versions, defaultVersion, websocket, mode }: OperationDescription,
  others: readonly OperationDescription[],
): string {
  return [
    ...(description === undefined ? [] : [markdown(description)]),
    TARGETS[level],
    ...(versions.length > 1
      ? [`Without a version in \`Accept\`, the answer is of version ${defaultVersion}.`]
      : []),
    ...(websocket ? ['A GET may ask for a websocket (RFC 6455).'] : []),
    ...(mode === 'report-only'
      ? ['Calls are let through whatever their token says; what would be refused is only noted.']
      : []),
    ...(others.length === 0
      ? []
      : [
          `Values of other types in the path are other operations: ${others.map(({ id }) => `\`${id}\``).join(', ')}.`,
        ]),
  ].join('\n\n')
}

/** A code of a business or fund (C3.5): printable ASCII but space, quotes, slash and backslash, and no dot segment. */
const CODE = { type: 'string', pattern: String.raw`^(?!\.{1,2}$)[\x21\x23-\x2E\x30-\x5B\x5D-\x7E]+$` }

const SCHEMAS: Readonly<Record<string, Node>> = {
  '': { type: 'string', minLength: 1 },
  uuid: { type: 'string', format: 'uuid' },
  integer: { type: 'integer', format: 'int64', minimum: 0 },
}

function schemaOf({ kind, type, values }: ParameterDescription): Node {
  if (kind !== 'own') return CODE
  if (values !== undefined) return { type: 'string', enum: values }
  return SCHEMAS[type] ?? { type: 'string', pattern: `^(?:${type.slice(1, -1)})$` }
}

const KINDS = {
  business: 'Code of the business. Its case counts.',
  fund: 'Code of the fund. Its case counts.',
} as const

function parametersOf(
  { parameters, answer }: OperationDescription,
  others: readonly OperationDescription[],
  components: Components,
): readonly unknown[] {
  const inPath = parameters.map((parameter, at) => {
    const { name, kind } = parameter
    const types = new Map(
      [parameter, ...others.flatMap((other) => other.parameters[at] ?? [])].map((each) => [each.type, each]),
    )
    const schemas = [...types.values()].map(schemaOf)
    const schema = schemas.length === 1 ? schemas[0] : { anyOf: schemas }
    const node = { name, in: 'path', required: true, schema }
    if (kind === 'own') return node
    return components.share('parameters', name, () => ({ ...node, description: KINDS[kind] }))
  })
  const { notModified, precondition, ranges } = answer.successes
  const header = (name: string, description: string): unknown =>
    components.share('parameters', name, () => ({
      name,
      in: 'header',
      description,
      schema: { type: 'string' },
    }))
  return [
    ...inPath,
    ...(notModified
      ? [header('If-None-Match', 'The `ETag` of an earlier answer: 304 if it still holds.')]
      : []),
    ...(precondition
      ? [header('If-Match', 'The `ETag` of an earlier answer: 412 if the data has changed since.')]
      : []),
    ...(ranges ? [header('Range', 'The part of the data that is wanted, such as `bytes=0-999`.')] : []),
  ]
}

function requestBody(body: BodyDescription, operation: OperationDescription, components: Components): Node {
  if (body.kind === 'opaque') return { content: Object.fromEntries(body.types.map((type) => [type, {}])) }
  const { schema, required, types, ownXml } = body
  const media = schema === undefined ? {} : { schema: bodySchema(schema, operation, components) }
  const examples = bodyExamples(operation, components)
  const content = types.map((type) => {
    if (type.endsWith('/xml') && ownXml) return [type, {}] as const
    return [type, { ...media, ...(type.endsWith('/json') && examples && { examples }) }] as const
  })
  return { required, content: Object.fromEntries(content) }
}

function bodyExamples({ id, examples }: OperationDescription, components: Components): Node | undefined {
  const found = examples.filter(({ body }) => body !== undefined)
  if (found.length === 0) return undefined
  return Object.fromEntries(
    found.map(({ name, summary, body }) => [
      name,
      components.share('examples', `Body.${id}.${name}`, () => ({
        ...(summary !== undefined && { summary }),
        value: body,
      })),
    ]),
  )
}
