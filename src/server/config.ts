import { compileTrustedProxies, type TrustedProxies } from '../http/forwarded.ts'
import { isOrigin } from '../http/cors.ts'
import type { Report } from '../config/report.ts'
import { splitListenAddress } from '../kernel/listen-address.ts'
import { CertificateError, readCertificate, type CertificateFiles } from './certificate.ts'
import {
  duration,
  flag,
  list,
  listenAddress,
  optional,
  path,
  section,
  size,
  text,
  url,
  wholeNumber,
  choice,
  type Static,
} from '../config/pieces.ts'

const limits = section(
  {
    target: size({ default: '8KiB', description: 'Longest request target; longer is 414.' }),
    headers: size({ default: '16KiB', description: 'All header lines of a request together; more is 431.' }),
    headerCount: wholeNumber({
      default: 100,
      minimum: 10,
      maximum: 2000,
      description: 'Most header lines of a request; more is 431.',
    }),
    body: size({
      default: '1MiB',
      description: 'Largest request body that is parsed; larger is 413. Streamed bodies are not bounded.',
    }),
    answer: size({
      default: '16MiB',
      description:
        'Largest answer that is held to be converted between JSON and XML, and largest value of a module; larger is 500. What needs no conversion streams, and is not bounded.',
    }),
    bodyRate: size({
      default: '1KiB',
      description: 'Bytes per second that a body must come at on average once `timeouts.request` has passed.',
    }),
  },
  { default: {}, description: 'What a request may cost before anything is decided about it.' },
)

const timeouts = section(
  {
    headers: duration({ default: '8s', description: 'For a request’s head to arrive whole.' }),
    request: duration({
      default: '8s',
      description: 'For a request’s body; after it, the body must keep up with `limits.bodyRate`.',
    }),
    write: duration({
      default: '30s',
      description: 'For a client to take each 64 KiB of its answer; one that does not is cut off.',
    }),
    keepAlive: duration({
      default: '65s',
      description: 'How long an idle connection is kept; longer than that of the load balancer in front.',
    }),
    lameDuck: duration({
      orZero: true,
      default: '500ms',
      description: 'On shutdown: how long new connections are still served, after readiness went off.',
    }),
    silence: duration({
      orZero: true,
      default: '2s',
      description:
        'On shutdown: how long a connection without a call must be silent before it is closed. A request that comes ' +
        'until then is answered, and told that the connection closes.',
    }),
    drain: duration({
      orZero: true,
      default: '10s',
      description: 'On shutdown: the longest wait for calls in flight; then they are cut.',
    }),
  },
  { default: {}, description: 'How long things may take.' },
)

const tls = section(
  {
    certificate: path({
      description: 'PEM file of the certificate, followed by those between it and its authority.',
    }),
    key: path({
      description: 'PEM file of its private key, without a passphrase; not readable by every user.',
    }),
  },
  {
    description:
      'TLS on the public listener, version 1.2 at least. When the files change, new connections get the new certificate.',
  },
)

const token = (description: string) =>
  text({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", expected: 'the name of a header', description })

const cors = section(
  {
    origins: list(
      text({ description: 'An origin as browsers write it, such as `https://app.example.com`.' }),
      { minItems: 1, unique: true, description: 'Whose pages may call. Every one by name.' },
    ),
    methods: list(choice(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'A method.' }), {
      default: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      unique: true,
      description: 'Methods that a preflight is told of.',
    }),
    headers: list(token('A request header.'), {
      default: ['Accept', 'Authorization', 'Content-Type', 'If-Match', 'If-None-Match', 'X-Request-Id'],
      description: 'Request headers that pages may set.',
    }),
    exposeHeaders: list(token('A response header.'), {
      default: [],
      description:
        'Response headers that pages may read, beside `X-Request-Id`, `RateLimit`, `RateLimit-Policy`, ' +
        '`Retry-After`, `WWW-Authenticate`, `Allow` and `ETag`.',
    }),
    maxAge: duration({
      orZero: true,
      default: '10m',
      description: 'How long browsers may remember a preflight.',
    }),
  },
  {
    description:
      'Calls from pages of other origins; for the API and for the identity endpoints that are no pages. ' +
      'Absent: none. Cookies are never allowed to come along.',
  },
)

export const serverSchema = section(
  {
    listen: listenAddress({ default: '127.0.0.1:8080', description: 'The address of the public listener.' }),
    authUrl: optional(
      url({
        description:
          'Public URL of the identity endpoints, the issuer. Default: `listen`, as http, or https with `tls`.',
      }),
    ),
    baseUrl: optional(
      url({
        description:
          'Public URL of the API, without a path; the audience. Default: `listen`, as http, or https with `tls`.',
      }),
    ),
    tls: optional(tls),
    cors: optional(cors),
    limits,
    timeouts,
    trustedProxies: list(text({ description: 'An address or a CIDR network.' }), {
      default: [],
      description: 'Proxies whose word on the client’s address and scheme counts. Nobody’s by default.',
    }),
    forwardingHeader: choice(['x-forwarded-for', 'forwarded'], {
      default: 'x-forwarded-for',
      description: 'The header that the trusted proxies write; the other one is not read.',
    }),
    strictHeaderNames: flag({
      default: false,
      description: 'Take `Authorization` in exactly this spelling only. Most clients send lower case.',
    }),
  },
  { default: {}, description: 'The public listener.' },
)

export { splitListenAddress }

export type ServerConfig = Static<typeof serverSchema>

/** The URLs of the service, without a trailing slash. */
export interface ServiceUrls {
  readonly authUrl: string
  readonly baseUrl: string
}

/** Reports what the schema cannot say; answers the compiled proxies (undefined trusts nobody). */
export function compileServer(config: ServerConfig, report: Report): TrustedProxies | undefined {
  checkUrl('authUrl', config.authUrl, report)
  checkUrl('baseUrl', config.baseUrl, report)
  if (config.baseUrl !== undefined && new URL(config.baseUrl).pathname !== '/') {
    report.error(['server', 'baseUrl'], 'must have no path; expected a URL such as "https://api.example.com"')
  }
  const { headers, write } = config.timeouts
  if (headers === 0)
    report.error(
      ['server', 'timeouts', 'headers'],
      'must be more than 0: a head that never ends would be waited for',
    )
  if (write === 0)
    report.error(['server', 'timeouts', 'write'], 'must be more than 0: no answer would be sent whole')
  if (config.tls !== undefined) checkCertificate(config.tls, report)
  for (const [index, origin] of (config.cors?.origins ?? []).entries())
    if (!isOrigin(origin))
      report.error(
        ['server', 'cors', 'origins', index],
        'is not an origin as browsers write it; expected scheme and host, such as "https://app.example.com"',
      )
  return compileProxies(config, report)
}

function checkCertificate(files: CertificateFiles, report: Report): void {
  try {
    readCertificate(files)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    report.error(['server', 'tls', error.file], error.message)
  }
}

function checkUrl(key: 'authUrl' | 'baseUrl', value: string | undefined, report: Report): void {
  if (value === undefined) return
  if (value.endsWith('/'))
    report.error(['server', key], 'must not end in a slash', `write "${value.replace(/(?<!\/)\/+$/, '')}"`)
  if (value.includes('?')) report.error(['server', key], 'must have no query')
}

function compileProxies(config: ServerConfig, report: Report): TrustedProxies | undefined {
  try {
    return compileTrustedProxies(config.trustedProxies, config.forwardingHeader)
  } catch (error) {
    report.error(
      ['server', 'trustedProxies'],
      error instanceof Error ? error.message : 'is not a list of networks',
    )
    return undefined
  }
}

/** What the public listener itself speaks; a proxy in front may speak another. */
export const schemeOf = ({ tls: files }: Pick<ServerConfig, 'tls'>): 'http' | 'https' =>
  files === undefined ? 'http' : 'https'

/** The service's URLs once the port is known: `listen` may say 0, and so these are compiled after binding. */
export function serviceUrls(config: ServerConfig, port: number): ServiceUrls {
  const { host } = splitListenAddress(config.listen)
  const derived = `${schemeOf(config)}://${host.includes(':') ? `[${host}]` : host}:${port}`
  return { authUrl: config.authUrl ?? derived, baseUrl: config.baseUrl ?? derived }
}
