/** The keys of forwarding backends that say what their upstream answers (C8.4, C8.6). An operation may say them too. */
import {
  choice,
  either,
  list,
  literalText,
  mapOf,
  optional,
  section,
  wholeNumber,
  text,
  url,
  type Static,
} from '../../config/schema.ts'
import { POINTER_PATTERN } from '../../http/json.ts'
import { xmlSchema } from './xml-schema.ts'

/** Redirects that may follow each other. */
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
  },
  {
    description:
      'JSON Pointers; in XML the names of elements from the root on, and of attributes: `/fault/@code`.',
  },
)

export type ErrorPaths = Static<typeof errorPaths>
export type RedirectsConfig = Static<typeof redirects>

export const answerKeys = {
  format: choice(['json', 'xml'], { default: 'json', description: 'Format that the service speaks.' }),
  payload: choice(['bare', 'envelope'], {
    default: 'bare',
    description: 'Whether the service answers the data alone, or in an envelope of `Errors` and `Data`.',
  }),
  xml: optional(xmlSchema),
  responseHeaders: list(text({ description: 'A header’s name.' }), {
    default: [],
    description:
      'Further response headers that reach the client. URLs of `Location` and `Link` are made public ones.',
  }),
  errors: optional(
    either(choice(['problem'], { description: 'Problem details (RFC 9457).' }), errorPaths, {
      description: 'Where the service’s own 4xx answers tell errors. Clients then get these.',
    }),
  ),
  data: optional(
    pointer(
      'Path to the part of a bare answer that clients get: `/items`. In XML by names: `/Funds/Fund`.',
      '/items',
    ),
  ),
  redirects: optional(redirects),
  errorStatus: optional(
    mapOf(wholeNumber({ description: 'The status that the client gets.' }), {
      keys: '^4[0-9]{2}$',
      expectedKeys: 'a status from 400 to 499',
      description: 'Statuses to give in place of the service’s own 4xx: `422: 400`.',
    }),
  ),
}
