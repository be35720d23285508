/** The admin listener (C11.1): metrics, health, the admin API and its token. */
import type { AddressInfo } from 'node:net'
import type { Recorder } from '../contracts/recorder.ts'
import { isLoopback, splitListenAddress } from '../kernel/listen-address.ts'
import type { AdminConfig } from '../settings/admin.ts'
import { AdminError } from './errors.ts'
import type { Health } from '../watch/health.ts'
import { type AdminApp, type IncomingRequest, makeApp, refuseOtherMethods } from './framework.ts'
import { type AuthenticatedOperator, expiredOperator, type Operators, unknownOperator } from './operators.ts'
import { type AdminApi, addRoute } from './serve-route.ts'

export interface AdminParts {
  readonly config: AdminConfig
  readonly health: Health
  readonly recorder: Recorder
  readonly metrics: () => { readonly contentType: string; readonly text: Promise<string> }
  readonly operators: Operators
  /** Every route of it requires a token. */
  readonly api?: AdminApi
}

export interface AdminListener {
  readonly port: number
  /** The port of the read-only listener, if one is configured. */
  readonly probesPort: number | undefined
  close(): Promise<void>
}

/** Starts the admin listener and, if configured, the read-only one. Rejects if an address cannot be bound. */
export async function startAdminListener(parts: AdminParts): Promise<AdminListener> {
  const { config } = parts
  const admin = await listen(makeAdmin(parts), config.listen)
  const probes = config.probes === undefined ? undefined : await listen(makeProbes(parts), config.probes)
  return {
    port: admin.port,
    probesPort: probes?.port,
    close: async () => {
      await Promise.all([admin.app.close(), probes?.app.close()])
    },
  }
}

interface Listening {
  readonly app: AdminApp
  readonly port: number
}

async function listen(app: AdminApp, address: string): Promise<Listening> {
  await app.listen(splitListenAddress(address))
  return { app, port: (app.server.address() as AddressInfo).port }
}

/** The paths of `addHealth` and `addMetrics`. */
const PROBED = ['/health/live', '/health/ready', '/metrics'].map((path) => ({ method: 'GET', path }))

function makeAdmin(parts: AdminParts): AdminApp {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  const { api, config, operators } = parts
  addMetrics(
    app,
    parts,
    config.token === undefined ? refuseRenamed : (request) => identify(request, operators),
  )
  if (api) for (const route of api.routes) addRoute(app, route, { ...api, operators })
  refuseOtherMethods(app, [...PROBED, ...(api?.routes ?? [])])
  return app
}

/** For probes and scrapers, on any address. It needs no token: its routes change nothing and show no secret. */
function makeProbes(parts: AdminParts): AdminApp {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  addMetrics(app, parts)
  refuseOtherMethods(app, PROBED)
  return app
}

/** Throws AdminError 401 unless the request shows a token that is in force. */
function identify({ headers }: IncomingRequest, operators: Operators): AuthenticatedOperator {
  const operator = operators.find(headers.authorization)
  if (operator === undefined) throw unknownOperator(headers.authorization)
  if (operators.hasExpired(operator)) throw expiredOperator(operator)
  return operator
}

/**
 * Without a token the listener is on loopback, where only programs of this machine can call. A browser is one: a web page
 * whose own name was made to mean 127.0.0.1 would read what it is answered. It cannot choose another Host than that name.
 * Throws AdminError 421 (RFC 9110 §15.5.20).
 */
function refuseRenamed({ headers, hostname }: IncomingRequest): void {
  if (headers.host === undefined || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return
  throw new AdminError(421, 'call this by a loopback address or as localhost, or set `admin.token`')
}

function addHealth(app: AdminApp, health: Health): void {
  app.get('/health/live', () => ({ status: 'live' }))
  app.get('/health/ready', (_request, reply) => {
    const { ready, failing, degraded } = health.readiness()
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', failing, degraded })
  })
}

/** `guard` throws AdminError, if the metrics ask for a token. */
function addMetrics(
  app: AdminApp,
  { metrics }: AdminParts,
  guard?: (request: IncomingRequest) => unknown,
): void {
  app.get('/metrics', async (request, reply) => {
    guard?.(request)
    const { contentType, text } = metrics()
    return reply.type(contentType).send(await text)
  })
}
