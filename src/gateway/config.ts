import {
  choice,
  flag,
  list,
  mapOf,
  name,
  opaque,
  optional,
  section,
  size,
  text,
  Type,
  wholeNumber,
  type Static,
} from '../config/pieces.ts'
import type { BodySchema } from '../http/body-schema.ts'

const scopeValue = text({ description: 'A value of `scopes`.' })

const scopeRule = section(
  {
    any: optional(list(scopeValue, { minItems: 1, description: 'One of these scope values is enough.' })),
    all: optional(list(scopeValue, { minItems: 1, description: 'All of these scope values are needed.' })),
  },
  { description: 'The scopes that satisfy it: `any` or `all` of a list.' },
)

const bodyRule = section(
  {
    required: flag({ default: true, description: 'Whether a call without a body is refused.' }),
    schema: optional(
      opaque<BodySchema>({
        description: 'JSON Schema of the body; what does not fit is refused, naming the field.',
      }),
    ),
  },
  { description: 'The request body. Absent: a call with a body is refused.' },
)

const mediaType = text({ description: 'A media type or range.' })

const operation = section(
  {
    scopes: scopeRule,
    versions: list(wholeNumber({ minimum: 1, description: 'An action version.' }), {
      default: [1],
      minItems: 1,
      unique: true,
      description: 'Action versions that the vendor media type may ask for.',
    }),
    defaultVersion: optional(
      wholeNumber({
        minimum: 1,
        description: 'The version served when none is asked for. Default: the lowest.',
      }),
    ),
    items: mapOf(text({ description: 'The XML name of one item.' }), {
      default: {},
      keys: '^.+$',
      description: 'XML names of array items, by the name of the array. Else `Item`.',
    }),
    body: optional(bodyRule),
    produces: optional(
      list(mediaType, {
        minItems: 1,
        description:
          'Response types of its own; its successes are then not enveloped, and come with `nosniff` and a sandboxing `Content-Security-Policy`.',
      }),
    ),
    consumes: optional(
      list(mediaType, {
        minItems: 1,
        description: 'Request types of its own; the body then streams through, unparsed.',
      }),
    ),
    websocket: optional(
      flag({
        description:
          'Whether a client may ask for a websocket here; for GET of an area whose backend is of kind `stream`. ' +
          'Asked for where it is not, it is ignored: the call is served as any other. Default: no.',
      }),
    ),
  },
  { description: 'What one method of an action needs and gives.' },
)

const actionSchema = section({
  level: choice(['business', 'fund'], {
    description: 'Whether its URL names a business (`b/…`) or a fund of it (`f/…`).',
  }),
  area: name({ description: 'The area it belongs to: a key of `areas`.' }),
  action: text({
    description:
      'Its path below the area. `{name}` is a parameter, `{name:uuid}` and `{name:integer}` are typed, ' +
      '`{name:/pattern/}` must match the pattern. A literal beside a parameter wins. Parameters of one type at one ' +
      'place are the same, whatever their names, so that several entries may offer methods of one path; parameters of ' +
      'different types that may take the same value there are refused.',
  }),
  methods: section(
    {
      GET: optional(operation),
      POST: optional(operation),
      PUT: optional(operation),
      PATCH: optional(operation),
      DELETE: optional(operation),
      OPTIONS: optional(operation),
    },
    { description: 'What it offers, by method. HEAD comes with GET.' },
  ),
})

export const areasSchema = mapOf(
  section({
    backend: name({ description: 'The backend that answers it: a key of `backends`.' }),
    mode: optional(
      choice(['enforce', 'report-only'], {
        description:
          '`report-only` refuses nothing, not even calls without a token: decisions are made, logged, counted and told ' +
          'to the upstream. For introducing Postern before a service that checks for itself; see deploy/README.md. ' +
          'Default: `enforce`.',
      }),
    ),
    scopes: optional(
      list(scopeValue, {
        minItems: 1,
        description: 'Scope values that all of its actions need, beside what each says for itself.',
      }),
    ),
  }),
  { description: 'The areas of the API, and who answers them.' },
)

export const actionsSchema = list(actionSchema, { description: 'Every action of the API.' })

export const vendorSchema = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]*$',
  default: 'postern',
  expected: 'a name of lower-case letters, digits and "-"',
  description: 'The `{vendor}` of `application/vnd.{vendor}.action.v1+json`.',
})

export const defaultFormatSchema = choice(['json', 'xml'], {
  default: 'json',
  description: 'The format where `Accept` does not decide.',
})

export const tokenCacheSchema = section(
  {
    size: size({
      default: '64MiB',
      description: 'Memory of each process for verified tokens; about 2 KiB a token.',
    }),
  },
  { default: {}, description: 'Tokens that were verified once are not verified again.' },
)

export type OperationConfig = Static<typeof operation>
export type BodyRuleConfig = Static<typeof bodyRule>
export type ScopeRuleConfig = Static<typeof scopeRule>
export type ActionConfig = Static<typeof actionSchema>
export type AreasConfig = Static<typeof areasSchema>
