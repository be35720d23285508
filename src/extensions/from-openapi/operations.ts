/** The operations of a description, in one shape for OpenAPI 3.1, 3.0 and 2.0. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJsonPointer,
  valueAt,
} from '../../base/http/body/json.ts'
import { MEDIA_TYPE_OF, parseMediaType } from '../../base/http/head/media-type.ts'

// Reads parts of a description, which may be anything: what is of another type counts as absent.

const NONE: JsonObject = {}

export const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : NONE)

export const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : []

/** Undefined if it is empty too. */
export const trimmedText = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/** The target of a reference (`#/components/…`). */
export function referenced(document: JsonObject, pointer: string): JsonValue | undefined {
  try {
    return pointer.startsWith('#')
      ? valueAt(document, parseJsonPointer(decodeURIComponent(pointer)))
      : undefined
  } catch {
    return undefined
  }
}

/** All objects within that are references. Anchors of YAML may have made a circle. */
export function* referencesIn(value: JsonValue): Generator<{ $ref: string }> {
  const seen = new Set<JsonValue>([value])
  // Parts that are added during the walk are walked too.
  for (const part of seen) {
    if (typeof part !== 'object' || part === null) continue
    if (isJsonObject(part) && typeof part['$ref'] === 'string') yield part as { $ref: string }
    for (const inner of Object.values(part)) if (typeof inner === 'object') seen.add(inner as JsonValue)
  }
}

/** A part, with what it refers to. */
function partOf(document: JsonObject, value: JsonValue | undefined): JsonObject {
  const followed = new Set<string>()
  let part = objectOf(value)
  for (;;) {
    const { $ref: reference, ...own } = part
    const pointer = trimmedText(reference)
    if (pointer === undefined || followed.has(pointer)) return own
    followed.add(pointer)
    part = { ...objectOf(referenced(document, pointer)), ...own }
  }
}

/** A name or another short value as text; empty if it is neither a text nor a number nor a switch. */
export const shortText = (value: JsonValue | undefined): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''

export const textsOf = (value: JsonValue | undefined): readonly string[] =>
  listOf(value).filter((each) => typeof each === 'string')

const LONGEST_LINE = 120
const LONGEST_TEXT = 10_000

const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`

/** A text on one line, as a `summary` of the configuration may be. */
export function lineOf(value: JsonValue | undefined): string | undefined {
  const line = trimmedText(value)
    ?.replaceAll(/[\s<>]+/g, ' ')
    .trim()
  return line === undefined || line === '' ? undefined : cut(line, LONGEST_LINE)
}

/** A text, as a `description` of the configuration may be. */
export function descriptionText(value: JsonValue | undefined): string | undefined {
  const text = trimmedText(value)
  return text === undefined ? undefined : cut(text, LONGEST_TEXT)
}

/** Lower-case words with hyphens between them, as names of areas are; undefined if nothing is left. */
export function slugOf(text: string): string | undefined {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '')
  const slug = plain.replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
  return slug === '' ? undefined : slug.toLowerCase()
}

/** Media types in lower case, without parameters, each with its schema if it has one. */
export type Contents = ReadonlyMap<string, JsonValue | undefined>

export interface DescribedOperation {
  /** Its path in the description. */
  readonly at: readonly string[]
  readonly path: string
  /** In upper case; also those that a configuration cannot have. */
  readonly method: string
  readonly tag: string | undefined
  readonly tags: readonly string[]
  readonly summary: string | undefined
  readonly description: string | undefined
  /** Each with `name`, `in` and `schema`. */
  readonly parameters: readonly JsonObject[]
  readonly body: { readonly required: boolean; readonly contents: Contents } | undefined
  /** The contents of the successful answers. */
  readonly answers: Contents
  /** Names of headers of those answers. */
  readonly headers: readonly string[]
  /** Alternatives; each names schemes, with the scopes that they need. */
  readonly security: readonly JsonObject[]
  /** Whether its own security lets anybody call it. */
  readonly isPublic: boolean
  /** Sections that have no place in a configuration. */
  readonly unsaid: readonly string[]
}

export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const

const plainType = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase()

/** The contents of a body by media type. A name without a slash is no media type: nobody could send it. */
const contentsOf = (document: JsonObject, content: JsonValue | undefined): Contents =>
  new Map(
    Object.entries(partOf(document, content)).flatMap(([type, media]) =>
      parseMediaType(type) === undefined
        ? []
        : [[plainType(type), partOf(document, media)['schema']] as const],
    ),
  )

const sameSchema = (types: readonly string[], schema: JsonValue | undefined): Contents =>
  new Map(types.filter((type) => parseMediaType(type) !== undefined).map((type) => [plainType(type), schema]))

/** Parameters of the path hold for each operation, unless it has one of the same name and place. */
function parametersOf(
  document: JsonObject,
  shared: JsonObject,
  operation: JsonObject,
): readonly JsonObject[] {
  const all = [...listOf(shared['parameters']), ...listOf(operation['parameters'])]
    .filter(isJsonObject)
    .map((each) => partOf(document, each))
  const byPlace = new Map(all.map((each) => [`${shortText(each['in'])} ${shortText(each['name'])}`, each]))
  // In 2.0 the parameter is its own schema.
  return [...byPlace.values()].map((each) =>
    each['schema'] === undefined ? { ...each, schema: each } : each,
  )
}

const isFile = (parameter: JsonObject): boolean => parameter['type'] === 'file'

/** The fields of a form of OpenAPI 2.0 as one schema. */
function formOf(fields: readonly JsonObject[], consumes: readonly string[]): DescribedOperation['body'] {
  const usual = fields.some(isFile) ? 'multipart/form-data' : MEDIA_TYPE_OF.form
  const names = fields.filter(({ required }) => required === true).map(({ name }) => shortText(name))
  const schema: JsonObject = {
    type: 'object',
    required: names,
    properties: Object.fromEntries(fields.map(({ name, schema = {} }) => [shortText(name), schema])),
  }
  return {
    required: names.length > 0,
    contents: sameSchema(consumes.length > 0 ? consumes : [usual], schema),
  }
}

function bodyOf(
  document: JsonObject,
  operation: JsonObject,
  parameters: readonly JsonObject[],
  consumes: readonly string[],
): DescribedOperation['body'] {
  if (isJsonObject(operation['requestBody'])) {
    const described = partOf(document, operation['requestBody'])
    return { required: described['required'] === true, contents: contentsOf(document, described['content']) }
  }
  const body = parameters.find((each) => each['in'] === 'body')
  const fields = parameters.filter((each) => each['in'] === 'formData')
  if (body === undefined) return fields.length === 0 ? undefined : formOf(fields, consumes)
  const types = consumes.length > 0 ? consumes : [MEDIA_TYPE_OF.json]
  return { required: body['required'] === true, contents: sameSchema(types, body['schema']) }
}

/** The successful answers of an operation, by their statuses. */
export const successesIn = (operation: JsonObject): readonly (readonly [string, JsonValue | undefined])[] =>
  Object.entries(objectOf(operation['responses'])).filter(([status]) => /^2/.test(status))

const successesOf = (document: JsonObject, operation: JsonObject): readonly JsonObject[] =>
  successesIn(operation).map(([, response]) => partOf(document, response))

function answersOf(
  document: JsonObject,
  successes: readonly JsonObject[],
  produces: readonly string[],
): Contents {
  const types = produces.length > 0 ? produces : [MEDIA_TYPE_OF.json]
  return new Map(
    successes.flatMap((response) => [
      ...contentsOf(document, response['content']),
      ...(response['schema'] === undefined ? [] : sameSchema(types, response['schema'])),
    ]),
  )
}

/** An empty list, or an alternative that asks for nothing. */
const isPublic = (security: JsonValue | undefined): boolean =>
  Array.isArray(security) && security.every((each) => Object.keys(objectOf(each)).length === 0)

const descriptionOf = ({ description, deprecated }: JsonObject): string | undefined =>
  descriptionText(deprecated === true ? `Deprecated. ${trimmedText(description) ?? ''}`.trim() : description)

function operationOf(document: JsonObject, path: string, method: string): DescribedOperation {
  const shared = partOf(document, objectOf(document['paths'])[path])
  const operation = objectOf(shared[method])
  const parameters = parametersOf(document, shared, operation)
  const successes = successesOf(document, operation)
  const typesOf = (name: string): readonly string[] => textsOf(operation[name] ?? document[name])
  return {
    at: ['paths', path, method],
    path,
    method: method.toUpperCase(),
    tag: textsOf(operation['tags'])[0],
    tags: textsOf(operation['tags']),
    summary: lineOf(operation['summary']),
    description: descriptionOf(operation),
    parameters,
    body: bodyOf(document, operation, parameters, typesOf('consumes')),
    answers: answersOf(document, successes, typesOf('produces')),
    headers: successes.flatMap((response) => Object.keys(objectOf(response['headers']))),
    security: listOf(operation['security'] ?? document['security']).filter(isJsonObject),
    isPublic: isPublic(operation['security']),
    unsaid: [
      ...['callbacks', 'servers'].filter((name) => (operation[name] ?? shared[name]) !== undefined),
      ...[partOf(document, operation['requestBody']), ...successes]
        .flatMap(({ content }) => Object.keys(partOf(document, content)))
        .filter((type) => parseMediaType(type) === undefined)
        .map((type) => `the media type "${type}"`),
    ],
  }
}

/** In the order of the description. */
export const operationsOf = (document: JsonObject): readonly DescribedOperation[] =>
  Object.entries(objectOf(document['paths'])).flatMap(([path, item]) =>
    Object.keys(partOf(document, item))
      .filter((method) => METHODS.some((known) => known === method))
      .map((method) => operationOf(document, path, method)),
  )

/** A method and a path (`GET /funds*`), or a path alone. Anything else is a tag. */
const ONLY_PATH = /^(?:([A-Za-z]+|\*) +)?([/*].*)$/

/** The operations of any one tag or path that is asked for; all, if none is. */
export function chosenOperations(
  document: JsonObject,
  only: readonly string[],
): readonly DescribedOperation[] {
  const all = operationsOf(document)
  if (only.length === 0) return all
  return all.filter((operation) => only.some((each) => isOf(operation, each)))
}

/** Whether an operation is of a tag, or of a method and a path, in which `*` is anything. */
export function isOf({ method, path, tags }: DescribedOperation, only: string): boolean {
  const [, verb, pattern] = ONLY_PATH.exec(only) ?? []
  if (pattern === undefined) return tags.includes(only)
  const parts = pattern.split('*').map((part) => RegExp.escape(part))
  const isAny = verb === undefined || verb === '*'
  return (isAny || verb.toUpperCase() === method) && new RegExp(`^${parts.join('.*')}$`).test(path)
}

/** The address that the description names first, with its variables; undefined if it names none. */
function addressTemplate(document: JsonObject): string | undefined {
  const url = trimmedText(objectOf(listOf(document['servers'])[0])['url'])
  if (url !== undefined) return url
  const host = trimmedText(document['host'])
  const basePath = trimmedText(document['basePath'])
  if (host === undefined) return basePath
  const schemes = textsOf(document['schemes'])
  return `${schemes.includes('https') || schemes.length === 0 ? 'https' : 'http'}://${host}${basePath ?? ''}`
}

/** The characters that a part of an address's path may have (C8.1). */
const PLAIN_PART = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/

interface Address {
  /** Undefined if the description names none. It may be a path alone. */
  readonly address: string | undefined
  /** Parts that are left out: a variable without a value, or what an address cannot have. */
  readonly unsaid: readonly string[]
}

/** The address that the description names first. */
export function addressIn(document: JsonObject): Address {
  const variables = objectOf(objectOf(listOf(document['servers'])[0])['variables'])
  // Braces that stay mark a variable without a value.
  const filled = (text: string): string =>
    text.replaceAll(/\{([^{}]*)\}/g, (all, name: string) => {
      const value = Object.hasOwn(variables, name) ? shortText(objectOf(variables[name])['default']) : ''
      return value === '' ? all : value
    })
  const [, origin = '', path = ''] = /^([a-z]+:\/\/[^/]*)?(.*)$/is.exec(addressTemplate(document) ?? '') ?? []
  const host = filled(origin)
  const parts = path.split('/').map(filled)
  const unsaid = parts.filter((part) => !PLAIN_PART.test(part))
  if (/[{}]/.test(host)) return { address: undefined, unsaid: [host, ...unsaid] }
  const address = `${host}${parts.filter((part) => PLAIN_PART.test(part)).join('/')}`
  return { address: address === '' ? undefined : address, unsaid }
}

/** How the service knows its callers, by the names of the schemes. */
export const schemesOf = (document: JsonObject): JsonObject => {
  const current = objectOf(document['components'])['securitySchemes']
  return objectOf(current ?? document['securityDefinitions'])
}
