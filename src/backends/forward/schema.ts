import {
  choice,
  duration,
  list,
  name,
  optional,
  path,
  section,
  text,
  unset,
  wholeNumber,
  type Static,
} from '../../config/schema.ts'
import { answerKeys } from './answer-schema.ts'
import { operationKeys, requestKeys, timeouts } from './request-schema.ts'
import { UPSTREAM_PATTERN } from '../../upstream/socket.ts'

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

/** What all kinds that forward have, but for `timeouts`. */
export const forwarding = {
  target: optional(
    address(
      'Where the service is: a URL or `unix:/run/upstream.sock`. A path in the URL comes before the path of each call.',
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
      pattern: '^[A-Za-z0-9.-]+(:[0-9]{1,5})?$',
      expected: 'a host name, such as "funds.internal"',
      description: 'The `Host` header. Default: the host of the target, or `localhost` for a unix socket.',
    }),
  ),
  ...requestKeys,
  ...answerKeys,
  // Without a default here, so that a check can tell whether somebody has written it.
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

/** What compiling needs of all kinds that forward. */
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
