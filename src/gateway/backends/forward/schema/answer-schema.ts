import {
  choice,
  either,
  list,
  literalText,
  mapOf,
  optional,
  section,
  type Static,
  text,
  url,
  wholeNumber,
} from '../../../../base/config/schema.ts'
import { POINTER_PATTERN } from '../../../../base/http/body/json.ts'
import { MEDIA_TYPE_KEYS } from '../../../../base/http/head/media-type.ts'

const paths = (description: string) =>
  optional(
    list(
      literalText({
        pattern: '^[^/]+(/[^/]+)*$',
        expected: 'names with a "/" between them and none before, such as "Funds/Fund" or "Funds/@total"',
        description: 'Names of elements from the root on, as they are in JSON; `@name` for an attribute.',
      }),
      { unique: true, description },
    ),
  )

/** The section `xml` (C7.7). Without defaults: what an operation leaves out is its backend's. */
const xmlSchema = section(
  {
    dialect: optional(
      choice(['postern', 'plain'], {
        description:
          '`postern` (default): the mapping that Postern publishes. `plain`: XML as the service itself writes it.',
      }),
    ),
    root: optional(
      text({
        description: 'With `plain`: the element that a JSON body becomes. Default: its one member.',
      }),
    ),
    attributes: optional(
      mapOf(text({ description: 'The value.' }), {
        keys: '^[^\\s=<>"\'/]+$',
        expectedKeys: 'a name of an attribute, such as "version" or "xmlns"',
        description: 'With `plain`: attributes and namespace declarations of that element.',
      }),
    ),
    arrays: paths('With `plain`: elements that are a list in JSON, also where there is one or none.'),
    numbers: paths('With `plain`: elements and attributes that are numbers in JSON. All others are text.'),
    booleans: paths('With `plain`: elements and attributes that are booleans in JSON.'),
    namespaces: optional(
      choice(['keep', 'strip'], {
        description:
          'With `plain`: whether JSON has prefixes and namespace declarations (`keep`, the default) or not.',
      }),
    ),
  },
  { description: 'What XML the service speaks, if its `format` is `xml`.' },
)

export type XmlSection = Static<typeof xmlSchema>

const MOST_REDIRECTS = 5

const redirects = section(
  {
    max: wholeNumber({
      minimum: 0,
      maximum: MOST_REDIRECTS,
      description: 'How many redirects, one after the other, are followed for a call.',
    }),
    within: list(
      text({
        description: 'A path, written as `path` is: `/files/{business}`. What is below it counts too.',
      }),
      {
        default: [],
        unique: true,
        description:
          'Paths of the service to follow to, besides those of the operations. Without `{business}` other businesses’ data may be there.',
      },
    ),
    origins: list(url({ description: 'An origin, such as `https://files.example.com`.' }), {
      default: [],
      unique: true,
      description:
        'Origins to follow to. They learn nothing of the call but `Accept`, `Range` and `traceparent`.',
    }),
  },
  {
    description:
      'Redirects to follow for GET and HEAD: to operations of the same business, and to what is listed. Default: none.',
  },
)

const pointer = (description: string, such = '/error/code') =>
  literalText({
    pattern: POINTER_PATTERN,
    expected: `a path with a "/" before each name, such as "${such}"`,
    description,
  })

const errorPaths = section(
  {
    list: optional(
      pointer('Path to the list, where there may be several errors. The other paths start at each.'),
    ),
    code: optional(pointer('Path to the code: a text or a number.')),
    message: optional(pointer('Path to the message.')),
    present: optional(
      pointer(
        'Where this path leads to something (not null, false or empty), a 200 or 500 is an error too.',
        '/error',
      ),
    ),
    statuses: optional(
      mapOf(wholeNumber({ description: 'The status that the client gets.' }), {
        keys: '^\\S(.{0,253}\\S)?$',
        expectedKeys: 'a code of at most 255 characters, without blanks at its ends',
        description:
          'Statuses by code: `NotFound: 404`. A code counts whole, else what is behind its last `:`, `.`, `#` or `/`.',
      }),
    ),
  },
  {
    description:
      'JSON Pointers; in XML the names of elements from the root on, and of attributes: `/fault/@code`.',
  },
)

export type ErrorPaths = Static<typeof errorPaths>
export type RedirectsConfig = Static<typeof redirects>

/** What an upstream answers (C8.4, C8.6): keys of forwarding backends, and of operations. */
export const answerKeys = {
  format: choice(['json', 'xml'], { default: 'json', description: 'Format that the service speaks.' }),
  payload: choice(['bare', 'envelope', 'text', 'none'], {
    default: 'bare',
    description:
      'What a success holds: the data alone (`bare`), an envelope of `Errors` and `Data`, a `text` that is the data, or nothing that clients get (`none`).',
  }),
  types: optional(
    mapOf(choice(['json', 'xml', 'text'], { description: 'What an answer of this type is read as.' }), {
      ...MEDIA_TYPE_KEYS,
      description:
        'Further media types that the service answers: `application/json-rpc: json`. It is asked for them first.',
    }),
  ),
  xml: optional(xmlSchema),
  responseHeaders: list(text({ description: 'A header’s name.' }), {
    default: [],
    description:
      'Further response headers that reach the client. URLs of `Location` and `Link` are made public ones.',
  }),
  errors: optional(
    either(choice(['problem'], { description: 'Problem details (RFC 9457).' }), errorPaths, {
      description: 'Where the service’s own answers tell errors. Clients then get these.',
    }),
  ),
  data: optional(
    pointer(
      'Path to the part of a bare answer that clients get: `/items`. In XML by names: `/Funds/Fund`.',
      '/items',
    ),
  ),
  redirects: optional(redirects),
  ranges: optional(
    choice(['bytes', 'verbatim'], {
      description:
        'With `verbatim`, `Range` of other units than bytes and `Range-Unit` reach the service, and parts of its data the client. Default: `bytes`.',
    }),
  ),
  errorStatus: optional(
    mapOf(wholeNumber({ description: 'The status that the client gets.' }), {
      keys: '^4[0-9]{2}$',
      expectedKeys: 'a status from 400 to 499',
      description: 'Statuses to give in place of the service’s own 4xx: `422: 400`.',
    }),
  ),
}
