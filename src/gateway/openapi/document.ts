import type {
  ApiDescription,
  AreaDescription,
  AuthorizationDescription,
  BodyDescription,
  ForeignIssuerDescription,
  OperationDescription,
  ParameterDescription,
  QueryParameterDescription,
} from '../../base/contracts/calls/api-description.ts'
import type { ScalarValue } from '../../base/http/body/json.ts'
import { FURTHER_METHODS } from '../../base/http/head/head.ts'
import { API_VERSION } from '../decide/checks.ts'
import type { OpenapiConfig } from '../actions/description-schema.ts'
import {
  Components,
  type JsonText,
  escapedMarkdown,
  mergedText,
  type Node,
  objectText,
} from './components.ts'
import { namedApart, type NamedOperation, withNames } from './names.ts'
import { bodySchema, examplesOf, OWN_XML, responsesOf } from './responses.ts'
import { namesWithin } from './schemas.ts'

/** The security schemes by name: one of our own, or one for each issuer whose tokens a sidecar accepts (C11.2). */
function securitySchemes(api: ApiDescription, authorization: AuthorizationDescription): Node {
  if (authorization.kind === 'own') return { [OWN]: ownScheme(api, authorization) }
  return Object.fromEntries(
    authorization.issuers.map((issuer, index) => [schemeName(issuer, index), foreignScheme(api, issuer)]),
  )
}

const OWN = 'oauth2'

const schemeName = ({ name }: ForeignIssuerDescription, index: number): string =>
  name ?? (index === 0 ? 'issuer' : `issuer-${index + 1}`)

type Own = Extract<AuthorizationDescription, { kind: 'own' }>

/** OpenAPI 3.1 §4.8.27: the flows of the grants that the metadata announces (C6.3.2). */
function ownScheme(
  api: ApiDescription,
  { issuer, authorizationUrl, tokenUrl, grants, note = '' }: Own,
): Node {
  const scopes = Object.fromEntries(
    api.scopes.map(({ name, description, includedIn }) => [
      name,
      escapedMarkdown(
        includedIn.length === 0 ? description : `${description} (included in ${includedIn.join(', ')})`,
      ),
    ]),
  )
  const refresh = grants.includes('refresh_token') ? { refreshUrl: tokenUrl } : {}
  return {
    type: 'oauth2',
    description:
      `Access tokens of ${issuer}, one for each business or fund. A token with a scope value that includes the needed one is enough. ${note}`.trim(),
    flows: {
      ...(grants.includes('authorization_code') && {
        authorizationCode: { authorizationUrl, tokenUrl, ...refresh, scopes },
      }),
      ...(grants.includes('password') && { password: { tokenUrl, ...refresh, scopes } }),
    },
  }
}

function foreignScheme(
  { scopes, areas }: ApiDescription,
  { issuer, metadataUrl }: ForeignIssuerDescription,
): Node {
  const needed = new Set(areas.flatMap((area) => area.operations.flatMap((each) => each.scopes.flat())))
  const meanings = scopes
    .filter(({ name }) => needed.has(name))
    .map(({ name, description }) => `- \`${name}\`: ${escapedMarkdown(description)}`)
  const description = [`Access tokens of ${issuer}. Scope values:`, '', ...meanings].join('\n')
  return metadataUrl === undefined
    ? { type: 'http', scheme: 'bearer', description }
    : { type: 'openIdConnect', openIdConnectUrl: metadataUrl, description }
}

/** The alternatives of an operation. In a report-only area no token is one of them. */
function securityOf(
  { scopes, mode }: OperationDescription,
  authorization: AuthorizationDescription,
): readonly Node[] {
  const schemes = authorization.kind === 'own' ? [OWN] : authorization.issuers.map(schemeName)
  return [
    ...scopes.flatMap((values) => schemes.map((scheme) => ({ [scheme]: values }))),
    ...(mode === 'report-only' ? [{}] : []),
  ]
}

type About = Exclude<OpenapiConfig, 'off'>

/** The licence if nobody has stated one (SPDX 2.3 §7.13). */
const NO_LICENSE = { name: 'Not stated', identifier: 'NOASSERTION' }

const DESCRIPTION =
  'Data of businesses and of their funds. The URL of a call names whose data it is about. Each operation says which access token it needs.'

/** The OpenAPI 3.1 document of an API (C11.3), as JSON. */
export function openapiDocument(
  api: ApiDescription,
  {
    authorization,
    license,
    contact,
  }: {
    readonly authorization: AuthorizationDescription
    readonly license: About['license']
    readonly contact: About['contact']
  },
): JsonText {
  const operations = api.areas.flatMap((area) => area.operations)
  const components = new Components(namesWithin(operations.flatMap(schemasOf)))
  const paths = pathsOf(operations, authorization, components)
  const head = {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version: API_VERSION,
      description: escapedMarkdown(api.description ?? DESCRIPTION),
      license: license === undefined ? NO_LICENSE : license,
      contact: contact ?? { name: `The operator of ${new URL(api.baseUrl).host}` },
    },
    servers: [{ url: api.baseUrl }],
    tags: api.areas.map(tagOf),
  }
  const schemes = operations.length > 0 ? { securitySchemes: securitySchemes(api, authorization) } : {}
  // Not `mergedText`: a slice of a text as long as this copies all of it.
  return `${JSON.stringify(head).slice(0, -1)},"paths":${paths},${components.toMembers(schemes)}}`
}

const schemasOf = ({ answer, body }: OperationDescription) => [
  ...(answer.kind === 'envelope' && answer.data !== undefined ? [answer.data] : []),
  ...(body?.kind === 'parsed' && body.schema !== undefined ? [body.schema] : []),
]

const tagOf = ({
  name,
  description = `The operations of the area ${name}.`,
  mode,
}: AreaDescription): Node => ({
  name,
  description: escapedMarkdown(description),
  ...(mode === 'report-only' && { 'x-postern-mode': mode }),
})

/** OpenAPI 3.1 has no place for them (§4.8.9). */
const WITHOUT_PLACE: ReadonlySet<string> = new Set(FURTHER_METHODS)

/** An operation of the document, and those for which it stands: itself, then others that differ in the types of the path. */
interface Documented<Operation = OperationDescription> {
  readonly operation: Operation
  readonly variants: readonly OperationDescription[]
}

/**
 * OpenAPI knows one path item for all paths that differ in the names of their parameters only, and one operation for each
 * of its methods. Where types of parameters lead to several, the first is written there and names the others.
 */
function documentedOf(operations: readonly OperationDescription[]): readonly Documented[] {
  const byShape = Map.groupBy(operations, ({ path }) => path.replaceAll(/\{[^{}]*\}/g, '{}'))
  return [...byShape.values()].flatMap((same) => {
    const path = same[0]?.path ?? ''
    const byMethod = [...Map.groupBy(same, ({ method }) => method).values()]
    return byMethod.flatMap((variants) => {
      const [first] = variants
      return first === undefined ? [] : [{ operation: renamed(first, path), variants }]
    })
  })
}

function pathsOf(
  operations: readonly OperationDescription[],
  authorization: AuthorizationDescription,
  components: Components,
): JsonText {
  const documented = documentedOf(operations)
  const names = withNames(documented.map(({ operation }) => operation))
  const all = names.map((operation, at) => ({ operation, variants: documented[at]?.variants ?? [] }))
  const textOf = ({ operation, variants }: Documented<NamedOperation>) =>
    [operation, operationText(operation, variants.slice(1), authorization, components)] as const
  const isKnown = ({ operation }: Documented): boolean => !WITHOUT_PLACE.has(operation.method)
  const known = all.filter(isKnown).map(textOf)
  components.beginExtensions()
  const further = all.filter((each) => !isKnown(each)).map(textOf)
  const several = all
    .filter(({ operation, variants }) => variants.length > 1 || variants[0]?.path !== operation.path)
    .map(({ operation, variants }) => {
      const texts = variants.map((each) => variantText(each, operation, authorization, components))
      return [operation, `[${texts.join()}]`] as const
    })
  const [knownAt, furtherAt, severalAt] = [known, further, several].map((texts) =>
    Map.groupBy(texts, ([{ path }]) => path),
  )
  return objectText(
    [...new Set(names.map(({ path }) => path))].map((path) => {
      const item = [
        ...(knownAt?.get(path) ?? []).map(([{ method }, text]) => [method.toLowerCase(), text] as const),
        ...membersByMethod('x-postern-operations', furtherAt?.get(path)),
        ...membersByMethod('x-postern-variants', severalAt?.get(path)),
      ]
      return [path, objectText(item)] as const
    }),
  )
}

/** A member of a path item with something for each method; none where there is nothing. */
const membersByMethod = (
  name: string,
  texts: readonly (readonly [NamedOperation, JsonText])[] = [],
): readonly (readonly [name: string, value: JsonText])[] =>
  texts.length === 0 ? [] : [[name, objectText(texts.map(([{ method }, text]) => [method, text] as const))]]

/** @param documented the first of the variants, whose components have its name */
function variantText(
  variant: OperationDescription,
  documented: NamedOperation,
  authorization: AuthorizationDescription,
  components: Components,
): JsonText {
  const named = variant.id === documented.id ? { ...variant, name: documented.name } : namedApart(variant)
  const text = operationText(named, [], authorization, components)
  return mergedText(text, JSON.stringify({ 'x-postern-path': variant.path }))
}

function renamed(operation: OperationDescription, path: string): OperationDescription {
  if (operation.path === path) return operation
  const names = [...path.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1] ?? '')
  const parameters = operation.parameters.map((each, at) => ({ ...each, name: names[at] ?? each.name }))
  const nameOf = new Map(operation.parameters.map(({ name }, at) => [name, names[at] ?? name]))
  const examples = operation.examples.map((each) => {
    const values = Object.entries(each.parameters).map(([name, value]) => [nameOf.get(name) ?? name, value])
    return { ...each, parameters: Object.fromEntries(values) as typeof each.parameters }
  })
  return { ...operation, path, parameters, examples }
}

function operationText(
  operation: NamedOperation,
  others: readonly OperationDescription[],
  authorization: AuthorizationDescription,
  components: Components,
): JsonText {
  const { id, area, action, method, summary = `${method} ${area}/${action}`, level, mode } = operation
  const { answer, body, defaultVersion, examples, versions } = operation
  const own = {
    operationId: id,
    summary,
    description: wordsOf(operation, others),
    tags: [area],
    ...(body && { requestBody: requestBody(body, operation, components) }),
    'x-postern-action': action,
    'x-postern-target': level,
    ...(mode === 'report-only' && { 'x-postern-mode': mode }),
    ...(versions.length > 1 && { 'x-postern-default-version': defaultVersion }),
    ...(answer.kind === 'envelope' && hasMembers(answer.items) && { 'x-postern-items': answer.items }),
    ...(examples.length > 0 && { 'x-postern-examples': wholeExamples(examples) }),
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

const hasMembers = (object: object): boolean => Object.keys(object).length > 0

/** OpenAPI cannot say which request an answer belongs to: parts with the same name in the operation belong together. */
const wholeExamples = (examples: OperationDescription['examples']): Node =>
  Object.fromEntries(
    examples.map(({ name, summary, version }) => [
      name,
      { ...(summary !== undefined && { summary }), version },
    ]),
  )

/** All that `parametersOf` reads; `values` come from `type`. Types are last, because they may hold anything. */
function parametersKey(operation: OperationDescription, others: readonly OperationDescription[]): string {
  const { notModified, precondition, ranges, otherUnits } = operation.answer.successes
  let key = `parameters ${notModified} ${precondition} ${ranges} ${otherUnits}`
  for (const { parameters, query, examples } of [operation, ...others]) {
    for (const { name, kind, type, rest } of parameters)
      key += ` ${name} ${kind} ${String(rest)} ${JSON.stringify(type)}`
    if (query.length > 0)
      key += ` ${JSON.stringify([query, examples.map((each) => [each.name, each.query])])}`
    if (examples.some((each) => hasMembers(each.parameters)))
      key += ` ${JSON.stringify(examples.map((each) => [each.name, each.parameters]))}`
  }
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
    ...(description === undefined ? [] : [escapedMarkdown(description)]),
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
  signed: { type: 'integer', format: 'int64' },
}

const REST =
  'One to 32 segments of the path, with slashes between them that are not encoded. Each segment is encoded by itself.'

function schemaOf({ kind, type, values, rest }: ParameterDescription): Node {
  if (kind !== 'own') return CODE
  // The pattern of each segment is no pattern of the whole.
  if (rest) return { type: 'string', minLength: 1 }
  if (values !== undefined) return { type: 'string', enum: values }
  return SCHEMAS[type] ?? { type: 'string', pattern: `^(?:${type.slice(1, -1)})$` }
}

const KINDS = {
  business: 'The code of the business. The token must be for it. Its case counts.',
  fund: 'The code of a fund of the business. Its case counts.',
} as const

/** A declared parameter of the query, with the values that examples have for it. */
function queryParameter(
  { name, schema: { description, ...schema }, required, default: value }: QueryParameterDescription,
  examples: OperationDescription['examples'],
): Node {
  return {
    name,
    in: 'query',
    ...(description !== undefined && { description: escapedMarkdown(description) }),
    ...(required && { required }),
    schema: { ...schema, ...(value !== undefined && { default: value }) },
    ...valuesOf(name, examples, 'query'),
  }
}

/** The values that examples have for a parameter. */
function valuesOf(
  name: string,
  examples: OperationDescription['examples'],
  place: 'parameters' | 'query',
  type?: string,
): Node {
  const found = examples.flatMap((each) =>
    Object.hasOwn(each[place], name) ? [[each.name, { value: typed(each[place][name], type) }] as const] : [],
  )
  return found.length === 0 ? {} : { examples: Object.fromEntries(found) }
}

/** A number where the parameter is one, unless it is too large to be exact in JSON. */
const typed = (value: ScalarValue | undefined, type?: string): ScalarValue | undefined =>
  (type === 'integer' || type === 'signed') && Number.isSafeInteger(Number(value)) ? Number(value) : value

/** What the types of one path's parameters lead to has the parameters of all in its query: none is required of each. */
function inQuery(
  { query, examples }: Pick<OperationDescription, 'query' | 'examples'>,
  others: readonly OperationDescription[],
): readonly Node[] {
  const own = new Set(query.map(({ name }) => name))
  const further = new Map(
    others.flatMap((other) => other.query.map((each) => [each.name, { ...each, required: false }] as const)),
  )
  return [
    ...query.map((each) =>
      queryParameter({ ...each, required: each.required && others.length === 0 }, examples),
    ),
    ...[...further.values()].filter(({ name }) => !own.has(name)).map((each) => queryParameter(each, [])),
  ]
}

function parametersOf(
  { parameters, query, examples, answer }: OperationDescription,
  others: readonly OperationDescription[],
  components: Components,
): readonly unknown[] {
  const inPath = parameters.map((parameter, at) => {
    const { name, kind, rest, type } = parameter
    const types = new Map(
      [parameter, ...others.flatMap((other) => other.parameters[at] ?? [])].map((each) => [
        `${String(each.rest)} ${each.type}`,
        each,
      ]),
    )
    const schemas = [...types.values()].map(schemaOf)
    const schema = schemas.length === 1 ? schemas[0] : { anyOf: schemas }
    const node = {
      name,
      in: 'path',
      required: true,
      schema,
      ...(rest && {
        description: REST,
        'x-postern-rest': true,
        'x-postern-segment': schemaOf({ ...parameter, rest: false }),
      }),
      ...valuesOf(name, examples, 'parameters', rest ? undefined : type),
    }
    if (kind === 'own') return node
    return components.share('parameters', name, () => ({ ...node, description: KINDS[kind] }))
  })
  const { notModified, precondition, ranges, otherUnits = false } = answer.successes
  const header = (name: string, description: string): unknown =>
    components.share('parameters', name, () => ({
      name,
      in: 'header',
      description,
      schema: { type: 'string' },
    }))
  return [
    ...inPath,
    ...inQuery({ query, examples }, others),
    ...(notModified
      ? [header('If-None-Match', 'The `ETag` of an earlier answer: 304 if it still holds.')]
      : []),
    ...(precondition
      ? [header('If-Match', 'The `ETag` of an earlier answer: 412 if the data has changed since.')]
      : []),
    ...(ranges && !otherUnits
      ? [header('Range', 'The part of the data that is wanted, such as `bytes=0-999`.')]
      : []),
    ...(ranges && otherUnits
      ? UNITS.map((name) => ({ ...name, in: 'header', schema: { type: 'string' } }))
      : []),
  ]
}

/** The headers of parts in units of the data service. */
const UNITS = [
  {
    name: 'Range',
    description: 'The part of the data that is wanted, in a unit of the data service: `0-24`.',
  },
  { name: 'Range-Unit', description: 'That unit, such as `items`.' },
]

function requestBody(body: BodyDescription, operation: NamedOperation, components: Components): Node {
  if (body.kind === 'opaque') return { content: Object.fromEntries(body.types.map((type) => [type, {}])) }
  const { schema, required, types, ownXml, limit } = body
  const media = schema === undefined ? {} : { schema: bodySchema(schema, operation, components) }
  const examples = examplesOf(operation, 'Request', (example) => example.body, components)
  const content = types.map((type) => {
    if (/[/+]xml$/.test(type) && ownXml) return [type, OWN_XML] as const
    return [type, { ...media, ...(type.endsWith('/json') && examples && { examples }) }] as const
  })
  return { required, content: Object.fromEntries(content), 'x-postern-limit': limit }
}
