import {
  choice,
  flag,
  list,
  literalText,
  mapOf,
  name,
  optional,
  section,
  size,
  text,
  wholeNumber,
  type Static,
} from '../../base/config/schema.ts'
import { jsonSchema, parameterSchema } from '../../base/config/json-schema.ts'
import { operationUpstreamSchema } from '../backends/forward/schema/schema.ts'
import { type BodySchema, FORMAT_NAMES } from '../../base/http/body/body-schema.ts'
import type { ScalarValue } from '../../base/http/body/json.ts'
import { MEDIA_TYPE_KEYS, MEDIA_TYPE_TEXT } from '../../base/http/head/media-type.ts'
import { areaDescription, documentationKeys } from './description-schema.ts'

const scopeValue = text({ description: 'A scope value.' })

const scopeRule = section(
  {
    any: optional(list(scopeValue, { minItems: 1, description: 'One of these scope values is enough.' })),
    all: optional(list(scopeValue, { minItems: 1, description: 'All of these scope values are needed.' })),
  },
  { description: 'Scope values that a token must have: `any` or `all` of a list.' },
)

const bodyRule = section(
  {
    required: flag({ default: true, description: 'Refuse a call without a body.' }),
    schema: optional(
      jsonSchema<BodySchema>({
        formats: FORMAT_NAMES,
        description:
          'JSON Schema of the body. A body that does not match is 400, and the answer names the field.',
      }),
    ),
    types: optional(
      mapOf(choice(['json', 'xml', 'form'], { description: 'What a body of this type is read as.' }), {
        ...MEDIA_TYPE_KEYS,
        description: 'Further media types of bodies: `application/vnd.api+json: json`.',
      }),
    ),
  },
  { description: 'The request body. Left out: a call with a body is refused.' },
)

/** As in OpenAPI: a schema, and next to it whether a call must have the parameter. */
export type ParameterConfig = Omit<BodySchema, 'required'> & {
  readonly required?: boolean
  readonly default?: ScalarValue
}

const parameters = mapOf(
  parameterSchema<ParameterConfig>({
    formats: FORMAT_NAMES,
    description:
      'JSON Schema of one text, number or boolean; beside it `required: true`, or a `default` for `{query/NAME}`.',
  }),
  {
    keys: '^[^\\s{}&;=#%+]{1,64}$',
    expectedKeys: 'a name of at most 64 characters, without spaces and `{}&;=#%+`',
    description:
      'Parameters of the query that are checked before the body is read: another value is 400. Others pass unchecked.',
  },
)

const mediaType = text({ ...MEDIA_TYPE_TEXT, description: 'A media type or range.' })

const operation = section(
  {
    ...documentationKeys,
    scopes: scopeRule,
    versions: list(wholeNumber({ minimum: 1, description: 'An action version.' }), {
      default: [1],
      minItems: 1,
      unique: true,
      description: 'Versions of the action that a client may ask for by the vendor media type.',
    }),
    defaultVersion: optional(
      wholeNumber({
        minimum: 1,
        description: 'Version of the answer if the client asks for none. Default: the lowest.',
      }),
    ),
    items: mapOf(text({ description: 'XML element name of one item.' }), {
      default: {},
      keys: '^.+$',
      description: 'XML element names of array items, by the name of the array. Default: `Item`.',
    }),
    parameters: optional(parameters),
    body: optional(bodyRule),
    produces: optional(
      list(mediaType, {
        minItems: 1,
        description:
          'Media types of answers that are neither JSON nor XML data. They pass through without an envelope.',
      }),
    ),
    consumes: optional(
      list(mediaType, {
        minItems: 1,
        description: 'Media types of request bodies that are streamed through without being parsed.',
      }),
    ),
    upstream: optional(operationUpstreamSchema),
    audit: optional(
      choice(['intent', 'none'], {
        description:
          '`intent`: record calls in the audit trail though they change nothing. `none`: do not record them though they may. Default: calls that may change something are recorded.',
      }),
    ),
    auditReason: optional(text({ description: 'Why calls are not recorded. Required with `audit: none`.' })),
    auditFields: optional(
      list(
        literalText({
          pattern: '^([^/].{0,99}|(/([^~/]|~[01]){0,99}){1,10})$',
          expected: 'a name, or a JSON Pointer',
          description: 'A member of the body by its name, or any part of it by a JSON Pointer.',
        }),
        {
          minItems: 1,
          maxItems: 32,
          unique: true,
          description: 'Parts of the request body that the audit trail keeps as they were sent.',
        },
      ),
    ),
  },
  { description: 'What the method requires, and what it answers.' },
)

const actionSchema = section({
  level: choice(['business', 'fund'], {
    description: 'Whether its URL names a business (`/b/CODE/…`) or a fund (`/f/CODE/FUND/…`).',
  }),
  area: name({ description: 'Its area: a key of `areas`.' }),
  action: text({
    description:
      'Path below the area. `{id}`, `{id:uuid}`, `{id:integer}`, `{id:signed}` and `{id:/pattern/}` are parameters; `{path...}` is one of 1 to 32 segments.',
  }),
  methods: section(
    {
      GET: optional(operation),
      POST: optional(operation),
      PUT: optional(operation),
      PATCH: optional(operation),
      DELETE: optional(operation),
      OPTIONS: optional(operation),
      PROPFIND: optional(operation),
      PROPPATCH: optional(operation),
      REPORT: optional(operation),
      SEARCH: optional(operation),
      QUERY: optional(operation),
      MKCOL: optional(operation),
      MKCALENDAR: optional(operation),
    },
    { description: 'Its methods. GET includes HEAD.' },
  ),
})

export const areasSchema = mapOf(
  section({
    description: areaDescription,
    backend: name({ description: 'The backend that answers its calls: a key of `backends`.' }),
    mode: optional(
      choice(['enforce', 'report-only'], {
        description:
          '`report-only` refuses nothing, not even calls without a token. It only reports. Default: `enforce`.',
      }),
    ),
    scopes: optional(
      list(scopeValue, {
        minItems: 1,
        description: 'Scope values that all its actions require, besides their own.',
      }),
    ),
  }),
  { description: 'The areas of the API, by name: the part of the path before the action.' },
)

export const actionsSchema = list(actionSchema, { description: 'All actions of the API.' })

export const schemasSchema = mapOf(
  jsonSchema<BodySchema>({
    formats: FORMAT_NAMES,
    description: 'JSON Schema that several operations use, or that contains itself.',
  }),
  {
    default: {},
    description:
      "Schemas by name: `$ref: '#/schemas/NAME'` stands for them in schemas of operations, and among themselves.",
  },
)

export const vendorSchema = literalText({
  pattern: '^[a-z0-9][a-z0-9-]*$',
  default: 'postern',
  expected: 'a name of lower-case letters, digits and "-"',
  description: 'The `{vendor}` in the media types `application/vnd.{vendor}.action.v1+json`.',
})

export const defaultFormatSchema = choice(['json', 'xml'], {
  default: 'json',
  description: 'Format of an answer where `Accept` does not decide.',
})

export const tokenCacheSchema = section(
  {
    size: size({
      default: '64MiB',
      description: 'Memory of each process for verified tokens: about 2 KiB per token.',
    }),
  },
  { default: {}, description: 'Cache of verified access tokens.' },
)

export type OperationConfig = Static<typeof operation>
export type BodyRuleConfig = Static<typeof bodyRule>
export type ScopeRuleConfig = Static<typeof scopeRule>
export type ActionConfig = Static<typeof actionSchema>
export type AreasConfig = Static<typeof areasSchema>
