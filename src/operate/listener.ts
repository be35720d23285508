/** The admin listener (C11.1): metrics, health, the admin API and its token. */
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import fastify, {
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Operator } from '../base/contracts/records/audited-change.ts'
import type { AuditTrail } from '../base/contracts/records/audit.ts'
import type { Recorder } from '../base/contracts/records/recorder.ts'
import { type JsonValue, parseJson } from '../base/http/body/json.ts'
import { Fault } from '../base/kernel/faults.ts'
import { descriptors } from '../base/files/descriptors.ts'
import { isLoopback, namingSetting, splitListenAddress } from '../base/kernel/listen-address.ts'
import { withStoreBudget } from '../base/kernel/store-budget.ts'
import type { AdminConfig } from './settings/admin.ts'
import type { Health } from '../base/kernel/health.ts'
import type { ServiceContext } from './operation/context.ts'
import { AdminError, errorBodyOf, type FrameworkError } from './operation/errors.ts'
import { MERGE_PATCH, type AdminOperation } from './operation/operation.ts'
import {
  type AuthenticatedOperator,
  expiredOperator,
  type Operators,
  unknownOperator,
} from './operation/operators.ts'
import { requireRight, performerOf } from './operation/perform.ts'

/**
 * The listener's application and its requests: no other file names the library. Requests are checked by their operation
 * (operation/perform.ts), not by Fastify's Ajv. Trap: Fastify's default errors repeat the path and the exception's message, so its
 * handlers are replaced.
 */
type AdminApp = FastifyInstance
type IncomingRequest = FastifyRequest

/** Replaces Fastify's schema compilers (Ajv, fast-json-stringify), so that they are not loaded: none of them is used. */
const unused = (): never => {
  throw new TypeError('the admin listener has a validator of its own, and no schema of an answer')
}

/**
 * Reads bodies as strictly as those under `/api` (C7.6): a key that occurs twice, half a character or thousands of levels
 * are 400. Fastify's own reader makes the value then, and refuses a member `__proto__`.
 */
function bodyReader(app: AdminApp): FastifyBodyParser<Buffer> {
  const read = app.getDefaultJsonParser('error', 'error')
  return (request, body, done) => {
    try {
      if (body.length > 0) parseJson(body)
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      const { say } = thrown.facts
      const problems = say === undefined ? undefined : [`body  ${say}`]
      done(new AdminError(400, 'the request does not fit', problems))
      return
    }
    void read(request, body.toString(), done)
  }
}

/** The methods that a path may be asked with: others Fastify does not route. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

/**
 * Answers 405 with `Allow` (RFC 9110 §15.5.6) where a path exists and the method does not, so that a caller sees which of
 * the two is wrong. To be called once `routes` are all there are.
 */
function refuseOtherMethods(
  app: AdminApp,
  routes: readonly { readonly method: string; readonly path: string }[],
): void {
  for (const [url, served] of Map.groupBy(routes, ({ path }) => path)) {
    const allowed = [...new Set(served.map(({ method }) => method))]
    const refuse = (reply: FastifyReply): FastifyReply =>
      reply
        .code(405)
        .header('Allow', allowed.join(', '))
        .send({ error: `this path takes only ${allowed.join(', ')}` })
    app.route({
      method: METHODS.filter((method) => !allowed.includes(method)),
      url,
      // Before a body is read.
      onRequest: (_request, reply) => void refuse(reply),
      handler: (_request, reply) => refuse(reply),
    })
  }
}

const NOTHING_HERE = { error: 'there is nothing at this path' }

function makeApp(recorder: Recorder): AdminApp {
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    requestTimeout: 10_000,
    // A user name has up to 128 characters, each up to 12 when it is percent-encoded.
    routerOptions: { maxParamLength: 2048 },
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    // A path that Fastify cannot route: percent signs that are no encoding, or a parameter that is too long. Its own
    // answer repeats the path, and no other handler is asked.
    frameworkErrors: (_error, _request, reply) => {
      void (reply as FastifyReply).code(404).send(NOTHING_HERE)
    },
  })
  app.removeContentTypeParser(['text/plain', 'application/json'])
  app.addContentTypeParser(['application/json', MERGE_PATCH], { parseAs: 'buffer' }, bodyReader(app))
  app.addHook('onSend', async (_request, reply) => {
    reply.header('Cache-Control', 'no-store')
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send(NOTHING_HERE))
  app.setErrorHandler((thrown: FrameworkError, _request, reply) => {
    const { status, body } = errorBodyOf(thrown)
    if (status >= 500) recorder.note('error', 'admin_failed', { cause: thrown })
    if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="admin"')
    return reply.code(status).send(body)
  })
  return app
}

export interface AdminApi {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly routes: readonly AdminOperation[]
  /** Awaited by each request: while the service starts, there is none yet. */
  readonly context: Promise<ServiceContext>
}

/** The API, and who may use it. */
type GuardedApi = AdminApi & { readonly operators: Operators }

/** The header by which a command says what it is. Nobody has proven it: records hold it as they hold `by`. */
const VIA_HEADER = 'postern-via'

const fromOf = ({ headers, ip }: IncomingRequest): Pick<Operator, 'via' | 'channel'> => ({
  via: ip,
  channel: headers[VIA_HEADER] === 'cli' ? 'cli' : 'admin',
})

/** Throws AdminError 401 or 403, unless the request shows a token that may do this. */
function authorized(request: IncomingRequest, route: AdminOperation, api: GuardedApi): AuthenticatedOperator {
  const operator = api.operators.find(request.headers.authorization)
  if (operator === undefined) throw unknownOperator(request.headers.authorization)
  const { audit, operators } = api
  return requireRight(operator, operators.hasExpired(operator), route, { audit, from: fromOf(request) })
}

function addRoute(app: AdminApp, route: AdminOperation, api: GuardedApi): void {
  const { method, path: url } = route
  const known = new WeakMap<IncomingRequest, AuthenticatedOperator>()
  const perform = performerOf<ServiceContext>(route, route.handle)
  app.route({
    method,
    url,
    // Before the body is read.
    onRequest: (request, _reply, done) => {
      known.set(request, authorized(request, route, api))
      refuseOtherTypes(request)
      done()
    },
    handler: async (request, reply) => {
      const operator = known.get(request)
      if (operator === undefined) throw unknownOperator(undefined)
      const { params, query, body, headers } = request as IncomingRequest &
        Record<'body', JsonValue | undefined>
      const received = {
        params: (params ?? {}) as JsonValue,
        query: (query ?? {}) as JsonValue,
        body: body ?? null,
        ifMatch: headers['if-match'],
        operator,
        from: fromOf(request),
      }
      const context = await api.context
      const answer = await withPatience(headers, () => perform(context, received))
      const { status, type, tag, location } = answer
      if (type !== undefined) reply.type(type)
      if (tag !== undefined) reply.header('ETag', `"${tag}"`)
      if (location !== undefined) reply.header('Location', location)
      return reply.code(status).send(answer.body)
    },
  })
}

/** Only PATCH takes a merge patch. Throws AdminError 415. */
function refuseOtherTypes({ method, headers }: IncomingRequest): void {
  if (method !== 'PATCH' && headers['content-type']?.startsWith(MERGE_PATCH) === true)
    throw new AdminError(415, 'send the body as application/json')
}

/** How long a client may have the store waited for, in seconds. */
const MOST_PATIENCE = 10
const WAIT = /(?:^|,)\s*wait=(\d{1,3})\s*(?:,|;|$)/

/** A client says by `Prefer: wait=…` (RFC 7240) how long the store may take, beyond what it is given for others. */
function withPatience<T>({ prefer }: IncomingRequest['headers'], work: () => Promise<T>): Promise<T> {
  const [, seconds] = WAIT.exec([prefer].flat().join()) ?? []
  if (seconds === undefined) return work()
  return withStoreBudget(work, Math.min(Number(seconds), MOST_PATIENCE) * 1000)
}

export interface AdminParts {
  readonly config: AdminConfig
  readonly health: Health
  readonly recorder: Recorder
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: Promise<string> }>
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
  await using opened = new AsyncDisposableStack()
  const listen = async (app: AdminApp, setting: 'listen' | 'probes', address: string): Promise<number> => {
    limitConnections(app.server, descriptors().kept / 4)
    await namingSetting(`admin.${setting}`, app.listen(splitListenAddress(address)))
    opened.defer(() => app.close())
    return (app.server.address() as AddressInfo).port
  }
  const port = await listen(makeAdmin(parts), 'listen', config.listen)
  const probesPort =
    config.probes === undefined ? undefined : await listen(makeProbes(parts), 'probes', config.probes)
  const lasting = opened.move()
  return { port, probesPort, close: () => lasting.disposeAsync() }
}

/**
 * Keeps somebody who opens connections from taking all descriptors that are kept: beyond `most`, the connection that has been
 * idle for longest is closed. It is the new one where all others are in the middle of a request.
 */
function limitConnections(server: Server, most: number): void {
  const idle = new Set<Socket>()
  let open = 0
  server.on('connection', (socket) => {
    open += 1
    idle.add(socket)
    socket.on('close', () => {
      open -= 1
      idle.delete(socket)
    })
    const [oldest] = idle
    if (open > most) oldest?.destroy()
  })
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.on('close', () => {
      if (!socket.destroyed) idle.add(socket)
    })
  })
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
    const { contentType, text } = await metrics()
    return reply.type(contentType).send(await text)
  })
}
