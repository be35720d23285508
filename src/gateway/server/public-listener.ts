import { createServer, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { EarlyAdmission } from '../../base/contracts/calls/admission.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { TrustedProxies } from '../../base/http/head/addresses.ts'
import type { Authorities } from '../../base/http/head/request-target.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { descriptorOf } from '../../base/files/descriptors.ts'
import { bindingOf, namingSetting } from '../../base/kernel/listen-address.ts'
import { compileRouting, type Doors, Entrance, type ListenerParts, makeApp, PendingRequests } from './app.ts'
import { type CertificateFiles, CertificateWatch, MIN_VERSION, readCertificate } from './certificate.ts'
import { ListenerEnd, OpenConnections } from './close-listener.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { WholeBodies } from './exchange.ts'
import { CHECK_INTERVAL_MS, SlowBodies } from './request-body.ts'
import { schemeOf, type ServerConfig } from './schema.ts'
import type { RenderFault } from './unreadable.ts'
import { type TakesUpgrade, Upgrades } from './upgrades.ts'

interface PublicListenerOptions {
  readonly config: ServerConfig
  readonly trustedProxies: TrustedProxies | undefined
  readonly recorder: Recorder
  readonly clock: Clock
  /** Asked before every door. Absent: every request reaches its door. */
  readonly earlyAdmission?: EarlyAdmission
  /** Absent: as many connections as there are descriptors. */
  readonly connectionLimit?: ConnectionLimit
}

/** The parts behind the listener. They need the service's URLs, and so are made after the port is known. */
interface BehindListener {
  readonly doors: Doors
  readonly authorities: Authorities
  readonly renderFault: RenderFault
  /** Absent: no upgrade is taken. */
  readonly takesUpgrade?: TakesUpgrade
}

export interface PublicListener {
  readonly port: number
  /** Begins to serve; requests that came before have waited. Called once. */
  open(behind: BehindListener): void
  /** Takes the certificate up that is in its files now. They are watched, but a reload wants it at once. */
  renewCertificate(): void
  /** When the certificate that is shown expires, milliseconds since the epoch; undefined without TLS. */
  certificateValidTo(): number | undefined
  /** Every answer closes its connection from now on, and tunnels are closed. New connections are taken. */
  drain(): void
  /**
   * Stops: drains, takes no more connections after `lameDuck` milliseconds (`timeouts.lameDuck` if not given), finishes
   * the calls in flight, and cuts them after `timeouts.drain`. Resolves with how many connections had to be cut.
   */
  close(lameDuck?: number): Promise<number>
}

/** Room for the request line's other words in node's one limit for target and headers. */
const REQUEST_LINE_SLACK = 64

/** Rejects if the address cannot be listened on, or with CertificateError. */
export async function bindPublicListener(options: PublicListenerOptions): Promise<PublicListener> {
  const { config } = options
  const pending = new PendingRequests()
  const secure = config.tls && openTls(config.tls, httpOptions(config, pending), options)
  const server = secure?.server ?? createServer(httpOptions(config, pending))
  const connections = new OpenConnections(server, secure !== undefined)
  const app = makeApp(server, pending)
  if (options.connectionLimit !== undefined) refuseBeyond(options.connectionLimit, server, connections)
  try {
    await namingSetting('server.listen', app.listen(bindingOf(config.listen)))
  } catch (error) {
    secure?.watch.close()
    throw error
  }
  const { port } = server.address() as AddressInfo
  const { clock } = options
  const endTunnels = (): void => pending.serve(({ upgrades }) => upgrades.end())
  const end = new ListenerEnd(
    { server, connections, endTunnels, clock, stop: () => app.close() },
    config.timeouts,
  )
  const bodies = new SlowBodies({ ...config.timeouts, ...config.limits }, clock)
  const sweeper = setInterval(() => bodies.sweep(), CHECK_INTERVAL_MS).unref()
  return {
    port,
    open: (behind) => pending.open(partsOf(options, behind, bodies, () => end.hasBegun)),
    renewCertificate: () => secure?.watch.look(),
    certificateValidTo: () => secure?.watch.validTo,
    drain: () => end.begin(),
    close: async (lameDuck) => {
      const cut = await end.close(lameDuck)
      clearInterval(sweeper)
      secure?.watch.close()
      return cut
    },
  }
}

/**
 * Closes connections beyond the limit, before anything is read. On the next tick: TLS takes the socket over in this one.
 */
function refuseBeyond(limit: ConnectionLimit, server: Server, connections: OpenConnections): void {
  limit.measure()
  server.on('connection', (socket) => {
    if (!limit.takes(descriptorOf(socket), connections.size)) process.nextTick(() => socket.destroy())
  })
}

function partsOf(
  { config, trustedProxies, recorder, clock, earlyAdmission }: PublicListenerOptions,
  { doors, authorities, renderFault, takesUpgrade }: BehindListener,
  watch: SlowBodies,
  isDraining: () => boolean,
): ListenerParts {
  const { limits } = config
  const scheme = schemeOf(config)
  const upgrades = new Upgrades({ authorities, limits, takesUpgrade, isDraining })
  const entrance = new Entrance({
    rules: { authorities, trustedProxies, limits, clock, watch, scheme, room: new WholeBodies() },
    route: compileRouting(doors),
    renderFault,
    recorder,
    clock,
    earlyAdmission,
    upgrades,
    patience: config.timeouts.write,
    isDraining,
  })
  return { entrance, upgrades, unreadable: { renderFault, recorder, clock, limits, scheme } }
}

const httpOptions = ({ limits, timeouts }: ServerConfig, pending: PendingRequests): ServerOptions => ({
  requireHostHeader: false,
  // Nobody reads node's stream of a body that was not declared: it need not begin, end and close. See NoBody.
  optimizeEmptyRequests: true,
  insecureHTTPParser: false,
  maxHeaderSize: limits.target + limits.headers + REQUEST_LINE_SLACK,
  headersTimeout: timeouts.headers,
  keepAliveTimeout: timeouts.keepAlive,
  requestTimeout: 0, // see SlowBodies
  connectionsCheckingInterval: CHECK_INTERVAL_MS,
  // An Upgrade that is not taken is ignored: served as HTTP/1.1, never forwarded (RFC 9110 §7.8, T2.5).
  shouldUpgradeCallback: (request) => pending.takesUpgrade(request),
})

interface Secure {
  readonly server: TlsServer
  readonly watch: CertificateWatch
}

/** HTTP/1.1 only: README.md says why. A handshake may take as long as a request's head. */
function openTls(
  files: CertificateFiles,
  http: ServerOptions,
  { recorder, clock, config }: PublicListenerOptions,
): Secure {
  const pair = readCertificate(files)
  const fixed = { minVersion: MIN_VERSION } as const
  // Clients that name HTTP/1.0 (curl -0) would be turned away by node's own list, which has 1.1 only.
  const ALPNProtocols = ['http/1.1', 'http/1.0']
  const { cert, key } = pair
  const handshakeTimeout = config.timeouts.headers
  const server = createTlsServer({ ...http, ...fixed, cert, key, ALPNProtocols, handshakeTimeout })
  const watch = new CertificateWatch({
    files,
    pair,
    use: (next) => server.setSecureContext({ ...fixed, cert: next.cert, key: next.key }),
    recorder,
    clock,
  })
  return { server, watch }
}
