/** The keys of forwarding backends that say what an upstream is sent (C8.2, C8.7). An operation may say them too. */
import {
  choice,
  duration,
  flag,
  list,
  mapOf,
  optional,
  section,
  template,
  text,
  unset,
  wholeNumber,
} from '../../config/schema.ts'
import { TOKEN_PATTERN } from '../../http/header-text.ts'
import { authSchema } from './auth/schema.ts'

export const requestKeys = {
  path: optional(
    text({
      description: 'Path to send instead of the client’s, such as `/v2/{business}/members/{memberId}.json`.',
    }),
  ),
  query: optional(
    mapOf(template({ description: 'The value, such as `{business}`.' }), {
      keys: '^[^\\x00-\\x1f\\x7f]+$',
      expectedKeys: 'a name without control characters',
      description: 'Added to the query, by name. What a client sends under such a name is taken out.',
    }),
  ),
  queryOnly: optional(
    list(text({ description: 'A name in the query.' }), {
      unique: true,
      description:
        'The only names of the client’s query to forward. Default: all but those that `query` adds.',
    }),
  ),
  strictQuery: flag({
    default: false,
    description:
      'Refuse a client’s query of which a part is percent-encoded twice (`%2525`). For services that decode twice.',
  }),
  headers: optional(
    mapOf(template({ description: 'The value, such as `{business}`, or a secret.' }), {
      keys: TOKEN_PATTERN,
      expectedKeys: 'a header’s name',
      description: 'Headers to add, by name, in place of the client’s.',
    }),
  ),
  forwardAuthorization: flag({
    default: false,
    description: 'Forward the client’s `Authorization` header. A 401 of the service then reaches the client.',
  }),
  auth: optional(authSchema),
  requestHeaders: optional(
    list(text({ description: 'A header’s name.' }), {
      unique: true,
      description:
        'The only headers of the client to forward. Default: all but those that state who calls or from where.',
    }),
  ),
  retries: wholeNumber({
    default: 1,
    minimum: 0,
    maximum: 5,
    description:
      'How often a GET, HEAD or OPTIONS without a body is sent again after a failure of the target.',
  }),
}

const timeoutKeys = (idle: string) => ({
  connect: duration({ default: '2s', description: 'Until a connection is open, with TLS.' }),
  firstByte: duration({
    default: '10s',
    description:
      'From the end of the request to the first byte of the answer. Also the longest wait for a free connection.',
  }),
  idle: duration({
    default: idle,
    description: 'Between two pieces of an answer, or between any two bytes of a websocket.',
  }),
})

const TIMEOUTS = 'How long the service may take. After that, the client gets 503.'

/** @param idle the default between two pieces */
export const timeouts = (idle: string) => section(timeoutKeys(idle), { default: {}, description: TIMEOUTS })

/** What an operation alone may say. */
export const operationKeys = {
  method: optional(
    choice(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], {
      description: 'Method to send instead of the client’s. A HEAD goes as HEAD where this is GET.',
    }),
  ),
  timeouts: optional(section(unset(timeoutKeys('')), { description: TIMEOUTS })),
}
