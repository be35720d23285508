import { TokenSources } from '../../src/gateway/backends/forward/auth/token-credentials.ts'
import { HttpBackend } from '../../src/gateway/backends/forward/http.ts'
import { identifyByHeaders } from '../../src/gateway/backends/forward/request.ts'
import type { HttpBackendRules } from '../../src/gateway/backends/forward/rules.ts'
import { type Clock, systemClock } from '../../src/base/kernel/clock.ts'
import { parseUpstreamAddress } from '../../src/gateway/upstream/socket.ts'

type Changes = Partial<Omit<HttpBackendRules, 'timeouts'>> & {
  readonly timeouts?: Partial<HttpBackendRules['timeouts']>
}

/** What forwarding backends have by default, over one or several addresses. */
export const forwardingRules = (
  urls: string | readonly string[],
  changes: Changes = {},
): HttpBackendRules => ({
  name: 'upstream',
  vendor: 'postern',
  targets: [urls].flat().map((url) => parseUpstreamAddress(url)!),
  path: undefined,
  query: new Map(),
  queryOnly: undefined,
  strictQuery: false,
  headers: new Map(),
  method: undefined,
  host: undefined,
  identify: identifyByHeaders,
  format: 'json',
  payload: 'bare',
  types: undefined,
  ranges: 'bytes',
  forwarded: 'on',
  forwardAuthorization: false,
  credentials: undefined,
  sources: new TokenSources(systemClock, () => undefined),
  requestHeaders: undefined,
  responseHeaders: [],
  errors: undefined,
  errorStatus: undefined,
  redirects: undefined,
  data: undefined,
  operations: undefined,
  maxConnections: 256,
  connectionAge: 60_000,
  closeDelimited: 'cut',
  retries: 1,
  ejection: { failures: 5, for: 10_000 },
  healthCheck: undefined,
  targetChanged: () => undefined,
  retried: () => undefined,
  tls: {},
  ...changes,
  timeouts: { connect: 2000, firstByte: 10_000, idle: 15_000, ...changes.timeouts },
})

/** An `http` backend with the defaults of the configuration, whose owner closes it. */
export const openHttpBackend = (
  urls: string | readonly string[],
  changes: Changes = {},
  clock: Clock = systemClock,
): HttpBackend => new HttpBackend(forwardingRules(urls, changes), clock)
