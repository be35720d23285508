import { FURTHER_METHODS } from '../../base/http/head/head.ts'
import { compileTrustedProxies, type TrustedProxies } from '../../base/http/head/addresses.ts'
import { isOrigin } from '../../base/http/head/cors.ts'
import { compileReachable } from '../../base/http/head/special-addresses.ts'
import { TOKEN_PATTERN } from '../../base/http/head/header-text.ts'
import type { Problems } from '../../base/config/problems.ts'
import { splitListenAddress } from '../../base/kernel/listen-address.ts'
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
} from '../../base/config/schema.ts'

const limits = section(
  {
    target: size({
      default: '8KiB',
      description: 'Longest path and query of a request. A longer one is 414.',
    }),
    headers: size({
      default: '16KiB',
      description: 'Size of all header lines of a request together. More is 431.',
    }),
    headerCount: wholeNumber({
      default: 100,
      minimum: 10,
      maximum: 2000,
      description: 'Number of header lines of a request. More is 431.',
    }),
    body: size({
      default: '1MiB',
      description:
        'Largest request body that Postern parses. A larger one is 413. Streamed bodies have no limit.',
    }),
    answer: size({
      default: '16MiB',
      description:
        'Largest answer that is converted between JSON and XML, and largest value of a module. More is 500.',
    }),
    bodyRate: size({
      default: '1KiB',
      description: 'After `timeouts.request`, a body must arrive at this many bytes per second on average.',
    }),
  },
  { default: {}, description: 'Limits on the size of requests and answers.' },
)

const timeouts = section(
  {
    headers: duration({ default: '8s', description: 'Until all header lines of a request have arrived.' }),
    request: duration({
      default: '8s',
      description: 'Until a body has arrived. It may take longer if it keeps up with `limits.bodyRate`.',
    }),
    write: duration({
      default: '30s',
      description: 'Until a client has taken the next 64 KiB of its answer. A slower client is cut off.',
    }),
    keepAlive: duration({
      default: '65s',
      description:
        'How long an idle connection is kept. Set it longer than that of a load balancer in front.',
    }),
    lameDuck: duration({
      orZero: true,
      default: '500ms',
      description: 'On shutdown: how long new connections are still accepted after readiness is withdrawn.',
    }),
    silence: duration({
      orZero: true,
      default: '2s',
      description: 'On shutdown: how long a connection must be idle before it is closed.',
    }),
    drain: duration({
      orZero: true,
      default: '10s',
      description: 'On shutdown: how long to wait for calls in flight. Then they are cut off.',
    }),
  },
  { default: {}, description: 'How long clients may take, and how long a shutdown takes.' },
)

const tls = section(
  {
    certificate: path({
      description: 'PEM file of the certificate, followed by its intermediate certificates.',
    }),
    key: path({
      description:
        'PEM file of the private key, without a passphrase. Other users must not be able to read it.',
    }),
  },
  {
    description: 'TLS, version 1.2 or later. Changed files are used for new connections, without a restart.',
  },
)

const token = (description: string) =>
  text({ pattern: TOKEN_PATTERN, expected: 'the name of a header', description })

const cors = section(
  {
    origins: list(
      text({ description: 'An origin as browsers write it, such as `https://app.example.com`.' }),
      { minItems: 1, unique: true, description: 'Origins whose pages may call. There is no wildcard.' },
    ),
    methods: list(
      choice(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', ...FURTHER_METHODS], {
        description: 'A method.',
      }),
      {
        default: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
        unique: true,
        description: 'Methods that a preflight request allows.',
      },
    ),
    headers: list(token('A request header.'), {
      default: ['Accept', 'Authorization', 'Content-Type', 'If-Match', 'If-None-Match', 'X-Request-Id'],
      description: 'Request headers that a page may set.',
    }),
    exposeHeaders: list(token('A response header.'), {
      default: [],
      description: 'Further response headers that a page may read. The usual ones may always be read.',
    }),
    maxAge: duration({
      orZero: true,
      default: '10m',
      description: 'How long a browser may cache the answer to a preflight request.',
    }),
  },
  {
    description:
      'CORS: calls from web pages of other origins. Left out: none are allowed. Cookies are never allowed.',
  },
)

const outbound = section(
  {
    allow: list(text({ description: 'An address or a CIDR network.' }), {
      default: [],
      description: 'Networks that such calls may reach though they are not public. Default: none.',
    }),
  },
  { default: {}, description: 'Calls to URLs that the entries of clients name.' },
)

export const serverSchema = section(
  {
    listen: listenAddress({ default: '127.0.0.1:8080', description: 'Address and port to listen on.' }),
    authUrl: optional(
      url({
        description:
          'Public URL of the identity endpoints, and the issuer of tokens. Default: made from `listen`.',
      }),
    ),
    baseUrl: optional(
      url({
        description:
          'Public URL of the API, without a path, and the audience of tokens. Default: made from `listen`.',
      }),
    ),
    tls: optional(tls),
    cors: optional(cors),
    limits,
    timeouts,
    trustedProxies: list(text({ description: 'An address or a CIDR network.' }), {
      default: [],
      description: 'Proxies that may state the client’s address and scheme. Default: none.',
    }),
    forwardingHeader: choice(['x-forwarded-for', 'forwarded'], {
      default: 'x-forwarded-for',
      description: 'The header that the trusted proxies write. The other one is ignored.',
    }),
    resourceMetadata: flag({
      default: false,
      description:
        'Name the address of the API’s metadata (RFC 9728) in the challenge of each 401, as `resource_metadata`.',
    }),
    strictHeaderNames: flag({
      default: false,
      description:
        'Accept the header name `Authorization` in exactly this case only. Most clients send lower case.',
    }),
    outbound,
  },
  { default: {}, description: 'The listener for the API and the identity endpoints.' },
)

export type ServerConfig = Static<typeof serverSchema>

/** Where the OpenAPI document is, below `{base_url}` (C11.3.8). */
export const DESCRIPTION_PATH = '/.well-known/openapi.json'

/** The URLs of the service, without a trailing slash. */
export interface ServiceUrls {
  readonly authUrl: string
  readonly baseUrl: string
}

/** Reports problems that the schema cannot express; answers the compiled proxies (undefined trusts nobody). */
export function compileServer(config: ServerConfig, problems: Problems): TrustedProxies | undefined {
  checkUrl('authUrl', config.authUrl, problems)
  checkUrl('baseUrl', config.baseUrl, problems)
  if (config.baseUrl !== undefined && new URL(config.baseUrl).pathname !== '/') {
    problems.error(
      ['server', 'baseUrl'],
      'must have no path; expected a URL such as "https://api.example.com"',
    )
  }
  const { headers, write } = config.timeouts
  if (headers === 0)
    problems.error(
      ['server', 'timeouts', 'headers'],
      'must be more than 0: a head that never ends would be waited for',
    )
  if (write === 0)
    problems.error(['server', 'timeouts', 'write'], 'must be more than 0: no answer would be sent whole')
  if (config.tls !== undefined) checkCertificate(config.tls, problems)
  for (const [index, origin] of (config.cors?.origins ?? []).entries())
    if (!isOrigin(origin))
      problems.error(
        ['server', 'cors', 'origins', index],
        'is not an origin as browsers write it; expected scheme and host, such as "https://app.example.com"',
      )
  checkNetworks(['server', 'outbound', 'allow'], () => compileReachable(config.outbound.allow), problems)
  return checkNetworks(
    ['server', 'trustedProxies'],
    () => compileTrustedProxies(config.trustedProxies, config.forwardingHeader),
    problems,
  )
}

function checkCertificate(files: CertificateFiles, problems: Problems): void {
  try {
    readCertificate(files)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    problems.error(['server', 'tls', error.file], error.message)
  }
}

function checkUrl(key: 'authUrl' | 'baseUrl', value: string | undefined, problems: Problems): void {
  if (value === undefined) return
  if (value.endsWith('/'))
    problems.error(['server', key], 'must not end in a slash', `write "${value.replace(/(?<!\/)\/+$/, '')}"`)
  if (value.includes('?')) problems.error(['server', key], 'must have no query')
}

/** Compiles a list of networks; undefined if that fails, which is reported. */
function checkNetworks<T>(key: readonly string[], compile: () => T, problems: Problems): T | undefined {
  try {
    return compile()
  } catch (error) {
    problems.error(key, error instanceof Error ? error.message : 'is not a list of networks')
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
