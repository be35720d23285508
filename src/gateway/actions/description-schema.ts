import { jsonSchema } from '../../base/config/json-schema.ts'
import { reportUnknownName } from '../../base/config/problem-text.ts'
import type { Problems } from '../../base/config/problems.ts'
import {
  choice,
  either,
  list,
  literalText,
  mapOf,
  name,
  opaque,
  optional,
  section,
  type Static,
  text,
  url,
  wholeNumber,
} from '../../base/config/schema.ts'
import { type BodySchema, FORMAT_NAMES } from '../../base/http/body/body-schema.ts'
import type { JsonValue, ScalarValue } from '../../base/http/body/json.ts'

const line = (description: string) =>
  literalText({
    pattern: '^[^\\n\\r<]{1,120}$',
    expected: 'one line of at most 120 characters without "<"',
    description,
  })

const words = (description: string) =>
  text({
    pattern: '^[\\s\\S]{1,10000}$',
    expected: 'a text of at most 10,000 characters',
    description,
  })

export const areaDescription = optional(words('What the area is for. Clients read it.'))

const example = section({
  summary: optional(line('What it is an example of.')),
  version: optional(
    wholeNumber({
      minimum: 1,
      description: 'Action version of the answer. Default: that of `defaultVersion`.',
    }),
  ),
  parameters: optional(
    mapOf(text({ description: 'A value.' }), {
      keys: '^[A-Za-z][A-Za-z0-9_]*$',
      expectedKeys: 'the name of a parameter',
      description: 'Values of the parameters in the path of the action.',
    }),
  ),
  query: optional(
    mapOf(opaque<ScalarValue>({ description: 'A value.', expected: 'a text, number or boolean' }), {
      keys: '^.+$',
      description: 'Values of declared parameters of the query.',
    }),
  ),
  body: optional(
    opaque<JsonValue>({ description: 'A request body. It must fit the schema.', expected: 'a value' }),
  ),
  data: optional(
    opaque<JsonValue>({ description: '`Data` of the answer. It must fit `data`.', expected: 'an object' }),
  ),
})

/** For clients: the gateway itself never reads these. */
export const documentationKeys = {
  summary: optional(line('What it does, in a few words. Clients read it.')),
  description: optional(words('More about it. Clients read it, as Markdown (CommonMark).')),
  data: optional(
    jsonSchema<BodySchema>({
      formats: FORMAT_NAMES,
      description: 'JSON Schema of `Data` in its answers, of all versions. It is told, and not checked.',
    }),
  ),
  examples: optional(
    mapOf(example, {
      keys: '^[A-Za-z0-9._-]{1,64}$',
      expectedKeys: 'a name of at most 64 letters, digits, ".", "_" and "-"',
      description: 'Examples, by a name for each.',
    }),
  ),
}

const license = section(
  {
    name: line('Its name.'),
    url: optional(url({ description: 'Where it can be read.' })),
    identifier: optional(
      literalText({
        pattern: '^[A-Za-z0-9.+() -]{1,120}$',
        expected: 'an SPDX expression',
        description: 'Its SPDX expression, instead of `url`.',
      }),
    ),
  },
  { description: 'License of the API. Default: it is not stated.' },
)

const contact = section(
  {
    name: optional(line('Who answers questions of client developers.')),
    url: optional(url({ description: 'Where they can be asked.' })),
    email: optional(
      literalText({
        pattern: '^[^\\s@]{1,64}@[^\\s@]{1,190}$',
        expected: 'an e-mail address',
        description: 'Their e-mail address.',
      }),
    ),
  },
  { description: 'Whom client developers can ask. Default: it is not stated.' },
)

const OFF = ['off'] as const

export const openapiSchema = either(
  choice(OFF, { description: 'There is no document.' }),
  section(
    {
      title: optional(line('Name of the API. Default: `Data API`.')),
      description: optional(words('What the API is for, as Markdown (CommonMark).')),
      license: optional(license),
      contact: optional(contact),
      hide: optional(
        list(name({ description: 'A key of `areas`.' }), {
          unique: true,
          description: 'Areas that are left out. They are served all the same.',
        }),
      ),
    },
    { description: 'What the document says.' },
  ),
  {
    description:
      '`/.well-known/openapi.json` describes the API to anybody. `off`: there is no such document.',
  },
)

export function checkOpenapi(
  openapi: OpenapiConfig | undefined,
  areas: readonly string[],
  problems: Problems,
): void {
  const { hide = [], license } = openapi === undefined || openapi === 'off' ? {} : openapi
  for (const [index, name] of hide.entries())
    if (!areas.includes(name)) reportUnknownName(problems, ['openapi', 'hide', index], 'area', name, areas)
  if (license?.url !== undefined && license.identifier !== undefined)
    problems.error(['openapi', 'license', 'identifier'], 'goes in place of `url`, not beside it')
}

export type OpenapiConfig = Static<typeof openapiSchema>
