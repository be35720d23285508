/**
 * The admin listener (C11.1): metrics, health, the admin API and its token. Fastify routes the calls. Requests are
 * checked by the validator of bodies under `/api`, not by Fastify's Ajv. Trap: Fastify's default errors repeat the path
 * and the exception's message, so both handlers are replaced.
 */
import fastify, { type FastifyInstance, type FastifyRequest, type FastifySchemaCompiler } from 'fastify'
import type { AddressInfo } from 'node:net'
import { type AuditTrail, MOST_REASON } from '../../contracts/audit.ts'
import type { Recorder } from '../../contracts/recorder.ts'
import type { JsonValue } from '../../http/json-value.ts'
import { compileProblems } from '../../http/validate-body.ts'
import { splitListenAddress } from '../../kernel/listen-address.ts'
import {
  AdminError,
  type AdminRequest,
  type AdminRoute,
  type FrameworkError,
  members,
  type OperatorControl,
  type Schema,
  errorBodyOf,
} from './routes.ts'
import type { AdminConfig } from '../config.ts'
import {
  expiredOperator,
  type AuthenticatedOperator,
  type Operators,
  refusedOperator,
  unknownOperator,
} from './operators.ts'
import { hasRight } from './rights.ts'
import type { Health } from '../health.ts'

export interface AdminParts {
  readonly config: AdminConfig
  readonly health: Health
  readonly recorder: Recorder
  readonly metrics: () => { readonly contentType: string; readonly text: Promise<string> }
  readonly operators: Operators
  /** Every route of it requires a token. */
  readonly api?: AdminApi
}

export interface AdminApi {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly routes: readonly AdminRoute[]
  readonly control: OperatorControl
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
  readonly app: FastifyInstance
  readonly port: number
}

async function listen(app: FastifyInstance, address: string): Promise<Listening> {
  await app.listen(splitListenAddress(address))
  return { app, port: (app.server.address() as AddressInfo).port }
}

function makeAdmin(parts: AdminParts): FastifyInstance {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  const { api, config, operators } = parts
  addMetrics(app, parts, config.token === undefined ? undefined : (request) => identify(request, operators))
  if (api) for (const route of api.routes) addRoute(app, route, { ...api, operators })
  return app
}

/** For probes and scrapers, on any address. It needs no token: its routes change nothing and show no secret. */
function makeProbes(parts: AdminParts): FastifyInstance {
  const app = makeApp(parts.recorder)
  addHealth(app, parts.health)
  addMetrics(app, parts)
  return app
}

/** The schema of a body or of the query. An optional body is checked only if it is sent. */
interface RequestSchema {
  readonly optional: boolean
  readonly schema: Schema
}

/** Throws RangeError, when the route is added, on a schema keyword that the validator does not support. */
const compileRequest: FastifySchemaCompiler<RequestSchema> = ({
  schema: { optional, schema },
  httpPart = '',
}) => {
  const problemsOf = compileProblems(schema)
  return (value: JsonValue) => {
    if (optional && value === null) return true
    const problems = problemsOf(value).map(
      ({ field, why }) => `${[httpPart, field].filter(Boolean).join('.')}  ${why}`,
    )
    return problems.length === 0 || { error: new AdminError(400, 'the request does not fit', problems) }
  }
}

/** Replaces Fastify's schema compilers (Ajv, fast-json-stringify), so that they are not loaded: none of them is used. */
const unused = (): never => {
  throw new TypeError('the admin listener has a validator of its own, and no schema of an answer')
}

function makeApp(recorder: Recorder): FastifyInstance {
  const app = fastify({
    logger: false,
    forceCloseConnections: true,
    requestTimeout: 10_000,
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  })
  app.setValidatorCompiler(compileRequest)
  app.removeContentTypeParser('text/plain')
  app.addHook('onSend', async (_request, reply) => {
    reply.header('Cache-Control', 'no-store')
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'there is nothing at this path' }),
  )
  app.setErrorHandler((thrown: FrameworkError, _request, reply) => {
    const { status, body } = errorBodyOf(thrown)
    if (status >= 500) recorder.note('error', 'admin_failed', { cause: thrown })
    if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="admin"')
    return reply.code(status).send(body)
  })
  return app
}

/** Throws AdminError 401 unless the request shows a token that is in force. */
function identify({ headers }: FastifyRequest, operators: Operators): AuthenticatedOperator {
  const operator = operators.find(headers.authorization)
  if (operator === undefined) throw unknownOperator()
  if (operators.hasExpired(operator)) throw expiredOperator(operator)
  return operator
}

type GuardedApi = AdminApi & Pick<AdminParts, 'operators'>

/**
 * Throws AdminError 401 or 403, unless the request shows a token whose role has the right. A token that was good, and a
 * role that does not suffice, are recorded; guesses are not, so that nobody without a token fills the trail.
 */
function authorize(
  request: FastifyRequest,
  route: AdminRoute,
  { operators, audit }: GuardedApi,
): AuthenticatedOperator {
  const operator = operators.find(request.headers.authorization)
  if (operator === undefined) throw unknownOperator()
  const expired = operators.hasExpired(operator)
  if (!expired && hasRight(operator.role, route.needs)) return operator
  const { operationId: id, method, needs } = route
  audit.note({
    event: 'operator.refused',
    outcome: 'refused',
    actor: { kind: 'operator', operator: operator.name, via: 'admin' },
    on: { kind: 'operation', id, method },
    change: { role: operator.role, needs, expired },
    personal: { 'actor.address': request.ip },
  })
  throw expired ? expiredOperator(operator) : refusedOperator(operator, needs)
}

function addRoute(app: FastifyInstance, route: AdminRoute, api: GuardedApi): void {
  const { method, path: url, body, bodyOptional, query = {}, params, handle } = route
  const known = new WeakMap<FastifyRequest, AuthenticatedOperator>()
  app.route({
    method,
    url,
    schema: {
      querystring: { optional: false, schema: members(query) } satisfies RequestSchema,
      ...(params && { params: { optional: false, schema: members(params) } satisfies RequestSchema }),
      ...(body && { body: { optional: bodyOptional === true, schema: body } satisfies RequestSchema }),
    },
    // Before the body is read.
    onRequest: (request, _reply, done) => {
      known.set(request, authorize(request, route, api))
      done()
    },
    handler: async (request, reply) => {
      const answer = await handle(api.control, readRequest(request, known.get(request)))
      if (answer.type !== undefined) reply.type(answer.type)
      return reply.code(answer.status).send(answer.body)
    },
  })
}

function readRequest(request: FastifyRequest, known: AuthenticatedOperator | undefined): AdminRequest {
  const body = (request.body ?? {}) as AdminRequest['body']
  const query = (request.query ?? {}) as AdminRequest['query']
  const params = (request.params ?? {}) as AdminRequest['params']
  const { by, reason } = { ...query, ...body }
  const said = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const told = { by: said(by), reason: shortReason(said(reason)) }
  return {
    body,
    query,
    params,
    operator: { operator: known?.name, ...told, via: request.ip, channel: 'admin' },
  }
}

/** Throws AdminError 400 on a reason that a record has no room for. */
function shortReason(reason: string | undefined): string | undefined {
  if (reason === undefined || Buffer.byteLength(reason) <= MOST_REASON) return reason
  throw new AdminError(400, 'the request does not fit', [`reason  is longer than ${MOST_REASON} bytes`])
}

function addHealth(app: FastifyInstance, health: Health): void {
  app.get('/health/live', () => ({ status: 'live' }))
  app.get('/health/ready', (_request, reply) => {
    const { ready, failing, degraded } = health.readiness()
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', failing, degraded })
  })
}

/** `guard` throws AdminError, if the metrics ask for a token. */
function addMetrics(
  app: FastifyInstance,
  { metrics }: AdminParts,
  guard?: (request: FastifyRequest) => unknown,
): void {
  app.get('/metrics', async (request, reply) => {
    guard?.(request)
    const { contentType, text } = metrics()
    return reply.type(contentType).send(await text)
  })
}
