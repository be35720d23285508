import {
  choice,
  duration,
  flag,
  list,
  optional,
  path,
  section,
  text,
  wholeNumber,
  type Static,
} from '../../config/pieces.ts'
import { UPSTREAM_PATTERN } from '../../upstream/socket.ts'

const address = (description: string) =>
  text({
    pattern: UPSTREAM_PATTERN,
    expected: 'an http:// or https:// URL, or unix: and the absolute path of a socket',
    description,
  })

/** @param idle the default between two pieces */
export const timeouts = (idle: string) =>
  section(
    {
      connect: duration({ default: '2s', description: 'Until a connection stands, TLS included.' }),
      firstByte: duration({
        default: '10s',
        description:
          'From the request sent to the first byte of its answer; also the wait for a free connection.',
      }),
      idle: duration({
        default: idle,
        description: 'Between two pieces of an answer; on a websocket, between any two bytes either way.',
      }),
    },
    { default: {}, description: 'How long the upstream may take; beyond that the answer is 503.' },
  )

const tls = section(
  {
    ca: optional(path({ description: 'PEM file of authorities to trust instead of the system’s.' })),
    cert: optional(path({ description: 'PEM file of the certificate to show, with those between.' })),
    key: optional(path({ description: 'PEM file of the private key of `cert`.' })),
    serverName: optional(
      text({
        description: 'The name that the upstream’s certificate must bear. Default: the host of the target.',
      }),
    ),
    verify: choice(['always', 'off-insecure'], {
      default: 'always',
      description:
        'Whether the upstream must prove who it is. `off-insecure` lets anyone on the way read and change everything.',
    }),
  },
  { default: {}, description: 'TLS to the upstream.' },
)

const healthCheck = section(
  {
    path: text({
      default: '/',
      pattern: '^/[!-~]*$',
      expected: 'a path such as "/health"',
      description: 'What is asked, with GET, of each target. 2xx is well.',
    }),
    interval: duration({ default: '5s', description: 'Between two questions.' }),
    timeout: duration({ default: '2s', description: 'For an answer; later is as bad as none.' }),
    unhealthy: wholeNumber({
      default: 3,
      minimum: 1,
      description: 'Bad answers in a row that put a target out.',
    }),
    healthy: wholeNumber({
      default: 2,
      minimum: 1,
      description: 'Good answers in a row that bring a target back.',
    }),
  },
  { description: 'Asks each target now and then whether it is well. Without it only calls tell.' },
)

const ejection = section(
  {
    failures: wholeNumber({
      default: 5,
      minimum: 1,
      description:
        'Calls in a row that get no answer from a target (refused, reset, too slow, not HTTP) and put it out.',
    }),
    for: duration({ orZero: true, default: '10s', description: 'How long; then one call tries it again.' }),
  },
  {
    default: {},
    description: 'Targets that fail calls are left out for a while. Where all are, all are asked.',
  },
)

/** What all kinds that forward have, but for `timeouts`. */
export const forwarding = {
  target: optional(
    address(
      'Where the upstream is: a URL, or `unix:/run/upstream.sock`. A path in a URL is put before the path of each call.',
    ),
  ),
  targets: optional(
    list(address('Where one instance is.'), {
      minItems: 1,
      unique: true,
      description: 'Where its instances are, if there are several: the least busy gets the next call.',
    }),
  ),
  host: optional(
    text({
      pattern: '^[A-Za-z0-9.-]+(:[0-9]{1,5})?$',
      expected: 'a host name, such as "funds.internal"',
      description: 'The Host header. Default: that of the target; of a unix socket `localhost`.',
    }),
  ),
  path: optional(
    text({
      description:
        'The path of each call instead of the client’s: segments of plain text, {version}, {business}, {fund} (left out at business level), {area} or {action}, as in `/v2/{business}/{action}`.',
    }),
  ),
  format: choice(['json', 'xml'], { default: 'json', description: 'The format that the upstream speaks.' }),
  payload: choice(['bare', 'envelope'], {
    default: 'bare',
    description: 'Whether the upstream answers the data alone, or in an envelope of `Errors` and `Data`.',
  }),
  identity: choice(['headers', 'token'], {
    default: 'headers',
    description:
      'How the upstream learns who calls: by the `X-Postern-…` headers, or by a token in `X-Postern-Token`, signed and good for a minute.',
  }),
  forwardAuthorization: flag({
    default: false,
    description: 'Pass the Authorization header of the client on. An upstream’s 401 then reaches the client.',
  }),
  requestHeaders: optional(
    list(text({ description: 'A header’s name.' }), {
      unique: true,
      description:
        'The only headers of a client that reach the upstream, such as `Accept-Language` or `Idempotency-Key`; an empty list lets none in. ' +
        'What Postern says itself, and the `Sec-WebSocket-…` of a handshake, come beside them. Left out: all but those that say who calls or from where.',
    }),
  ),
  responseHeaders: list(text({ description: 'A header’s name.' }), {
    default: [],
    description:
      'Response headers that reach the client beyond the defaults, such as `Location`, `Set-Cookie` or `Cache-Control`.',
  }),
  maxConnections: wholeNumber({
    default: 256,
    minimum: 1,
    description: 'Connections to a target at most, per process. Calls beyond them wait for a free one.',
  }),
  connectionAge: duration({
    default: '1m',
    description:
      'How long a connection to a target is used at most, up to a quarter less by chance. New ones ask the DNS again.',
  }),
  closeDelimited: choice(['cut', 'accept'], {
    default: 'cut',
    description:
      'What becomes of an answer without length or chunks over TLS, where nobody can tell its end from a cut: it counts as cut off (500 if nothing of it was passed on yet), or as whole.',
  }),
  retries: wholeNumber({
    default: 1,
    minimum: 0,
    maximum: 5,
    description:
      'How often a call of a safe method without a body is sent again: after its connection failed, or to another target if the first was too slow.',
  }),
  ejection,
  healthCheck: optional(healthCheck),
  tls,
}

export const httpSchema = section(
  { ...forwarding, timeouts: timeouts('15s') },
  { description: 'Forwards calls to an HTTP upstream.' },
)

/** What compiling needs of all kinds that forward. */
export type ForwardingConfig = Static<typeof httpSchema>
