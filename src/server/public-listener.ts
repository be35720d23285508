/**
 * The public listener: fastify on node:http. Fastify owns the server's life (listen, ready, close); what a client sends
 * goes from node's server straight to the entrance, because it must be judged by one set of rules (C3, C4) and answered
 * in one form (C2.3). The server is ours and handed to fastify by `serverFactory`, whose own listener for requests is
 * not attached: its router, parsers, error pages and its 503 while closing see none. What of the rest is switched off or
 * replaced, and why:
 *
 * - fastify's answer to unreadable bytes: `clientErrorHandler`;
 * - node's bare answers outside every handler: no Host (`requireHostHeader`), Expect (`checkContinue`,
 *   `checkExpectation`), CONNECT (`connect`), Upgrade (`shouldUpgradeCallback`);
 * - node's silent cut of header lines beyond 2000 (`maxHeadersCount`): a repeated Authorization could hide there.
 */
import type { FastifyInstance } from 'fastify'
import fastify from 'fastify'
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { EarlyAdmission } from '../contracts/admission.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Authorities } from '../http/authorities.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import type { RequestTarget } from '../http/request-target.ts'
import type { Clock } from '../kernel/clock.ts'
import { bindingOf } from '../kernel/listen-address.ts'
import { MIN_VERSION, readCertificate, type CertificateFiles } from './certificate.ts'
import { CertificateWatch } from './certificate-watch.ts'
import { schemeOf, type ServerConfig } from './config.ts'
import { ListenerEnd } from './close-listener.ts'
import { Entrance } from './entrance.ts'
import { OpenConnections } from './open-connections.ts'
import { compileRouting, type Doors } from './routing.ts'
import { Upgrades, upgradeWire } from './upgrades.ts'
import { CHECK_INTERVAL_MS, SlowBodies } from './slow-bodies.ts'
import { answerConnect, answerUnreadable, type RenderFault, type UnreadableParts } from './unreadable.ts'

export interface PublicListenerOptions {
  readonly config: ServerConfig
  readonly trustedProxies: TrustedProxies | undefined
  readonly recorder: Recorder
  readonly clock: Clock
  /** Asked before every door; absent lets everything in. */
  readonly gatekeeper?: EarlyAdmission
}

/** What stands behind the listener. Needs the service's URLs, and so is made after the port is known. */
export interface BehindListener {
  readonly doors: Doors
  readonly authUrl: string
  readonly authorities: Authorities
  readonly renderFault: RenderFault
  /** Whether a websocket that is asked for at this target is to be taken; absent takes none. */
  readonly takesWebsocket?: (target: RequestTarget) => boolean
}

export interface PublicListener {
  readonly port: number
  /** Begins to serve; requests that came before have waited. Called once. */
  open(behind: BehindListener): void
  /** Takes the certificate up that is in its files now. They are watched; whoever reloads wants it at once. */
  renewCertificate(): void
  /** Every answer closes its connection from now on, and websockets are told to leave. New connections are taken. */
  drain(): void
  /**
   * Stops: drains, takes no more connections after `lameDuck` milliseconds (`timeouts.lameDuck` if not given), finishes
   * the calls in flight, and cuts them after `timeouts.drain`. Resolves with how many connections had to be cut.
   */
  close(lameDuck?: number): Promise<number>
}

/** Room for the request line's other words in node's one limit for target and headers. */
const REQUEST_LINE_SLACK = 64

/**
 * Binds the public listener. Rejects if the address cannot be listened on, or with CertificateError if there is a
 * certificate that cannot be served.
 */
export async function bindPublicListener(options: PublicListenerOptions): Promise<PublicListener> {
  const { config } = options
  const gate = new Gate()
  const secure = config.tls && openTls(config.tls, httpOptions(config, gate), options)
  const server = secure?.server ?? createServer(httpOptions(config, gate))
  const connections = new OpenConnections(server, secure !== undefined)
  const app = makeApp(server, gate)
  try {
    await app.listen(bindingOf(config.listen))
  } catch (error) {
    secure?.watch.close()
    throw error
  }
  const { port } = server.address() as AddressInfo
  const { clock } = options
  const endTunnels = (): void => gate.pass(({ upgrades }) => upgrades.end())
  const end = new ListenerEnd(
    { server, connections, endTunnels, clock, stop: () => app.close() },
    config.timeouts,
  )
  const bodies = new SlowBodies({ ...config.timeouts, ...config.limits }, clock)
  const sweeper = setInterval(() => bodies.sweep(), CHECK_INTERVAL_MS).unref()
  return {
    port,
    open: (behind) => gate.open(stationOf(options, behind, bodies, () => end.hasBegun)),
    renewCertificate: () => secure?.watch.look(),
    drain: () => end.begin(),
    close: async (lameDuck) => {
      const cut = await end.close(lameDuck)
      clearInterval(sweeper)
      secure?.watch.close()
      return cut
    },
  }
}

function stationOf(
  { config, trustedProxies, recorder, clock, gatekeeper }: PublicListenerOptions,
  { doors, authUrl, authorities, renderFault, takesWebsocket }: BehindListener,
  watch: SlowBodies,
  isDraining: () => boolean,
): Station {
  const { limits } = config
  const scheme = schemeOf(config)
  const upgrades = new Upgrades({ authorities, limits, takesWebsocket, isDraining })
  const entrance = new Entrance({
    rules: { authorities, trustedProxies, limits, clock, watch, scheme },
    route: compileRouting(doors, authUrl),
    renderFault,
    recorder,
    clock,
    gatekeeper,
    upgrades,
    patience: config.timeouts.write,
    isDraining,
  })
  return { entrance, upgrades, unreadable: { renderFault, recorder, clock, limits, scheme } }
}

interface Station {
  readonly entrance: Entrance
  readonly upgrades: Upgrades
  readonly unreadable: UnreadableParts
}

/** Holds what arrives between binding and opening. */
class Gate {
  #station: Station | undefined
  #held: ((station: Station) => void)[] = []

  pass(visit: (station: Station) => void): void {
    if (this.#station === undefined) this.#held.push(visit)
    else visit(this.#station)
  }

  /** Before it is open nobody can tell which upgrades to take. */
  takesUpgrade(request: IncomingMessage): boolean {
    return this.#station?.upgrades.takes(request) ?? false
  }

  open(station: Station): void {
    this.#station = station
    const held = this.#held
    this.#held = []
    for (const visit of held) visit(station)
  }
}

/** What node's server is told, with TLS or without. */
const httpOptions = ({ limits, timeouts }: ServerConfig, gate: Gate): ServerOptions => ({
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
  shouldUpgradeCallback: (request) => gate.takesUpgrade(request),
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

/** Fastify around a server of ours: what fastify would do for a request, it never hears of. */
function makeApp(server: Server, gate: Gate): FastifyInstance {
  const receive = (request: IncomingMessage, response: ServerResponse): void =>
    gate.pass(({ entrance }) => entrance.receive({ request, response }))
  server.maxHeadersCount = 0
  server.on('request', receive)
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) =>
    gate.pass(({ entrance }) => entrance.receive(upgradeWire(request, socket, head))),
  )
  server.on('connect', (request: IncomingMessage) =>
    gate.pass(({ unreadable }) => answerConnect(request, unreadable)),
  )
  return fastify({
    logger: false,
    forceCloseConnections: false,
    clientErrorHandler: (error, socket) =>
      gate.pass(({ unreadable }) => answerUnreadable(error, socket, unreadable)),
    serverFactory: () => server,
  })
}
