import { FURTHER_METHODS } from '../../../../base/http/head/head.ts'
import {
  choice,
  duration,
  flag,
  list,
  mapOf,
  name,
  openTemplate,
  optional,
  path,
  secretTemplate,
  section,
  type Static,
  template,
  templates,
  text,
  unset,
  url,
  wholeNumber,
} from '../../../../base/config/schema.ts'
import { TOKEN_PATTERN } from '../../../../base/http/head/header-text.ts'
import { UPSTREAM_PATTERN } from '../../../upstream/socket.ts'
import { TARGET_PATTERN } from './origins.ts'
import { answerKeys } from './answer-schema.ts'

const basic = section(
  {
    user: openTemplate({ description: 'Name of the user. Contains no colon.' }),
    password: secretTemplate({ description: 'Its password.' }),
  },
  { description: 'Sends `Authorization: Basic …`, with user and password in UTF-8.' },
)

const header = section(
  {
    name: text({
      pattern: TOKEN_PATTERN,
      expected: 'a header’s name, such as "X-Api-Key"',
      description: 'Name of the header. A header of this name that a client sends is dropped.',
    }),
    value: secretTemplate({ description: 'Its value: visible ASCII characters and spaces between them.' }),
  },
  { description: 'Sends one header with a secret value, such as an API key.' },
)

const oauth2 = section(
  {
    tokenUrl: url({ description: 'URL of the token endpoint. https, or http on loopback.' }),
    clientId: openTemplate({ description: 'Client id that Postern has there.' }),
    clientSecret: secretTemplate({ description: 'The client’s secret.' }),
    clientAuthentication: choice(['basic', 'post'], {
      default: 'basic',
      description:
        'Where the client’s id and secret stand: in `Authorization: Basic`, or in the form (`post`).',
    }),
    scope: optional(
      openTemplate({
        pattern: '^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$',
        expected: 'scope values, separated by single spaces',
        description: 'The `scope` to ask for.',
      }),
    ),
    audience: optional(openTemplate({ description: 'The `audience` to ask for. Some issuers expect it.' })),
    resource: optional(
      openTemplate({ description: 'The `resource` to ask for (RFC 8707). Some issuers expect it.' }),
    ),
    tls: section(
      {
        ca: optional(
          path({ description: 'PEM file of certificate authorities to trust instead of the system’s.' }),
        ),
      },
      { default: {}, description: 'TLS to the token endpoint.' },
    ),
  },
  {
    description:
      'Gets access tokens by the client credentials grant, and sends them as `Authorization: Bearer …`.',
  },
)

/** Postern's credentials at an upstream (C8.7). */
const authSchema = section(
  {
    basic: optional(basic),
    bearer: optional(secretTemplate({ description: 'Sends `Authorization: Bearer …` with this token.' })),
    header: optional(header),
    oauth2: optional(oauth2),
  },
  {
    description:
      'Credentials that the service gets with each call. Exactly one kind. Their texts may be templates.',
  },
)

export type AuthConfig = Static<typeof authSchema>
export type OAuth2Config = Static<typeof oauth2>

/** Keys of the request that an upstream is sent (C8.2, C8.7). An operation may have them too. */
const requestKeys = {
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
        'The only names of the client’s query to forward. Default: all but those that `query` adds, and that say the business in any place.',
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
  forwarded: optional(
    choice(['on', 'off'], {
      description:
        'Whether the service gets `Forwarded` and `X-Forwarded-…`, with the client’s address. Default: `on`.',
    }),
  ),
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
      'How often a call of a safe method (GET, PROPFIND …) without a body is sent again after a failure of the target.',
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
    description: 'Between two pieces of an answer, or between any two bytes of an upgraded connection.',
  }),
})

const TIMEOUTS = 'How long the service may take. After that, the client gets 503.'

/** @param idle the default between two pieces */
export const timeouts = (idle: string) => section(timeoutKeys(idle), { default: {}, description: TIMEOUTS })

const POINTER_KEY = '^(/([^~/]|~[01])*)+$'
const members = (description: string) =>
  mapOf(templates({ description: 'A text, a number or a boolean.' }), {
    keys: POINTER_KEY,
    expectedKeys: 'a JSON Pointer such as "/company"',
    description,
  })

const body = section(
  {
    format: optional(
      choice(['json', 'xml', 'form'], { description: 'Its format. Default: that of the backend.' }),
    ),
    type: optional(text({ description: 'Its `Content-Type`. Default: that of the format.' })),
    template: optional(
      templates({
        description: 'The body to send: a tree whose texts hold placeholders, such as `{body/Note}`.',
      }),
    ),
    set: optional(
      members('Members of the client’s body to set, by JSON Pointer, in place of whatever it has there.'),
    ),
    require: optional(
      members('Members that the client’s body must have, by JSON Pointer. Anything else is 400.'),
    ),
  },
  { description: 'The body to send. Left out: the client’s.' },
)

export type BodyConfig = Static<typeof body>

/** Keys that only an operation may have. */
const operationKeys = {
  body: optional(body),
  method: optional(
    choice(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', ...FURTHER_METHODS], {
      description: 'Method to send instead of the client’s. A HEAD goes as HEAD where this is GET.',
    }),
  ),
  timeouts: optional(section(unset(timeoutKeys('')), { description: TIMEOUTS })),
}

const address = (description: string) =>
  text({
    pattern: UPSTREAM_PATTERN,
    expected: 'an http:// or https:// URL, or unix:/path/of/a/socket',
    description,
  })

const tls = section(
  {
    ca: optional(
      path({ description: 'PEM file of certificate authorities to trust instead of the system’s.' }),
    ),
    cert: optional(
      path({
        description: 'PEM file of a client certificate to present, with its intermediate certificates.',
      }),
    ),
    key: optional(path({ description: 'PEM file of the private key of `cert`.' })),
    serverName: optional(
      text({
        description: 'Name that the certificate of the service must have. Default: the host of the target.',
      }),
    ),
    verify: choice(['always', 'off-insecure'], {
      default: 'always',
      description:
        'Whether the certificate is checked. With `off-insecure`, anyone on the way can read and change all calls.',
    }),
  },
  { default: {}, description: 'TLS to the service.' },
)

const healthCheck = section(
  {
    path: text({
      default: '/',
      pattern: '^/[!-~]*$',
      expected: 'a path such as "/health"',
      description: 'Path of the GET request. The target is well if the answer is 2xx.',
    }),
    interval: duration({ default: '5s', description: 'Time between two requests.' }),
    timeout: duration({
      default: '2s',
      description: 'Longest wait for an answer. A later one counts as a failure.',
    }),
    unhealthy: wholeNumber({
      default: 3,
      minimum: 1,
      description: 'Failures in a row after which a target gets no calls.',
    }),
    healthy: wholeNumber({
      default: 2,
      minimum: 1,
      description: 'Successes in a row after which it gets calls again.',
    }),
  },
  { description: 'Regular requests that ask each target whether it is well.' },
)

const ejection = section(
  {
    failures: wholeNumber({
      default: 5,
      minimum: 1,
      description: 'Calls in a row without a usable answer, after which a target gets no calls.',
    }),
    for: duration({
      orZero: true,
      default: '10s',
      description: 'How long it gets none. Then one call tries it again.',
    }),
  },
  {
    default: {},
    description: 'Targets that fail calls get none for a while. If all do, all are used.',
  },
)

/** The keys of all kinds that forward, except `timeouts`. */
export const forwarding = {
  target: optional(
    text({
      pattern: TARGET_PATTERN,
      expected:
        'an http:// or https:// URL, unix:/path/of/a/socket, or one placeholder such as "{business.url}"',
      description:
        'Where the service is: a URL, `unix:/run/upstream.sock`, or `{business.url}`. Calls go below the path of the URL.',
    }),
  ),
  origins: optional(
    list(
      text({
        description:
          'An origin, such as `https://*.erp.internal:*`: `*` is one part of the name, or the port.',
      }),
      {
        minItems: 1,
        unique: true,
        description: 'Where a `target` that is a placeholder may lead. Required there.',
      },
    ),
  ),
  targets: optional(
    list(address('One instance, as `target`.'), {
      minItems: 1,
      unique: true,
      description: 'Instead of `target`: several instances. The least busy one gets the next call.',
    }),
  ),
  host: optional(
    text({
      pattern: '^(?:[A-Za-z0-9.-]|\\{[^{}]+\\})+(:[0-9]{1,5})?$',
      expected: 'a host name, such as "funds.internal" or "{business.bucket}.s3.internal"',
      description:
        'The `Host` header; with a placeholder also the name to verify. Default: the host of the target, or `localhost`.',
    }),
  ),
  ...requestKeys,
  ...answerKeys,
  // Without a default here, so that a check knows whether somebody has written it.
  identity: optional(
    choice(['headers', 'token', 'none'], {
      description:
        'How the service learns who calls: `X-Postern-…` headers, a signed token in `X-Postern-Token`, or not at all. Default: `headers`.',
    }),
  ),
  maxConnections: wholeNumber({
    default: 256,
    minimum: 1,
    description: 'Most connections to a target, per process. Further calls wait for a free one.',
  }),
  connectionAge: duration({
    default: '1m',
    description:
      'Longest use of a connection, less up to a quarter at random. New ones resolve the name again.',
  }),
  closeDelimited: choice(['cut', 'accept'], {
    default: 'cut',
    description:
      'An answer over TLS without a length: does it count as cut off (`cut`) or as complete (`accept`)?',
  }),
  ejection,
  healthCheck: optional(healthCheck),
  tls,
}

export const httpSchema = section(
  { ...forwarding, timeouts: timeouts('15s') },
  { description: 'Forwards calls to an HTTP service.' },
)

/** The configuration that all kinds that forward have in common. */
export type ForwardingConfig = Static<typeof httpSchema>

/** The `upstream` section of an operation: what differs from its backend. A key that is left out is the backend's. */
export const operationUpstreamSchema = section(
  {
    backend: optional(name({ description: 'The backend that answers, instead of that of the area.' })),
    ...unset(requestKeys),
    ...operationKeys,
    ...unset(answerKeys),
  },
  { description: 'What the service is sent, and answers, where this differs from the backend’s section.' },
)

export type OperationUpstream = Static<typeof operationUpstreamSchema>
